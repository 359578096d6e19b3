"""Jobs whose pods the API server refuses say so in its words, and go on once it allows them."""

import asyncio
from typing import Any

from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.job_writing import NO_LIBRARY, place_prospective
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import gpujob_body, make_job, make_node, make_pod

from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Meta, ResourceQuota
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.missing import PATIENCE_SECONDS, MissingPods, QuotaHandler
from gpu_scheduler.state.cluster_state import ClusterState

KEY = JobKey("team-a/job")
QUOTA = (
    "exceeded quota: few, requested: requests.cpu=4, used: requests.cpu=8, limited: requests.cpu=10"
)


def refusal(said: str = QUOTA, name: str = "job") -> errors.Forbidden:
    message = f'pods "{name}-dry-run" is forbidden: {said}'
    return errors.Forbidden(403, "Forbidden", message)


class Case:
    def __init__(self) -> None:
        self.state = ClusterState()
        custom_resources = CustomResources(self.state, changed=lambda key: None)
        custom_resources.project(project_body())
        self.custom_resources = custom_resources
        self.answer: Any = {}
        self.client: Any = FakeClient(self._reply)
        acceptance = Acceptance(self.client, NO_LIBRARY, placement="bind", clock=clock)
        self.accepting = Accepting(self.state, acceptance, clock=clock)
        self.followed: list[JobKey] = []
        self.missing = MissingPods(
            self.state, acceptance, self.accepting, self.followed.append, clock=clock
        )
        self.submit()

    def _reply(self, sent: Sent) -> Any:
        if sent.method == "GET":
            return errors.NotFound(404, "NotFound", "none")
        return self.answer if sent.method == "DRYRUN" else {}

    def submit(self, name: str = "job", **job: Any) -> None:
        self.custom_resources.gpujob(gpujob_body(name, uid=f"gpujob-{name}"))
        self.state.job_changed(make_job(name, uid=f"uid-{name}", owner_uid=f"gpujob-{name}", **job))

    def running(self) -> Running:
        return Running(self.missing.run())

    def see(self, key: JobKey = KEY) -> str:
        job = self.state.gpujobs[key]
        self.missing.see(job)
        return self.missing.refused(job)

    def asked(self) -> int:
        return len(self.client.of("DRYRUN"))


@virtual
async def test_the_api_servers_sentence_is_told_within_two_seconds_with_what_to_do() -> None:
    case = Case()
    case.answer = refusal()
    async with case.running():
        assert case.see() == ""
        case.state.changes.touched.clear()
        await asyncio.sleep(1.5)
        assert case.see() == (
            f"namespace team-a: {QUOTA}. Its pods are made once others of the namespace have "
            "ended, or an administrator raises the ResourceQuota (kubectl describe resourcequota "
            "-n team-a)"
        )
        assert case.state.changes.touched == {KEY}


@virtual
async def test_a_job_that_has_its_pods_is_not_asked_about() -> None:
    case = Case()
    case.state.pod_changed(make_pod("job-0", job="uid-job"))
    async with case.running():
        case.see()
        await asyncio.sleep(60)
    assert case.asked() == 0


@virtual
async def test_nor_one_that_is_suspended_or_over() -> None:
    for job in ({"suspend": True}, {"succeeded": 1}, {"ended": "Failed"}):
        case = Case()
        case.submit(version=2, **job)
        async with case.running():
            case.see()
            await asyncio.sleep(60)
        assert case.asked() == 0, job


@virtual
async def test_what_stays_refused_is_asked_ever_more_seldom_and_told_once() -> None:
    case = Case()
    case.answer = refusal()
    async with case.running():
        case.see()
        await asyncio.sleep(2)
        case.state.changes.touched.clear()
        await asyncio.sleep(3600)
    assert case.asked() < 130  # one of each namespace every 30 s
    assert case.state.changes.touched == set()


@virtual
async def test_when_a_quota_changes_the_job_is_asked_about_at_once() -> None:
    case = Case()
    case.answer = refusal()
    handler = QuotaHandler(case.missing.quota_changed)
    async with case.running():
        case.see()
        await asyncio.sleep(2)
        case.answer = {}
        handler.changed(ResourceQuota(Meta(name="few", namespace="team-b")))
        await asyncio.sleep(1)
        assert case.see()
        handler.changed(ResourceQuota(Meta(name="few", namespace="team-a")))
        await asyncio.sleep(1)
        assert case.see() == ""
    assert KEY not in case.state.decisions.inadmissible, "it waits for its turn"


@virtual
async def test_a_quota_that_is_used_up_in_the_middle_of_a_run_is_told_too() -> None:
    case = Case()
    async with case.running():
        case.see()
        await asyncio.sleep(10)
        case.answer = refusal()
        await asyncio.sleep(120)
        assert QUOTA in case.see()


