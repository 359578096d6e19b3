"""Work whose claim is not there, or not bound, holds nothing, and goes on when it is.

GPUJobs, and pods that ask by themselves.
"""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.fake_client import AWAY, FakeClient, Sent
from tests.unit.runtime.job_writing import NO_LIBRARY, job_writes
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_project
from tests.unit.state.pods.test_shares import WEB, asking

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod, StatusDetails, Volume
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.claims import MissingClaims
from gpu_scheduler.runtime.jobs.reconcile import AllJobs, Reconciler
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.runtime.jobs.removal import Removal
from gpu_scheduler.runtime.jobs.role_jobs import RoleJobs
from gpu_scheduler.state.cluster_state import ClusterState

KEY = JobKey("team-a/job")
CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}
MOUNTED: dict[str, Any] = {
    "template": {
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "volumes": [{"name": "v", **CLAIM}],
        }
    }
}
SAVING: dict[str, Any] = {"checkpoint": {"volume": CLAIM}}
META = {"metadata": {"name": "data"}}
PENDING = {**META, "spec": {"storageClassName": "s"}, "status": {"phase": "Pending"}}
BOUND = {**META, "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
LATER, AT_ONCE = ({"volumeBindingMode": mode} for mode in ("WaitForFirstConsumer", "Immediate"))


class Case:
    def __init__(self, **spec: Any) -> None:
        self.state = ClusterState()
        self.state.project_changed(make_project())
        self.state.gpujob_changed(make_gpujob(**spec))
        self.there: dict[str, Any] = {"pv": {"metadata": {"name": "pv"}, "spec": {}}}
        self.client: Any = FakeClient(self._reply)
        self.queue: WorkQueue[JobKey] = WorkQueue()
        acceptance = Acceptance(self.client, NO_LIBRARY, placement="auto", clock=clock)
        refusals = Refusals(clock, self.queue.add_after)
        self.claims = MissingClaims(self.state, self.client, refusals.changed, clock=clock)
        accepting = Accepting(self.state, acceptance, self.claims, clock=clock)
        writes = job_writes(self.state, self.client, clock=clock)
        roles = RoleJobs(self.state, self.client, acceptance, accepting, writes)
        removal = Removal(self.state, self.client, self.queue.add_after, lambda: 0.0)
        self.reconciler = Reconciler(
            self.state, self.queue, AllJobs(roles, roles), accepting, refusals, removal
        )

    def _reply(self, sent: Sent) -> Any:
        if sent.method != "GET":
            return {}
        name = sent.path.rpartition("/")[2]
        none = errors.NotFound(404, "NotFound", "none", StatusDetails(name=name))
        return self.there.get(name, none)

    @property
    def waits(self) -> bool:
        """Whether the planner may give it a place."""
        return bool(self.state.waiting_jobs())

    @property
    def looks(self) -> int:
        return len(self.client.of("GET", "persistentvolumeclaims/data"))


@virtual
@pytest.mark.parametrize("spec", [MOUNTED, SAVING], ids=["mounted", "checkpoint"])
async def test_a_job_whose_claim_is_missing_is_not_planned_and_says_so(spec: Any) -> None:
    case = Case(**spec)
    await case.reconciler.handle(KEY)
    job = case.state.gpujobs[KEY]
    assert (job.problem_as, case.waits) == (Reason.VOLUME_NOT_MOUNTED, False)
    assert job.problem.startswith("there is no PersistentVolumeClaim data of namespace team-a; its")
    assert KEY not in case.state.waiting.doubts, "no pod of it has failed"


@virtual
@pytest.mark.parametrize(
    ("claim", "mode", "waits"),
    [(PENDING, AT_ONCE, False), (PENDING, LATER, True), (BOUND, AT_ONCE, True)],
)
async def test_a_claim_that_waits_for_its_first_consumer_is_as_it_should_be(
    claim: Any, mode: Any, waits: bool
) -> None:
    case = Case(**MOUNTED)
    case.there |= {"data": claim, "s": mode}
    await case.reconciler.handle(KEY)
    assert case.waits is waits
    assert bool(case.state.gpujobs[KEY].problem) is not waits


@virtual
async def test_a_bound_claim_costs_no_more_requests_than_the_choice_of_the_path() -> None:
    case = Case(**MOUNTED)
    case.there["data"] = BOUND
    await case.reconciler.handle(KEY)
    assert case.looks == 1


@virtual
async def test_it_is_planned_within_two_seconds_of_the_claim() -> None:
    case = Case(**MOUNTED)
    await case.reconciler.handle(KEY)
    work, looking = case.queue.work(case.reconciler.handle), case.claims.run()
    async with Running(work, looking):
        await asyncio.sleep(20)
        assert not case.waits
        case.there["data"] = BOUND
        await asyncio.sleep(2)
        assert case.waits and case.state.gpujobs[KEY].problem == ""
        looks = case.looks
        await asyncio.sleep(600)
        assert case.looks == looks, "it is there: nobody looks any more"


@virtual
async def test_a_claim_is_looked_at_ever_more_seldom_and_for_jobs_that_wait_alone() -> None:
    case = Case(**MOUNTED)
    await case.reconciler.handle(KEY)
    work, looking = case.queue.work(case.reconciler.handle), case.claims.run()
    async with Running(work, looking):
        await asyncio.sleep(100)
        first = case.looks
        await asyncio.sleep(7200)
        before = case.looks
        await asyncio.sleep(600)
        assert first <= 120 and case.looks - before <= 60
        case.state.gpujob_gone(KEY)
        await asyncio.sleep(60)
        gone = case.looks
        await asyncio.sleep(600)
        assert case.looks == gone


@virtual
async def test_many_missing_claims_are_looked_at_a_few_a_second() -> None:
    case = Case()
    for number in range(500):
        job = make_gpujob(f"job-{number}", uid=str(number))
        case.state.gpujob_changed(job)
        job.problem, job.problem_as = "waits", Reason.VOLUME_NOT_MOUNTED
        with pytest.raises(Exception, match="there is no"):
            await case.claims.check_job(job, [f"claim-{number}"])
    asked = len(case.client.sent)
    async with Running(case.claims.run()):
        await asyncio.sleep(60)
    assert len(case.client.sent) - asked <= 8 * 60


@virtual
async def test_a_job_that_has_its_job_is_not_stopped_by_a_claim_that_is_being_deleted() -> None:
    case = Case(**MOUNTED)
    case.state.job_changed(make_job())
    case.there["data"] = BOUND | {"metadata": {"name": "data", "deletionTimestamp": "now"}}
    await case.reconciler.handle(KEY)
    assert case.state.gpujobs[KEY].problem == ""


def mounting(name: str = "web-1", *claims: str, **pod: Any) -> Pod:
    """A pod that asks by itself and mounts claims; ``data`` where none is named."""
    made = asking(name, path="gate", **pod)
    volumes = tuple(
        Volume(name=each, persistent_volume_claim={"claimName": each})
        for each in claims or ("data",)
    )
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, volumes=volumes))


