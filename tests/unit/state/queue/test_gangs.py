"""Gangs as the planner sees them: who is missing, and where the others are."""

from typing import Any

from tests.unit.state.builders import (
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)

from gpu_scheduler.core.model.request import (
    DeviceRequest,
    Gang,
    JobKey,
    PodUID,
    Topology,
    WaitingJob,
)
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState

ROLES = [{"name": "lead", "gpu": 1}, {"name": "work", "replicas": 2, "gpu": 0.5, "image": "w:1"}]


def member(role: str, index: int = 0, **settings: Any) -> Pod:
    return make_pod(f"{role}-{index}", job=f"uid-{role}", index=index, **settings)


def make_gang(*pods: Pod, **spec: Any) -> ClusterState:
    state = ClusterState()
    state.project_changed(make_project())
    for name in "ab":
        state.nodes.changed(make_node(name))
    state.gpujob_changed(make_gpujob(gpu=None, **{"roles": ROLES, **spec}))
    for role in ROLES:
        name = str(role["name"])
        state.job_changed(make_job(f"job-{name}", uid=f"uid-{name}", owner="job", parallelism=4))
    for pod in pods:
        state.pod_changed(pod)
    return state


def waiting(state: ClusterState) -> WaitingJob:
    (job,) = state.waiting_jobs()
    return job


def gang(state: ClusterState) -> Gang:
    found = waiting(state).gang
    assert found is not None
    return found


def test_members_wait_in_the_order_of_their_ranks_each_with_what_its_role_asks_for() -> None:
    state = make_gang(member("work", 1), member("work", 0), member("lead"))
    job = waiting(state)
    assert [(pod.name, pod.role) for pod in job.pods] == [
        ("lead-0", "lead"),
        ("work-0", "work"),
        ("work-1", "work"),
    ]
    assert [pod.pod_shape.devices for pod in job.pods] == [
        (DeviceRequest(0, 1, 1000),),
        (DeviceRequest(0, 1, 500),),
        (DeviceRequest(0, 1, 500),),
    ]
    assert job.gang == Gang(missing=3, size=3)


def test_models_are_those_of_the_role() -> None:
    roles = [{"name": "lead", "gpu": 1, "gpuModels": ["T4"]}, {"name": "work", "gpu": 1}]
    state = make_gang(member("lead"), member("work"), roles=roles, gpuModels=["K80"])
    assert [pod.pod_shape.models for pod in waiting(state).pods] == [("t4",), ("k80",)]


def test_members_that_do_not_exist_yet_are_missing_too() -> None:
    assert gang(make_gang(member("lead"))).missing == 3


def test_members_that_hold_devices_say_where() -> None:
    state = make_gang(member("lead", node="a", devices=half("1")), member("work"))
    assert gang(state) == Gang(2, 3, nodes=frozenset("a"), devices=frozenset("1"))
    state.decisions.assume(make_assignment("work-0", "b", half("0")))
    state.pod_changed(member("work", 1))
    assert gang(state) == Gang(1, 3, nodes=frozenset("ab"), devices=frozenset("01"))


def test_a_member_on_its_way_out_is_missing() -> None:
    state = make_gang(
        member("lead", node="a", devices=half(), deleting=True, phase="Running"), member("work")
    )
    assert gang(state) == Gang(3, 3)


def test_a_member_that_has_succeeded_is_not_missing_whoever_says_so_first() -> None:
    state = make_gang(
        member("lead"),
        member("work", 0, node="a", devices=half(), phase="Succeeded"),
        member("work", 1),
    )
    assert gang(state).missing == 2
    counted = make_job(
        "job-work", uid="uid-work", owner="job", version=2, completions=2, completed_indexes="0-1"
    )
    state.pod_gone(PodUID("uid-work-1"))
    state.job_changed(counted)
    assert gang(state).missing == 1


def test_a_member_that_has_failed_is_missing() -> None:
    state = make_gang(member("lead"), member("work", node="a", devices=half(), phase="Failed"))
    assert gang(state).missing == 3


def test_a_placement_that_is_taken_back_makes_the_member_miss_again() -> None:
    pod = member("work")
    state = make_gang(member("lead"), pod, member("work", 1))
    state.decisions.assume(make_assignment("work-0", "a"))
    assert gang(state).missing == 2
    state.forget(PodUID("uid-work-0"), pod)
    assert gang(state) == Gang(3, 3)


def test_what_the_spec_says_of_the_gang_reaches_the_planner() -> None:
    key = {"key": "zone", "mode": "preferred"}
    state = make_gang(member("lead"), topology=key, distinctGPUs=False)
    assert gang(state) == Gang(3, 3, distinct=False, topology=Topology("zone", required=False))
    assert gang(make_gang(member("lead"), topology={"key": "zone"})).topology == Topology("zone")


def test_roles_whose_pods_start_one_by_one_are_no_gang() -> None:
    assert waiting(make_gang(member("lead"), gang=False)).gang is None


def test_a_gang_without_roles() -> None:
    state = ClusterState()
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob(gang=True, parallelism=2))
    state.job_changed(make_job(parallelism=4))
    state.pod_changed(make_pod())
    job = waiting(state)
    assert (job.gang, job.pods[0].role) == (Gang(2, 2), "")


def test_what_did_not_change_is_not_worked_out_again() -> None:
    state = make_gang(member("lead"), member("work"))
    first = waiting(state)
    assert waiting(state) is first
    state.pod_changed(member("work", 1, version=2, node="a", devices=half()))
    assert waiting(state) is not first


def test_members_that_hold_devices_are_known_as_members() -> None:
    state = make_gang(member("lead", node="a", devices=half()))
    (held,) = state.running_pods.on("a")
    assert held.gang and held.job == JobKey("team-a/job")
