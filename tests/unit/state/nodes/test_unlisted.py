"""A device that somebody holds and its node does not list closes the node; nothing is guessed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import half, make_assignment, make_node, make_pod
from tests.unit.state.cluster_states import facts, free, make_cluster_state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice, from_gpunode, ids_by_name

POD = PodUID("uid-job-0")


def gpus(*ids: str, first: int = 0, usable_mib: int = 40960) -> tuple[NodeDevice, ...]:
    return tuple(NodeDevice(id_, i, "A100", usable_mib) for i, id_ in enumerate(ids, first))


def on(device: str, name: str = "job-0", milli: int = 500, **more: Any) -> Pod:
    return make_pod(name, node="a", devices=half(device, milli), phase="Running", **more)


def unschedulable(state: ClusterState) -> str:
    return state.snapshot().nodes[0].unschedulable


def lost(state: ClusterState) -> dict[str, dict[str, int]]:
    return {node: dict(held) for node, held in state.ledger.unlisted.items()}


def with_agent(*pods: Pod) -> ClusterState:
    """Node a with GPU-0 and GPU-1 by its agent, and these pods."""
    state = make_cluster_state()
    state.nodes.reported("a", gpus("GPU-0", "GPU-1"))
    for pod in pods:
        state.pod_changed(pod)
    assert unschedulable(state) == "" and lost(state) == {}
    return state


LOST = (
    "lists 2 GPUs, but not those of 1 pod (team-a/job-0 holds 0.5 of GPU-0), and takes no others "
    "until its GPUNode or its labels list them again or these pods are gone"
)


# --- the GPUNode is lost ---


def test_a_node_without_its_gpunode_is_closed_while_pods_hold_what_it_named() -> None:
    state = with_agent(on("GPU-0"))
    state.nodes.report_gone("a")
    assert unschedulable(state) == LOST
    assert lost(state) == {"a": {"GPU-0": 500}}


def test_it_is_open_again_when_the_gpunode_is_back() -> None:
    state = with_agent(on("GPU-0"))
    state.nodes.report_gone("a")
    state.nodes.reported("a", gpus("GPU-0", "GPU-1"))
    assert (unschedulable(state), lost(state), free(state)) == ("", {}, [500, 1000])


@pytest.mark.parametrize("end", ["gone", "ended"])
def test_or_when_those_pods_are_gone(end: str) -> None:
    state = with_agent(on("GPU-0"), on("GPU-0", "job-1"))
    state.nodes.report_gone("a")
    assert "but not those of 2 pods" in unschedulable(state)
    for name in ("job-0", "job-1"):
        assert unschedulable(state)
        before = state.changes.version
        if end == "gone":
            state.pod_gone(PodUID(f"uid-{name}"))
        else:
            state.pod_changed(
                make_pod(name, version=2, node="a", devices=half("GPU-0"), phase="Failed")
            )
        assert state.changes.version > before
    assert (unschedulable(state), lost(state), free(state)) == ("", {}, [1000, 1000])


def test_pods_that_hold_nothing_of_it_close_nothing() -> None:
    state = with_agent(make_pod("x", path="other", job=None, node="a"))
    state.nodes.report_gone("a")
    assert unschedulable(state) == ""


def test_a_leader_that_never_saw_the_gpunode_knows_it_by_the_allocations_alone() -> None:
    """Annotations are the only ledger."""
    state = with_agent(on("GPU-0"))
    state.nodes.report_gone("a")
    assert facts(make_cluster_state(on("GPU-0"))) == facts(state)


def test_a_decision_under_way_counts_as_what_is_held() -> None:
    state = with_agent(make_pod())
    state.decisions.assume(make_assignment(devices=half("GPU-1")))
    state.nodes.report_gone("a")
    assert "team-a/job-0 holds 0.5 of GPU-1" in unschedulable(state)
    state.forget(POD, make_pod())
    assert unschedulable(state) == ""


def test_a_node_that_is_registered_again_without_its_gpunode_stays_closed() -> None:
    state = with_agent(on("GPU-0"))
    state.nodes.gone("a")
    assert lost(state) == {"a": {"GPU-0": 500}}  # nobody lists them
    state.nodes.report_gone("a")
    state.nodes.changed(make_node("a"))
    assert unschedulable(state) == LOST
    state.nodes.reported("a", gpus("GPU-0", "GPU-1"))
    assert (unschedulable(state), free(state)) == ("", [500, 1000])


# --- the GPUNode says something else ---


@pytest.mark.parametrize(
    "after",
    [
        gpus("GPU-8", "GPU-9"),  # other identifiers
        gpus("GPU-1", first=1),  # one has vanished
        (),
        gpus("GPU-9", "GPU-1"),  # a card was replaced
    ],
)
def test_devices_that_a_report_no_longer_has_close_the_node_while_they_are_held(
    after: tuple[NodeDevice, ...],
) -> None:
    state = with_agent(on("GPU-0"), on("GPU-1", "job-1"))
    state.nodes.reported("a", after)
    assert "team-a/job-0 holds 0.5 of GPU-0" in unschedulable(state)
    state.pod_gone(POD)
    known = any(device.id == "GPU-1" for device in after)
    assert bool(unschedulable(state)) != known
    state.pod_gone(PodUID("uid-job-1"))
    assert unschedulable(state) == "" and free(state) == [1000] * len(after)


def test_what_is_held_counts_when_less_memory_is_usable_than_was() -> None:
    state = with_agent(on("GPU-0", milli=1000))
    state.nodes.reported("a", gpus("GPU-0", "GPU-1", usable_mib=30000))
    assert unschedulable(state) == ""
    assert state.snapshot().free_mib == [30000 - 40960, 30000]


def test_a_gpunode_of_a_node_that_does_not_exist_waits_for_it() -> None:
    state = ClusterState()
    state.nodes.reported("a", gpus("GPU-0"))
    assert state.snapshot().nodes == []
    state.nodes.changed(make_node("a"))
    assert state.snapshot().dev_id == ["GPU-0"]


# --- by index and by UUID ---


def test_an_index_that_two_devices_have_is_none() -> None:
    doubtful = (*gpus("GPU-0", "GPU-1"), NodeDevice("GPU-2", 1, "A100", 40960))
    assert ids_by_name(doubtful) == {"GPU-0": "GPU-0", "0": "GPU-0", "GPU-1": "GPU-1"} | {
        "GPU-2": "GPU-2"
    }
    state = make_cluster_state(on("1"))
    state.nodes.reported("a", doubtful)
    assert "team-a/job-0 holds 0.5 of GPU 1" in unschedulable(state)


def test_an_index_is_the_devices_number_and_not_its_place_in_the_report() -> None:
    state = make_cluster_state(on("1"))
    state.nodes.reported("a", gpus("GPU-1", "GPU-2", first=1))
    assert (unschedulable(state), free(state)) == ("", [500, 1000])
    state.pod_changed(on("0", "job-1"))
    assert "team-a/job-1 holds 0.5 of GPU 0" in unschedulable(state)


def test_the_planner_sees_who_holds_a_device_under_the_name_that_it_has_now() -> None:
    state = make_cluster_state(on("1"))

    def held() -> list[str]:
        return [g.device for pod in state.running_pods.on("a") for g in pod.devices]

    assert held() == ["1"]
    state.nodes.reported("a", gpus("GPU-1", "GPU-2", first=1))
    assert held() == ["GPU-1"]
    state.nodes.reported("a", gpus("GPU-7", first=7))
    assert held() == ["1"]


def test_a_label_that_says_less_than_is_held_closes_the_node() -> None:
    state = make_cluster_state(on("1"))
    state.nodes.changed(make_node("a", gpus=1))
    assert "lists 1 GPU, but not those of 1 pod (team-a/job-0 holds 0.5 of GPU 1)" in unschedulable(
        state
    )


# --- reports that cannot be read ---

GOOD = {"uuid": "GPU-0", "index": 0, "model": "A100", "usableMiB": 40960, "healthy": True}


@pytest.mark.parametrize(
    "bad",
    [None, "x", {}, {**GOOD, "uuid": ""}, {**GOOD, "uuid": "1"}, {**GOOD, "usableMiB": "many"}],
)
def test_an_entry_that_cannot_be_read_is_no_device_and_closes_the_node_if_it_was_held(
    bad: object,
) -> None:
    assert from_gpunode({"devices": [bad]}) == ()
    state = with_agent(on("GPU-0"))
    state.nodes.reported("a", from_gpunode({"devices": [bad, {**GOOD, "uuid": "GPU-1"}]}))
    assert unschedulable(state) == LOST.replace("2 GPUs", "1 GPU")


def test_a_device_that_is_there_twice_is_one() -> None:
    twice = from_gpunode({"devices": [GOOD, {**GOOD, "index": 1}]})
    assert [(d.id, d.index) for d in twice] == [("GPU-0", 0)]


@pytest.mark.parametrize("status", [None, {}, {"devices": None}, {"devices": []}])
def test_a_status_that_was_taken_away_gives_nothing_away(status: Any) -> None:
    state = make_cluster_state()
    custom_resources = CustomResources(state, changed=lambda key: None)
    meta = {"name": "a", "uid": "gpunode", "resourceVersion": "1"}
    custom_resources.node({"metadata": meta, "status": {"devices": [GOOD]}})
    state.pod_changed(on("GPU-0"))
    assert unschedulable(state) == ""
    custom_resources.node({"metadata": {**meta, "resourceVersion": "2"}, "status": status})
    assert "team-a/job-0 holds 0.5 of GPU-0" in unschedulable(state)


# --- what is said, and what counts ---


def test_the_sentence_names_a_few_and_how_many_more_there_are() -> None:
    state = make_cluster_state(*(on("GPU-0", f"job-{i}", 100, index=i) for i in range(5)))
    assert "not those of 5 pods (team-a/job-0 holds 0.1 of GPU-0, " in unschedulable(state)
    assert "team-a/job-2 holds 0.1 of GPU-0 and 2 more)" in unschedulable(state)


def test_what_kubernetes_says_of_the_node_comes_first() -> None:
    state = make_cluster_state(on("GPU-0"))
    state.nodes.changed(make_node("a", cordoned=True))
    assert unschedulable(state) == "is cordoned"
    assert state.snapshot().nodes[0].foreign  # nobody is told that its GPUs are free


def test_a_project_holds_what_it_holds_also_by_model() -> None:
    state = with_agent(on("GPU-0"))
    before = state.snapshot().held_by_model
    state.nodes.reported("a", gpus("GPU-8"))
    assert state.snapshot().held_by_model == before == {("team-a", "A100"): 500}


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_the_order_of_events_does_not_matter(order: list[int], looks: set[int]) -> None:
    def play(order: list[int], looks: set[int]) -> dict[str, Any]:
        state = make_cluster_state()
        events = [
            lambda: state.pod_changed(on("GPU-0")),
            lambda: state.pod_changed(on("1", "job-1", index=1)),
            lambda: state.nodes.changed(make_node("a", gpus=4)),
            lambda: state.nodes.reported("b", gpus("GPU-7")),
            lambda: state.pod_changed(on("GPU-7", "job-2", index=2)),
        ]
        for step, number in enumerate(order):
            events[number]()
            if step in looks:
                facts(state)
        return facts(state)

    assert play(order, looks) == play(list(range(5)), set())
