"""Before anybody is evicted for a job, it is looked whether its pods could start."""

import asyncio
from typing import Any, NoReturn

from tests.unit.runtime.evicting import last_plan
from tests.unit.runtime.fake_client import AWAY, FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.job_writing import NO_LIBRARY
from tests.unit.runtime.jobs.test_missing import refusal
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import gpujob_body, make_job, make_node, make_pod

from gpu_scheduler.core.model.decision import Reason, Waits
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusDetails
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.doubting import doubt
from gpu_scheduler.runtime.jobs.looking import SEEN_SECONDS, Looking
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart

TEAM, KEY = ProjectName("team-a"), JobKey("team-a/job")
CLAIM = "persistentvolumeclaims/data"
TEMPLATE = {
    "spec": {
        "containers": [{"name": "main", "image": "x"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    }
}
BOUND = {"metadata": {"name": "data"}, "spec": {}, "status": {"phase": "Bound"}}


class Case:
    def __init__(self) -> None:
        self.state = ClusterState()
        self.custom_resources = CustomResources(self.state, changed=lambda key: None)
        self.custom_resources.project(project_body())
        self.state.nodes.changed(make_node("a"))
        self.there: dict[str, Any] = {}
        self.dry_run: Any = {}
        self.client: Any = FakeClient(self._reply)
        acceptance = Acceptance(self.client, NO_LIBRARY, placement="auto", clock=clock)
        self.accepting = Accepting(self.state, acceptance, clock=clock)
        self.looking = Looking(self.state, self.client, acceptance, clock=clock)

    def _reply(self, sent: Sent) -> Any:
        if sent.method == "DRYRUN":
            return self.dry_run if sent.path.endswith("/pods") else {}
        name = sent.path.rpartition("/")[2]
        none = errors.NotFound(404, "NotFound", "none", StatusDetails(name=name))
        return self.there.get("/".join(sent.path.split("/")[-2:]), none)

    async def submit(self, name: str = "job", generation: int = 1) -> JobKey:
        body = gpujob_body(name, uid=f"uid-{name}", image=None, template=TEMPLATE)
        body["metadata"]["generation"] = generation
        self.custom_resources.gpujob(body)
        key = JobKey(f"team-a/{name}")
        assert await self.accepting.refused(self.state.gpujobs[key], TEAM) == ""
        return key

    def unseen(self, key: JobKey = KEY) -> bool:
        """Whether nobody gives way to a job."""
        job = self.state.waiting_job(key)
        assert job is not None
        return job.unseen or job.doubtful

    def missing(self, key: JobKey = KEY) -> str:
        return self.state.waiting.looked.missing(key)

    def looks(self) -> int:
        return len(self.client.of("GET", CLAIM))

    async def plans(self) -> NoReturn:
        """As planning does: it asks as long as nobody has seen that all is there."""
        while True:
            await asyncio.sleep(0.5)
            self.state.waiting.expire(clock())
            for job in self.state.waiting_jobs():
                self.looking.want([job.key] if job.unseen and not job.doubtful else ())

    def running(self) -> Running:
        return Running(self.looking.run(), self.plans())


@virtual
async def test_a_claim_that_does_not_exist_is_named_and_looked_for_ever_more_seldom() -> None:
    case = Case()
    await case.submit()
    case.client.sent.clear()
    async with case.running():
        await asyncio.sleep(1)
        assert case.unseen()
        assert case.missing() == "there is no PersistentVolumeClaim data of namespace team-a"
        first = case.looks()
        await asyncio.sleep(3600)
        looks = case.looks() / first
        assert 10 < looks < 20, "2, 4, 8 … 600 s"
        case.there[CLAIM] = BOUND
        await asyncio.sleep(600)
        assert not case.unseen() and case.missing() == ""


@virtual
async def test_where_all_is_there_that_counts_for_a_while() -> None:
    case = Case()
    case.there[CLAIM] = BOUND
    await case.submit()
    case.client.sent.clear()
    async with case.running():
        await asyncio.sleep(1)
        assert not case.unseen()
        asked = [f"{sent.method} {sent.path.partition('/v1/')[2]}" for sent in case.client.sent]
        claim = "GET namespaces/team-a/persistentvolumeclaims/data"
        # For the way that its pods go, to see that it is there, and a pod.
        assert [each for each in asked if "priorityclasses" not in each] == [
            claim,
            claim,
            "DRYRUN namespaces/team-a/pods",
        ]
        case.state.waiting.expire(clock() + SEEN_SECONDS)
        assert case.unseen()


@virtual
async def test_what_the_api_server_says_to_a_pod_is_heard_before_anybody_goes() -> None:
    case = Case()
    case.there[CLAIM] = BOUND
    case.dry_run = refusal('error looking up service account team-a/robot: "robot" not found')
    await case.submit()
    async with case.running():
        await asyncio.sleep(1)
        assert case.unseen() and "service account team-a/robot" in case.missing()


@virtual
async def test_a_pod_that_exists_is_looked_at_as_it_is_and_not_tried() -> None:
    case = Case()
    case.there["pods/job-0"] = {"spec": TEMPLATE["spec"]}
    case.dry_run = refusal("never")
    await case.submit()
    case.state.job_changed(make_job(uid="u", owner_uid="uid-job", owner="job"))
    case.state.pod_changed(make_pod("job-0", job="u"))
    async with case.running():
        case.looking.want([KEY])
        await asyncio.sleep(1)
        assert "PersistentVolumeClaim data" in case.missing()
        assert case.client.of("GET", "pods/job-0") and not case.client.of("DRYRUN", "/pods")


@virtual
async def test_no_answer_is_asked_for_again_and_nobody_goes_meanwhile() -> None:
    case = Case()
    await case.submit()
    case.there[CLAIM] = AWAY
    async with case.running():
        await asyncio.sleep(1)
        assert case.unseen() and "cannot be looked up" in case.missing()
        case.there[CLAIM] = BOUND
        await asyncio.sleep(3)
        assert not case.unseen()


@virtual
async def test_another_spec_is_looked_at_at_once() -> None:
    case = Case()
    await case.submit()
    async with case.running():
        await asyncio.sleep(600)
        case.there[CLAIM] = BOUND
        await case.submit(generation=2)
        await asyncio.sleep(1)
        assert not case.unseen()


@virtual
async def test_who_is_like_one_that_could_not_start_is_in_doubt_as_that_is() -> None:
    case = Case()
    case.there[CLAIM] = BOUND
    await case.submit("first")
    other = await case.submit("second")
    first = JobKey("team-a/first")
    doubt(case.state, first, FailedStart(clock(), "no", delays=lambda times: 60.0))
    async with case.running():
        await asyncio.sleep(2)
    known = case.state.waiting.doubts.of(other)
    assert known is not None and known.why == "no" and case.state.waiting.doubts.held_back(other)
    made_again = await case.submit("third")
    assert case.state.waiting.doubts.held_back(made_again), "once it is accepted"


@virtual
async def test_what_is_missing_stands_behind_what_it_waits_for() -> None:
    case = Case()
    await case.submit()
    plan = last_plan(case.state)
    async with case.running():
        await asyncio.sleep(1)
    plan.take(Waits((KEY,), ((Reason.WAITING_FOR_GPU, "needs 1 GPU"),), (1,)), {}, ())
    assert plan.waits[KEY].message == (
        "needs 1 GPU; nobody gives way to it: there is no PersistentVolumeClaim data of namespace "
        "team-a"
    )