class PodCase(Case):
    """A cluster in which pods ask by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.state.gpujob_gone(KEY)
        self.state.nodes.changed(make_node())

    @property
    def running(self) -> Running:
        return Running(self.claims.run(), self.claims.run_first())

    @property
    def problem(self) -> str:
        return self.state.groups.records[WEB].problem


@virtual
async def test_a_pod_that_asks_by_itself_is_not_planned_before_its_claim_was_looked_at() -> None:
    case = PodCase()
    case.there["data"] = BOUND
    case.state.pod_changed(mounting())
    assert not case.waits and "have not been looked at yet" in case.problem
    async with case.running:
        await asyncio.sleep(0.01)
        assert case.waits and case.problem == ""
        case.state.pod_changed(mounting(version=2))
        assert case.waits
        await asyncio.sleep(600)
        assert case.looks == 1


@virtual
async def test_a_pod_whose_claim_is_missing_holds_nothing_and_goes_on_by_itself() -> None:
    case = PodCase()
    case.state.pod_changed(mounting())
    async with case.running:
        await asyncio.sleep(20)
        case.state.pod_changed(mounting(version=2))  # what it is told is an event as well
        assert not case.waits
        record = case.state.groups.records[WEB]
        assert record.problem_as is Reason.VOLUME_NOT_MOUNTED
        assert record.problem == (
            "spec.volumes: there is no PersistentVolumeClaim data of namespace team-a; the pod "
            "mounts it: make it, or make the pod anew with another. Nothing is held for the pod "
            "until then, and it goes on by itself"
        )
        assert WEB not in case.state.waiting.doubts
        case.there["data"] = BOUND
        await asyncio.sleep(2)
        assert case.waits and record.problem_as is Reason.INVALID


@virtual
@pytest.mark.parametrize(("mode", "waits"), [(AT_ONCE, False), (LATER, True)])
async def test_a_pods_claim_that_waits_for_its_first_consumer_is_as_it_should_be(
    mode: Any, waits: bool
) -> None:
    case = PodCase()
    case.there |= {"data": PENDING, "s": mode}
    case.state.pod_changed(mounting())
    async with case.running:
        await asyncio.sleep(5)
        assert case.waits is waits


@virtual
async def test_each_claim_of_a_pod_counts() -> None:
    case = PodCase()
    case.there["data"] = BOUND
    case.state.pod_changed(mounting("web-1", "data", "more"))
    async with case.running:
        await asyncio.sleep(5)
        assert "no PersistentVolumeClaim more" in case.problem
        case.there["more"] = BOUND
        await asyncio.sleep(2)
        assert case.waits


@virtual
async def test_pods_of_one_claim_are_one_look() -> None:
    case = PodCase()
    case.there["data"] = BOUND
    for number in range(200):
        case.state.pod_changed(mounting(f"web-{number}"))
    async with case.running:
        await asyncio.sleep(1)
        assert len(case.state.waiting_jobs()) == 200 and case.looks == 1


@virtual
async def test_a_claim_is_looked_at_as_long_as_a_pod_waits_for_it() -> None:
    case = PodCase()
    case.state.pod_changed(mounting())
    async with case.running:
        await asyncio.sleep(10)
        assert case.looks > 5
        case.state.pod_gone(PodUID("uid-web-1"))
        await asyncio.sleep(5)
        looks = case.looks
        await asyncio.sleep(600)
        assert case.looks == looks


@virtual
async def test_where_no_project_is_nothing_is_looked_at_until_one_comes() -> None:
    case = PodCase()
    case.there["data"] = BOUND
    case.state.project_gone(ProjectName("team-a"))
    case.state.pod_changed(mounting())
    async with case.running:
        await asyncio.sleep(60)
        assert case.looks == 0
        case.state.project_changed(make_project())
        await asyncio.sleep(2)
        assert case.waits and case.looks == 1


@virtual
async def test_an_api_server_that_is_away_is_asked_again() -> None:
    case = PodCase()
    case.there["data"] = AWAY
    case.state.pod_changed(mounting())
    async with case.running:
        await asyncio.sleep(5)
        assert not case.waits and case.problem
        case.there["data"] = BOUND
        await asyncio.sleep(2)
        assert case.waits


@virtual
async def test_a_pod_that_has_its_place_keeps_it() -> None:
    case = PodCase()
    case.state.pod_changed(mounting(node="a", devices=half(), phase="Running"))
    async with case.running:
        await asyncio.sleep(60)
    assert case.looks == 0 and case.problem == ""
