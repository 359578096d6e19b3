"""What is deleted lets go at once, also where somebody's finalizer keeps the object."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import NOT_FOUND
from tests.unit.runtime.informers.test_custom_resources import (
    gpuclass_body,
    gpunode_body,
    project_body,
)
from tests.unit.runtime.jobs.test_reconcile import KEY, Case
from tests.unit.runtime.status.test_states import Row, status_of
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import (
    gpujob_body,
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_pod,
)

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.jobs.creation import FoundJob, FoundMeta
from gpu_scheduler.state.cluster_state import ClusterState

JOB = "/apis/batch/v1/namespaces/team-a/jobs/job"
POD = "/api/v1/namespaces/team-a/pods/job-0"
ANY = ("", "", "")
FOREIGN = ("example.com/wait",)


def runs(version: int = 1, **settings: Any) -> Pod:
    return make_pod(version=version, node="a", devices=half(), phase="Running", **settings)


class Going(Case):
    """A GPUJob that runs."""

    def __init__(self, *finalizers: str, deleting: bool = True, **job: Any) -> None:
        super().__init__(deleting=deleting, finalizers=finalizers)
        self.state.job_changed(make_job(**job))
        self.state.pod_changed(runs())

    def keep_job(self, *finalizers: str, uid: str = "job-uid") -> None:
        self.answers["GET"] = FoundJob(FoundMeta(name="job", uid=uid, finalizers=finalizers))

    @property
    def sent(self) -> list[tuple[str, str]]:
        return [(sent.method, sent.path) for sent in self.client.sent]


@virtual
async def test_the_job_of_a_gpujob_that_is_deleted_and_kept_is_deleted() -> None:
    case = Going(*FOREIGN)
    await case.handle()
    assert [(s.method, s.path, s.body) for s in case.client.sent] == [
        ("DELETE", JOB, {"uid": "job-uid", "propagation": "Background"})
    ]


@pytest.mark.parametrize("how", ["orphan", "foregroundDeletion"])
def test_who_says_what_is_to_become_of_it_is_obeyed(how: str) -> None:
    @virtual
    async def obeyed() -> None:
        case = Going(how, *FOREIGN)
        await case.handle()
        assert case.sent == []

    obeyed()


@virtual
async def test_a_later_gpujob_of_the_name_keeps_its_job() -> None:
    case = Going(*FOREIGN, owner_uid="later-uid")
    await case.handle()
    assert case.sent == []


@virtual
async def test_an_error_is_tried_again_and_what_has_gone_is_none() -> None:
    case = Going(*FOREIGN)
    case.answers["DELETE"] = errors.ServerError(500)
    await case.handle()
    assert await case.keys_within(5) != []
    case.answers["DELETE"] = NOT_FOUND
    await case.handle()


@pytest.mark.parametrize("deleting", [True, False])
def test_pods_of_a_job_that_is_deleted_and_kept_are_deleted_once(deleting: bool) -> None:
    @virtual
    async def ended() -> None:
        case = Going(*(FOREIGN if deleting else ()), deleting=deleting)
        case.state.job_changed(make_job(version=2, deleting=True))
        case.keep_job(*FOREIGN)
        await case.handle()
        assert ("DELETE", POD) in case.sent
        (delete,) = case.client.of("DELETE")
        assert delete.body == {"preconditions": {"uid": "uid-job-0"}}, "with its grace period"
        await case.handle()  # before the watch shows it
        assert len(case.client.of("DELETE")) == 1
        case.client.sent.clear()
        case.state.pod_changed(runs(2, deleting=True))
        await case.handle()
        assert case.client.of("DELETE") == []
        assert case.state.ledger.charges, "the kubelet may still run it"
        case.state.pod_changed(make_pod(version=3, node="a", devices=half(), phase="Failed"))
        assert not case.state.ledger.charges

    ended()


@virtual
async def test_pods_without_a_place_are_left_for_they_are_not_ours_to_delete() -> None:
    case = Going(deleting=False)
    case.state.pod_gone(PodUID("uid-job-0"))
    for number in range(3):
        placed = {"node": "a", "devices": half(), "phase": "Running"} if number == 1 else {}
        case.state.pod_changed(make_pod(f"job-{number}", index=number, **placed))
    case.state.decisions.assume(make_assignment("job-2", half("1")))
    case.state.job_changed(make_job(version=2, deleting=True))
    case.keep_job(*FOREIGN)
    await case.handle()
    assert [path for method, path in case.sent if method == "DELETE"] == [POD[:-1] + "1"]
    case.state.pod_changed(make_pod("job-2", version=2, node="a", devices=half(), index=2))
    assert await case.keys_within(5) != [], "one whose placement was under way is looked for"
    await case.handle()
    assert ("DELETE", POD[:-1] + "2") in case.sent


@virtual
async def test_so_are_those_of_a_job_whose_gpujob_has_gone() -> None:
    case = Going(deleting=False)
    case.state.job_changed(make_job(version=2, deleting=True))
    case.keep_job(*FOREIGN)
    case.state.gpujob_gone(KEY)
    await case.handle()
    assert ("DELETE", POD) in case.sent


@pytest.mark.parametrize("finalizers", [("orphan",), ("foregroundDeletion", *FOREIGN)])
def test_pods_of_a_job_that_the_collector_deals_with_are_left_to_it(finalizers: Any) -> None:
    @virtual
    async def left() -> None:
        case = Going(deleting=False)
        case.state.job_changed(make_job(version=2, deleting=True))
        case.keep_job(*finalizers)
        await case.handle()
        assert case.client.of("DELETE") == []

    left()


@virtual
async def test_another_job_of_the_name_has_pods_of_its_own() -> None:
    case = Going(deleting=False)
    case.state.job_changed(make_job(version=2, deleting=True))
    case.keep_job(*FOREIGN, uid="another")
    await case.handle()
    assert case.client.of("DELETE") == []


def test_the_status_says_what_ends_and_who_keeps_the_object() -> None:
    kept = make_gpujob(deleting=True, finalizers=FOREIGN)
    status = status_of(Row(ANY, kept, (make_job(),), (runs(deleting=True),)))
    assert (status.phase, status.reason) == ("Running", "Deleting")
    assert status.message == (
        "it is being deleted: job-0 is ending; metadata.finalizers has example.com/wait: the "
        "object stays until whoever set that removes it"
    )
    status = status_of(Row(ANY, kept))
    assert (status.phase, status.reason) == ("Pending", "Deleting")
    assert "nothing of it runs any more; metadata.finalizers has example.com/wait" in status.message
    going = make_gpujob(deleting=True, finalizers=("foregroundDeletion",))
    assert status_of(Row(ANY, going)).message.endswith("nothing of it runs any more")
    over = Row(ANY, kept, (), before={"phase": "Succeeded"})
    assert status_of(over).phase == "Succeeded"


@virtual
async def test_a_project_a_class_and_a_node_that_are_kept_are_in_force_until_they_go() -> None:
    """Nothing runs on their behalf that could end, and nobody else may have what they promise."""
    bodies = {"project": project_body(quota=2), "gpuclass": gpuclass_body(), "node": gpunode_body()}
    alive, kept = ClusterState(), ClusterState()
    for state, more in (
        (alive, {}),
        (kept, {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": list(FOREIGN)}),
    ):
        told = CustomResources(state, changed=lambda key: None)
        for kind, body in bodies.items():
            getattr(told, kind)({**body, "metadata": {**body["metadata"], **more}})
    assert kept.planner_projects() == alive.planner_projects() != {}
    assert kept.classes.records == alive.classes.records != {}
    assert kept.nodes.agents.devices == alive.nodes.agents.devices != {}


def test_a_finalizer_that_comes_or_goes_is_seen_and_told() -> None:
    case = Going(deleting=False)
    told = CustomResources(case.state, changed=lambda key: None)
    told.gpujob(gpujob_body(version=5))
    case.state.changes.take_touched()
    told.gpujob(gpujob_body(version=6, finalizers=FOREIGN))
    assert case.state.gpujobs[KEY].kept_by == list(FOREIGN)
    assert KEY in case.state.changes.take_touched()
    told.gpujob(gpujob_body(version=7, finalizers=FOREIGN, deleting=True, generation=2))
    assert case.state.gpujobs[KEY].deleting and KEY in case.state.changes.take_touched()