@virtual
async def test_once_a_pod_is_there_nothing_is_refused() -> None:
    case = Case()
    case.answer = refusal()
    async with case.running():
        case.see()
        await asyncio.sleep(2)
        assert case.see()
        case.state.pod_changed(make_pod("job-0", job="uid-job"))
        case.see()
        assert case.see() == ""
        case.state.pod_gone(PodUID("uid-job-0"))
        asked = case.asked()
        case.see()
        await asyncio.sleep(2)
        assert case.asked() == asked + 1 and case.see()


@virtual
async def test_nothing_is_kept_of_a_job_that_is_gone() -> None:
    case = Case()
    case.answer = refusal()
    async with case.running():
        case.see()
        await asyncio.sleep(2)
        case.state.gpujob_gone(KEY)
        asked = case.asked()
        await asyncio.sleep(700)
    assert case.asked() == asked
    assert not (case.missing._refused or case.missing._asked or case.missing._ask_at)


@virtual
async def test_one_namespace_full_of_them_does_not_keep_others_waiting() -> None:
    case = Case()
    case.answer = refusal()
    for number in range(1000):
        case.submit(f"job-{number}")
        case.missing.see(case.state.gpujobs[JobKey(f"team-a/job-{number}")])
    case.custom_resources.project(project_body("team-b"))
    other = gpujob_body("job", namespace="team-b", uid="gpujob-b")
    case.custom_resources.gpujob(other)
    case.state.job_changed(
        make_job(uid="uid-b", namespace="team-b", owner_uid="gpujob-b", owner="job")
    )
    async with case.running():
        case.see(JobKey("team-b/job"))
        await asyncio.sleep(2)
        assert case.see(JobKey("team-b/job"))
        assert case.asked() < 40


class Placed(Case):
    """A job of four pods that all have places; two of them have come."""

    def __init__(self) -> None:
        super().__init__()
        self.state.nodes.changed(make_node("a"))

    async def begin(self, *, pods: int = 2) -> None:
        self.custom_resources.gpujob(
            gpujob_body("four", uid="gpujob-four", parallelism=4, completions=4)
        )
        assert await self.accepting.refused(self.state.gpujobs[FOUR], ProjectName("team-a")) == ""
        for key in place_prospective(self.state):
            assert key in (KEY, FOUR)
        for each in self.state.decisions.nominated.of(FOUR):
            each.asked = True
        own = {"uid": "uid-four", "owner_uid": "gpujob-four"}
        self.state.job_changed(make_job("four", **own, parallelism=4, completions=4))
        for index in range(pods):
            self.state.pod_changed(make_pod(f"four-{index}", job="uid-four", index=index))
            nominated = self.state.decisions.nominated.whose_place(FOUR, "", index)
            assert nominated is not None
            assert (
                self.state.decisions.take_place(nominated, PodUID(f"uid-four-{index}")) is not None
            )
        self.see(FOUR)


FOUR = JobKey("team-a/four")


@virtual
async def test_what_is_refused_gives_its_places_back_and_its_job_becomes_narrower() -> None:
    case = Placed()
    case.answer = refusal(name="four")
    await case.begin()
    async with case.running():
        await asyncio.sleep(2)
    assert QUOTA in case.see(FOUR)
    assert not case.state.decisions.nominated.of(FOUR) and len(case.state.decisions.assumed) == 2
    assert case.state.decisions.narrowed == {"uid-four": 2} and FOUR in case.followed
    assert case.state.waiting_job(FOUR) is None, "until it is allowed"


@virtual
async def test_a_template_that_is_refused_is_judged_again_with_all_that_wait_beside_it() -> None:
    case = Placed()
    case.answer = refusal("violates PodSecurity", "four")
    await case.begin(pods=0)
    async with case.running():
        await asyncio.sleep(2)
        assert case.state.gpujobs[FOUR].templates is None
        project = ProjectName("team-a")
        refused = await case.accepting.refused(case.state.gpujobs[FOUR], project)
    assert "no pod of this template may be created: violates PodSecurity" in refused
    assert case.see(FOUR) == "" and FOUR in case.followed
    assert not case.state.decisions.assumed and case.state.decisions.narrowed == {"uid-four": 0}


@virtual
async def test_places_of_pods_that_do_not_come_nobody_knows_why_are_given_back() -> None:
    case = Placed()
    await case.begin()
    async with case.running():
        await asyncio.sleep(PATIENCE_SECONDS - 2)
        assert len(case.state.decisions.nominated.of(FOUR)) == 2
        await asyncio.sleep(3)
    assert not case.state.decisions.nominated.of(FOUR)
    doubt = case.state.waiting.doubts.of(FOUR)
    assert doubt is not None and case.state.waiting.doubts.held_back(FOUR)
    assert "made no pod within 30 s" in doubt.why


