"""A pod of the device plugin holds only what its node advertises."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import half, make_node, make_pod
from tests.unit.state.cluster_states import facts, make_cluster_state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.plugin import served
from gpu_scheduler.state.pods.pod import Stage

SHARED, WHOLE = "nvidia.com/gpu.x", "nvidia.com/gpu"


def pause(resource: str, amount: str = "1", **more: Any) -> Any:
    """A pod that names its node and asks for GPUs past us."""
    asking = [{"resources": {"limits": {resource: amount}}}]
    return make_pod("pause", path="other", job=None, node="a", containers=asking, **more)


def unschedulable(state: ClusterState) -> str:
    return state.snapshot().nodes[0].unschedulable


def test_a_resource_that_the_node_does_not_have_closes_nothing() -> None:
    state = make_cluster_state(pause(SHARED))
    state.nodes.changed(make_node("a", allocatable={WHOLE: "2"}))
    assert unschedulable(state) == ""


@pytest.mark.parametrize("amount", ["2", "0"])
def test_one_that_the_node_has_closes_it_be_it_with_amount_zero(amount: str) -> None:
    """The kubelet reports 0 while the plugin restarts, and pods keep what they have."""
    state = make_cluster_state(pause(WHOLE))
    state.nodes.changed(make_node("a", allocatable={WHOLE: amount}))
    assert (
        unschedulable(state)
        == "has GPUs in use by team-a/pause, which this scheduler did not place"
    )


@pytest.mark.parametrize("amount", ["3", "10P"])
def test_a_pod_that_asks_for_more_than_there_is_holds_nothing_once_it_is_rejected(
    amount: str,
) -> None:
    state = make_cluster_state(pause(WHOLE, amount))
    state.nodes.changed(make_node("a", allocatable={WHOLE: "2"}))
    state.pod_changed(pause(WHOLE, amount, version=2, phase="Failed", reason="OutOfnvidia.com/gpu"))
    assert unschedulable(state) == ""


def test_the_answer_follows_what_the_node_advertises() -> None:
    state = make_cluster_state(pause(WHOLE))
    before = state.changes.version
    state.nodes.changed(make_node("a", allocatable={WHOLE: "2"}))
    assert unschedulable(state) and state.changes.version > before
    before = state.changes.version
    state.nodes.changed(make_node("a"))
    assert unschedulable(state) == "" and state.changes.version > before


def test_a_gpujobs_pod_that_asks_the_plugin_as_well_is_not_placed() -> None:
    """Rendering refuses it, so somebody else made this pod, or its Job."""
    asking = [{"resources": {"limits": {WHOLE: "1"}}}]
    state = make_cluster_state(make_pod(containers=asking))
    (pod,) = state.pods.known.values()
    assert pod.stage is Stage.BLOCKED
    assert pod.blocked == "pod job-0 asks the device plugin for nvidia.com/gpu as well"
    assert not state.waiting_jobs()
    state.pod_changed(make_pod(containers=asking, version=2, node="a", devices=half()))
    assert unschedulable(state) == ""
    state.nodes.changed(make_node("a", allocatable={WHOLE: "2"}))
    assert "team-a/job-0" in unschedulable(state), "nobody knows which GPU it got beside ours"


def test_only_gpus_of_the_plugin_are_served() -> None:
    more = {WHOLE: "2", SHARED: "1", "nvidia.com/mig-1g.5gb": "7", "nvidia.com/nic": "1"}
    assert served(make_node("a", allocatable=more)) == {WHOLE, SHARED, "nvidia.com/mig-1g.5gb"}


EVENTS: list[Callable[[ClusterState], object]] = [
    lambda w: w.pod_changed(pause(WHOLE)),
    lambda w: w.nodes.changed(make_node("a")),
    lambda w: w.nodes.changed(make_node("a", allocatable={WHOLE: "2"})),
    lambda w: w.nodes.gone("a"),
    lambda w: w.pod_changed(make_pod(node="a", devices=half())),
]


@given(st.lists(st.sampled_from(range(len(EVENTS))), max_size=12), st.sets(st.integers(0, 11)))
def test_the_order_of_pod_node_and_resource_does_not_matter(
    order: list[int], looks: set[int]
) -> None:
    state = ClusterState()
    for step, number in enumerate(order):
        EVENTS[number](state)
        if step in looks:
            facts(state)
    nodes = [number for number in order if number in (1, 2, 3)]
    there, has = nodes[-1:] not in ([], [3]), nodes[-1:] == [2]
    assert len(state.snapshot().nodes) == there
    if there:
        assert bool(unschedulable(state)) == (has and 0 in order)
    state.pod_gone(PodUID("uid-pause"))
    assert not any(node.unschedulable for node in state.snapshot().nodes)
