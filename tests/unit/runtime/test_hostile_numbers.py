"""Numbers that nobody would believe, from watch events to a plan: they harm their object alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_pod, make_project

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.objects import Node, Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import from_gpunode

POLICIES = pytest.mark.parametrize("packing", list(Packing))
HUGE = ("10P", "9E", "9223372036854775807", "16Ei", "1e300", "9" * 40)
MODEST = ("0", "1n", "1", "-1", "", "much")  # or nothing that has a right to room
AMOUNTS = st.sampled_from((*MODEST, "63", "64", "65", *HUGE))


def healthy(*more: Pod, nodes: tuple[Node, ...] = ()) -> ClusterState:
    """Nodes a and b with two GPUs each; three pods of team-a wait, and what is ``more``."""
    state = ClusterState()
    for node in (make_node("a"), make_node("b"), *nodes):
        state.nodes.changed(node)
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob(parallelism=3))
    state.job_changed(make_job(parallelism=4, completions=3))
    for index in range(3):
        state.pod_changed(make_pod(f"job-{index}", index=index))
    for pod in more:
        state.pod_changed(pod)
    return state


def planned(state: ClusterState, packing: Packing, session: PlannerCache | None = None) -> Plan:
    return plan(
        PlanInput(
            state.snapshot(),
            state.planner_projects(),
            state.waiting_jobs(),
            running_pods=state.running_pods,
            packing=packing,
        ),
        session or PlannerCache(),
    )


def placed(result: Plan) -> set[str]:
    return {place.pod for place in result.assignments if place.pod.startswith("uid-job-")}


def check_capacity(state: ClusterState, result: Plan) -> None:
    """No device is given more than it has, and no share is of no memory."""
    cluster = state.snapshot()
    free = {
        (node.name, cluster.dev_id[d]): (max(0, cluster.free_milli[d]), max(0, cluster.free_mib[d]))
        for n, node in enumerate(cluster.nodes)
        for d in range(cluster.first[n], cluster.first[n + 1])
    }
    for place in result.assignments:
        for allocated in place.devices:
            assert allocated.mib > 0
            milli, mib = free[place.node, allocated.device]
            assert allocated.milli <= milli
            assert allocated.mib <= mib
            free[place.node, allocated.device] = milli - allocated.milli, mib - allocated.mib


def by_hand(node: str, cpu: str = "1", memory: str = "1Gi", name: str = "hand") -> Pod:
    """A pod of nobody that somebody bound."""
    return make_pod(name, path="other", job=None, node=node, cpu=cpu, memory=memory)


@POLICIES
def test_a_pod_bound_by_hand_that_asks_for_more_cpu_than_its_node_has(packing: Packing) -> None:
    session, state = PlannerCache(), healthy()
    planned(state, packing, session)  # what comes now changes a node that has been scored
    for requests in ({"cpu": "65"}, {"memory": "257Gi"}):
        hand = by_hand("a", **requests, name=f"more-{min(requests)}")
        state.pod_changed(hand)
        result = planned(state, packing, session)
        assert placed(result) == {"uid-job-0", "uid-job-1", "uid-job-2"}
        assert {place.node for place in result.assignments} == {"b"}
        state.pod_gone(PodUID(hand.metadata.uid))


@POLICIES
def test_allocatable_that_was_lowered_under_running_pods(packing: Packing) -> None:
    session = PlannerCache()
    state = healthy(make_pod("runs", node="a", devices=half(), phase="Running", cpu="32"))
    planned(state, packing, session)
    for change in ({"cpu": "16"}, {"memory": "1Mi"}, {"pods": "0"}):
        state.nodes.changed(make_node("a", **change))
        result = planned(state, packing, session)
        assert {place.node for place in result.assignments} == {"b"}
        check_capacity(state, result)


@POLICIES
@pytest.mark.parametrize("amount", HUGE)
def test_a_job_that_asks_for_more_than_any_number_holds_is_unsatisfiable(
    packing: Packing, amount: str
) -> None:
    state = healthy()
    state.gpujob_changed(make_gpujob("huge", uid="huge"))
    state.job_changed(make_job("huge", uid="huge-job", owner_uid="huge"))
    state.pod_changed(make_pod("huge-0", job="huge-job", cpu=amount, memory=amount))
    result = planned(state, packing)
    assert placed(result) == {"uid-job-0", "uid-job-1", "uid-job-2"}
    (wait,) = result.waits
    assert (wait.job, wait.reason) == ("team-a/huge", "Unsatisfiable")


@POLICIES
@pytest.mark.parametrize("amount", HUGE)
def test_a_pod_without_a_gpu_that_is_bound_by_hand_and_asks_for_too_much(
    packing: Packing, amount: str
) -> None:
    result = planned(healthy(by_hand("a", amount, amount)), packing)
    assert placed(result) == {"uid-job-0", "uid-job-1", "uid-job-2"}
    assert {place.node for place in result.assignments} == {"b"}


@POLICIES
def test_what_saturates_does_not_fit_on_what_saturates(packing: Packing) -> None:
    state = ClusterState()
    state.nodes.changed(make_node("a", cpu="9E", memory="16Ei"))
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob())
    state.job_changed(make_job())
    state.pod_changed(make_pod(cpu="8E", memory="15Ei"))
    assert not planned(state, packing).assignments


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A node x that says anything of itself."""
    numbers = st.sampled_from(("0", "1", "2", "64", "65", "999", "1000", "40960", "-1", "x", *HUGE))
    labels = {f"nvidia.com/gpu.{name}": draw(numbers) for name in ("count", "memory")}
    labels["nvidia.com/gpu.compute.major"] = draw(numbers)
    taken = {name: draw(AMOUNTS) for name in ("cpu", "memory", "pods")}
    node = make_node("x", labels=labels, cordoned=draw(st.booleans()), **taken)
    node.status.allocatable["ephemeral-storage"] = draw(AMOUNTS)
    return node


