"""Jobs whose pods the API server refuses say so in its words, and go on once it allows them."""

import asyncio
from typing import Any

from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.test_custom_resources import project_body
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import gpujob_body, make_job, make_pod

from gpu_scheduler.api.names import TRIED_AGAIN
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Meta, ResourceQuota
from gpu_scheduler.runtime.acceptance import Acceptance
from gpu_scheduler.runtime.custom_resources import CustomResources
from gpu_scheduler.runtime.missing import MissingPods, QuotaHandler
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
        acceptance = Acceptance(
            self.client, placement="bind", runtime_class="", isolation="framework", clock=clock
        )
        self.missing = MissingPods(
            self.state, self.client, acceptance, clock=clock, now=lambda: "2026-01-01T00:00:00Z"
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
        case.state.touched.clear()
        await asyncio.sleep(1.5)
        assert case.see() == (
            f"namespace team-a: {QUOTA}. Its pods are made once others of the namespace have "
            "ended, or an administrator raises the ResourceQuota (kubectl describe resourcequota "
            "-n team-a)"
        )
        assert case.state.touched == {KEY}


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
        case.state.touched.clear()
        await asyncio.sleep(3600)
    assert case.asked() < 130  # one of each namespace every 30 s
    assert case.state.touched == set()


@virtual
async def test_when_a_quota_changes_the_job_is_touched_at_once() -> None:
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
    (patch,) = case.client.of("PATCH", "/jobs/job")
    assert patch.body["metadata"]["uid"] == "uid-job"
    assert TRIED_AGAIN in patch.body["metadata"]["annotations"]


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
