"""GPUJobs with roles: a Service and several Jobs, made once however often somebody is killed."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import CONFLICT, NOT_FOUND, NOT_LEADER, FakeClient, Sent
from tests.unit.runtime.job_writing import place_prospective, reconciler
from tests.unit.runtime.jobs.test_reconcile import KEY, THERE, FakeAcceptance
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import make_gpujob, make_job, make_project

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.state.cluster_state import ClusterState

ROLES = [{"name": "lead", "gpu": 1}, {"name": "work", "replicas": 2, "gpu": 1}]
SERVICE = "services/job"
JOBS = ["jobs/job-lead", "jobs/job-work"]
OURS = [{"uid": "gpujob-uid", "kind": "GPUJob", "name": "job", "controller": True}]


class Api:
    """An API server that remembers; ``calls`` left until it goes away."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.calls = 1000
        self.writes: list[str] = []

    def reply(self, sent: Sent) -> Any:
        if not self.calls:
            return NOT_LEADER
        self.calls -= 1
        plural = sent.path.split("/team-a/")[1]
        if plural == "gpujobs":
            return THERE
        if sent.method == "GET":
            return self.objects.get(plural, NOT_FOUND)
        if sent.method == "PATCH":
            self.writes.append(f"{sent.method} {plural}")
            job = self.objects[plural]
            return make_job(
                job.metadata.name, uid=job.metadata.uid, owner="job", suspend=True, version=9
            )
        name = f"{plural}/{sent.body['metadata']['name']}"
        if name in self.objects:
            return CONFLICT
        self.writes.append(f"{sent.method} {name}")
        self.objects[name] = sent.body if plural == "services" else as_job(sent.body)
        return self.objects[name]


def as_job(body: dict[str, Any]) -> Any:
    name, pods = body["metadata"]["name"], body["spec"]["parallelism"]
    size = {"parallelism": pods, "completions": pods}
    return make_job(name, uid=f"uid-{name}", owner="job", version=1, **size)


class Case:
    """One leader on an API server that outlives it."""

    def __init__(self, api: Api | None = None, **spec: Any) -> None:
        self.api = api or Api()
        self.state = ClusterState()
        self.state.project_changed(make_project())
        self.state.gpujob_changed(make_gpujob(**{"roles": ROLES, **spec}))
        for name, found in self.api.objects.items():
            if name.startswith("jobs/"):
                self.state.job_changed(found)
        self.queue: WorkQueue[JobKey] = WorkQueue()
        client = FakeClient(self.api.reply)
        self.reconciler = reconciler(self.state, client, FakeAcceptance(), self.queue)

    async def handle(self) -> None:
        await self.reconciler.handle(KEY)
        if place_prospective(self.state):
            await self.reconciler.handle(KEY)

    @property
    def problem(self) -> str:
        return self.state.gpujobs[KEY].problem


@virtual
async def test_the_service_comes_before_the_jobs_whose_pods_need_it() -> None:
    case = Case()
    await case.handle()
    await case.handle()
    assert case.api.writes == [f"POST {name}" for name in (SERVICE, *JOBS)]
    assert case.problem == ""
    assert [job.role for job in case.state.workloads.jobs(KEY)] == ["lead", "work"]


@virtual
async def test_each_role_is_as_wide_as_it_has_replicas() -> None:
    case = Case()
    await case.handle()
    jobs = case.state.workloads.jobs(KEY)
    assert {job.role: job.parallelism for job in jobs} == {"lead": 1, "work": 2}


@virtual
async def test_a_job_whose_pods_know_nothing_of_each_other_has_no_service() -> None:
    case = Case(roles=None)
    await case.handle()
    assert case.api.writes == ["POST jobs/job"]


@virtual
async def test_a_gang_without_roles_has_one_job_and_a_service() -> None:
    case = Case(roles=None, gang=True, parallelism=2)
    await case.handle()
    assert case.api.writes == [f"POST {SERVICE}", "POST jobs/job"]


@pytest.mark.parametrize("calls", range(4))
def test_whoever_is_killed_midway_leaves_what_the_next_one_completes(calls: int) -> None:
    @virtual
    async def run() -> None:
        api = Api()
        api.calls = calls
        if calls < 3:
            with pytest.raises(errors.NotLeader):
                await Case(api).handle()
        else:
            await Case(api).handle()
        api.calls = 1000
        last = Case(api)
        await last.handle()
        assert api.writes == [f"POST {name}" for name in (SERVICE, *JOBS)]
        assert last.problem == ""
        assert [job.role for job in last.state.workloads.jobs(KEY)] == ["lead", "work"]

    run()


@virtual
async def test_a_role_whose_job_was_deleted_gets_a_new_one() -> None:
    case = Case()
    await case.handle()
    case.state.job_gone("uid-job-work")
    del case.api.objects["jobs/job-work"]
    await case.handle()
    assert case.api.writes[3:] == ["POST jobs/job-work"]


@pytest.mark.parametrize(
    ("owners", "says"),
    [
        ([], "is not this GPUJob's"),
        ([{"uid": "x", "kind": "GPUJob", "name": "other", "controller": True}], "GPUJob other's"),
    ],
)
def test_a_service_of_somebody_else_is_left_alone(owners: list[Any], says: str) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.api.objects[SERVICE] = {"metadata": {"name": "job", "ownerReferences": owners}}
        await case.handle()
        assert case.api.writes == []
        assert case.problem.startswith("metadata.name: a Service named job exists")
        assert says in case.problem

    run()


@virtual
async def test_a_service_of_an_earlier_gpujob_is_waited_for() -> None:
    case = Case()
    earlier = [{"uid": "old", "kind": "GPUJob", "name": "job", "controller": True}]
    case.api.objects[SERVICE] = {"metadata": {"name": "job", "ownerReferences": earlier}}
    await case.handle()
    assert (case.api.writes, case.problem) == ([], "")
    del case.api.objects[SERVICE]
    await case.handle()
    assert case.problem == "" and len(case.api.writes) == 3


@virtual
async def test_a_job_of_another_gpujob_may_bear_a_roles_name() -> None:
    case = Case()
    case.api.objects["jobs/job-work"] = make_job(
        "job-work", owner="job-work", owner_uid="other-uid"
    )
    await case.handle()
    assert "a Job named job-work exists" in case.problem
    assert "is GPUJob job-work's" in case.problem


@virtual
async def test_suspension_reaches_every_role() -> None:
    case = Case()
    await case.handle()
    case.state.gpujob_changed(make_gpujob(roles=ROLES, suspend=True, generation=2))
    await case.handle()
    assert case.api.writes[3:] == [f"PATCH {name}" for name in JOBS]


@virtual
async def test_when_a_role_has_failed_the_others_are_stopped_once() -> None:
    case = Case()
    await case.handle()
    failed = make_job("job-lead", uid="uid-job-lead", owner="job", ended="Failed", version=2)
    case.state.job_changed(failed)
    await case.handle()
    await case.handle()
    assert case.api.writes[3:] == ["PATCH jobs/job-work"]


@virtual
async def test_a_role_that_is_complete_stays_and_the_others_go_on() -> None:
    case = Case()
    await case.handle()
    done = make_job("job-lead", uid="uid-job-lead", owner="job", ended="Complete", version=2)
    case.state.job_changed(done)
    await case.handle()
    assert len(case.api.writes) == 3
    failed = make_job("job-work", uid="uid-job-work", owner="job", ended="Failed", version=3)
    case.state.job_changed(failed)
    await case.handle()
    assert len(case.api.writes) == 3  # nothing is left to be stopped