@st.composite
def reports(draw: st.DrawFn) -> dict[str, Any]:
    """The status of a GPUNode, whatever wrote it."""
    numbers = st.one_of(
        st.sampled_from((0, -1, 1, 999, 1000, 40960, 10**30, "x", None, 1e300, True)),
        st.integers(),
    )
    devices = st.fixed_dictionaries(
        {
            "uuid": st.sampled_from(("GPU-0", "GPU-1", "", 3)),
            "index": numbers,
            "model": st.just("m"),
        }
        | {"usableMiB": numbers, "computeCapability": st.sampled_from(("8.0", "x", "9" * 99, 7))},
        optional={"healthy": st.booleans(), "message": st.just("lost")},
    )
    return {"devices": draw(st.lists(devices, max_size=4))}


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    """A pod that waits, runs or was bound by hand, and asks for anything."""
    at = draw(st.sampled_from(("", "x", "nowhere")))
    amounts = AMOUNTS if at else st.sampled_from((*MODEST, *HUGE))
    requests = {name: draw(amounts) for name in ("cpu", "memory", "ephemeral-storage")}
    containers = [{"resources": {"requests": requests}}] * draw(st.integers(1, 3))
    job = draw(st.sampled_from(("bad-job", None)))
    devices = half("0", draw(st.sampled_from((1, 500, 1000)))) if at and draw(st.booleans()) else ()
    return make_pod(name, job=job, node=at, containers=containers, devices=devices)


@pytest.mark.long
@POLICIES
@settings(max_examples=100)
@given(data=st.data())
def test_whatever_numbers_say_healthy_jobs_start_as_if_they_were_not_there(
    packing: Packing, data: st.DataObject
) -> None:
    state, session = healthy(), PlannerCache()
    state.gpujob_changed(make_gpujob("bad", uid="bad", parallelism=3))
    state.job_changed(make_job("bad", uid="bad-job", owner_uid="bad", completions=3))
    for step in range(2):  # made anew, and kept from the cycle before
        state.nodes.changed(data.draw(nodes()))
        if data.draw(st.booleans()):
            state.nodes.reported("x", from_gpunode(data.draw(reports())))
        for n in range(2):
            state.pod_changed(data.draw(pods(f"bad-{step}-{n}")))
        result = planned(state, packing, session)
        check_capacity(state, result)
        ours = {pod.uid for job in state.waiting_jobs() for pod in job.pods}
        assert ours >= {"uid-job-0", "uid-job-1", "uid-job-2"}
        assert placed(result) == {"uid-job-0", "uid-job-1", "uid-job-2"}