@virtual
async def test_pods_that_come_late_are_placed_at_once_and_nobody_goes_for_them() -> None:
    """Their controller stood still, say: who waits for ever longer would wait for nothing."""
    case = Placed()
    await case.begin()
    async with case.running():
        await asyncio.sleep(PATIENCE_SECONDS + 2)
        case.see(FOUR)
        assert case.state.waiting.doubts.held_back(FOUR)
        (own,) = case.state.workloads.jobs(FOUR)
        live = len(list(case.state.workloads.pods(FOUR)))
        case.state.pod_changed(make_pod("late", job=own.uid, index=live))
        case.see(FOUR)
    doubts = case.state.waiting.doubts
    assert FOUR in doubts and not doubts.held_back(FOUR)


@virtual
async def test_nobody_goes_for_pods_that_were_refused_once_until_one_has_started() -> None:
    case = Case()
    case.answer = refusal()
    async with case.running():
        case.see()
        await asyncio.sleep(2)
        case.answer = {}
        await asyncio.sleep(40)
        assert case.see() == ""
    job = case.state.waiting_job(KEY)
    assert job is None or job.doubtful
    doubts = case.state.waiting.doubts
    assert KEY in doubts and not doubts.held_back(KEY)


@virtual
async def test_a_place_that_is_given_again_has_its_own_time() -> None:
    case = Placed()
    one = JobKey("team-a/one")  # of which no Job can be made
    case.custom_resources.gpujob(gpujob_body("one", uid="gpujob-one"))
    assert await case.accepting.refused(case.state.gpujobs[one], ProjectName("team-a")) == ""
    place_prospective(case.state)
    async with case.running():
        await asyncio.sleep(PATIENCE_SECONDS - 1)
        for _ in range(100):
            await asyncio.sleep(0.05)
            place_prospective(case.state)  # as the planner does, before the next look
    assert case.followed == [one]


class Queue(Case):
    """Jobs of one pod that have places, whose pods the Job controller makes one after the other."""

    async def nominate(self, *names: str) -> None:
        self.state.nodes.changed(make_node("a"))
        for name in names:
            key = JobKey(f"team-a/{name}")
            self.custom_resources.gpujob(gpujob_body(name, uid=f"gpujob-{name}"))
            job = self.state.gpujobs[key]
            assert await self.accepting.refused(job, ProjectName("team-a")) == ""
        place_prospective(self.state)

    def come(self, name: str) -> None:
        key, uid = JobKey(f"team-a/{name}"), f"uid-{name}"
        self.state.job_changed(make_job(name, uid=uid, owner_uid=f"gpujob-{name}"))
        self.state.pod_changed(make_pod(f"{name}-0", job=uid))
        nominated = self.state.decisions.nominated.whose_place(key, "", 0)
        assert nominated is not None, f"{name} has lost its place"
        assert self.state.decisions.take_place(nominated, PodUID(f"uid-{name}-0")) is not None

    def given_back(self) -> set[str]:
        return {key.partition("/")[2] for key in self.followed}


@virtual
async def test_thousands_that_do_not_come_are_given_up_a_few_at_a_time() -> None:
    """A turn of the loop must not last as long as the Lease, however many there are."""
    case = Queue()
    names = [f"job-{number}" for number in range(1000)]
    await case.nominate(*names)
    case.missing.see(case.state.gpujobs[KEY])
    turns: list[int] = []
    async with case.running():
        await asyncio.sleep(PATIENCE_SECONDS)
        while len(case.followed) < len(names):
            before = len(case.followed)
            await asyncio.sleep(0.25)
            turns.append(len(case.followed) - before)
            assert len(turns) < 100
    assert max(turns) <= 50
    assert case.given_back() == set(names)


@virtual
async def test_who_waits_in_a_long_queue_of_the_job_controller_keeps_its_place() -> None:
    """A thousand jobs at once: it makes twenty pods a second unless it is told otherwise."""
    case = Queue()
    names = [f"job-{number}" for number in range(5)]
    await case.nominate(*names[:4])
    async with case.running():
        for name in names:
            await asyncio.sleep(PATIENCE_SECONDS - 5)
            case.come(name)
            if name == names[0]:
                await case.nominate(names[4])
        await asyncio.sleep(PATIENCE_SECONDS)
    assert case.given_back() == set()


@virtual
async def test_who_is_overtaken_in_that_queue_gives_its_place_back() -> None:
    case = Queue()
    await case.nominate("job-0", "job-1")
    async with case.running():
        for number in range(10, 20):
            await asyncio.sleep(10)
            await case.nominate(f"job-{number}")
            await asyncio.sleep(1)
            case.come(f"job-{number}")
            if number == 11:
                assert case.given_back() == set()
        assert case.given_back() == {"job-0", "job-1"}


@virtual
async def test_when_nobodys_pods_come_any_more_places_are_given_back() -> None:
    case = Queue()
    await case.nominate("job-0", "job-1")
    async with case.running():
        await asyncio.sleep(PATIENCE_SECONDS - 5)
        case.come("job-0")
        await asyncio.sleep(PATIENCE_SECONDS - 1)
        assert case.given_back() == set()
        await asyncio.sleep(2)
        assert case.given_back() == {"job-1"}
