"""Pods that hold devices for us: what counts as one, and which must come and go."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_pod, make_project

from gpu_scheduler.api.names import (
    COMPONENT_HOLDER,
    LABEL_COMPONENT,
    LABEL_HOLDS,
    holder_name,
)
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.placeholders import PlaceholderNeed, changes, needed
from gpu_scheduler.state.pods.pod import PodRecord, record

OURS = "gpu-system"
ONE = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]


PLUGIN = dict.fromkeys(("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"), "2")


def make_holder(device: str = "0", node: str = "a", *, of: str = "a", **more: Any) -> Pod:
    """The holder of a device of node `of`, which is on `node`, or waits for it."""
    where = {"namespace": OURS, "path": "other", "job": None, "containers": ONE, **more}
    pod = make_pod(holder_name(of, device), node=node, **where)
    labels = {LABEL_COMPONENT: COMPONENT_HOLDER, LABEL_HOLDS: device}
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)
    )


def make_cluster_state(*pods: Pod) -> ClusterState:
    state = ClusterState(holders_in=OURS)
    for name in ("a", "b"):
        state.nodes.changed(make_node(name, allocatable=PLUGIN))
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob())
    state.job_changed(make_job())
    for pod in pods:
        state.pod_changed(pod)
    return state


def holder(device: str = "0", **more: Any) -> PodRecord:
    return record(make_holder(device, **more), OURS)


def test_a_holder_does_not_close_its_node():
    state = make_cluster_state(make_holder())
    assert [node.unschedulable for node in state.snapshot().nodes] == ["", ""]
    assert [pod.holds for pod in state.pods.placeholders.values()] == ["0"]


def test_a_pod_elsewhere_that_calls_itself_a_holder_does():
    state = make_cluster_state(make_holder(namespace="team-a"))
    assert "team-a" in state.snapshot().nodes[0].unschedulable
    assert state.pods.placeholders == {}


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"]
)
def test_pods_of_others_close_their_node_until_they_have_ended(resource: str):
    requests = [{"resources": {"limits": {resource: "1"}}}]
    stranger = {"path": "other", "job": None, "node": "a", "containers": requests}
    state = make_cluster_state(make_pod("x", **stranger))
    assert state.snapshot().nodes[0].unschedulable == (
        "has GPUs in use by team-a/x, which this scheduler did not place"
    )
    assert state.snapshot().nodes[1].unschedulable == ""
    state.pod_changed(make_pod("x", version=2, phase="Succeeded", **stranger))
    assert state.snapshot().nodes[0].unschedulable == ""


@pytest.mark.parametrize("resource", ["nvidia.com/rdma", "amd.com/gpu", "nvidia.com/gpu-memory"])
def test_other_resources_close_nothing(resource: str):
    requests = [{"resources": {"limits": {resource: "1"}}}]
    state = make_cluster_state(make_pod("x", path="other", job=None, node="a", containers=requests))
    assert state.snapshot().nodes[0].unschedulable == ""


def test_devices_in_use_need_a_holder():
    state = make_cluster_state(make_pod(node="a", devices=half("1")))
    assert needed(state.snapshot(), state.nodes.takes_pods, {}, whole_nodes=False) == {
        holder_name("a", "1"): PlaceholderNeed("a", "1")
    }


def test_or_all_devices_of_a_node_with_one_in_use():
    state = make_cluster_state(make_pod(node="a", devices=half("1")))
    slots = needed(state.snapshot(), state.nodes.takes_pods, {}, whole_nodes=True)
    assert list(slots.values()) == [PlaceholderNeed("a", "0"), PlaceholderNeed("a", "1")]


def test_a_holder_stays_while_somebody_holds_its_device_that_the_node_does_not_list():
    """Otherwise the device plugin's customers are given it, when its GPUNode is deleted."""
    state = make_cluster_state(make_pod(node="a", devices=half("GPU-0")))
    unlisted = state.ledger.unlisted
    slots = needed(state.snapshot(), state.nodes.takes_pods, unlisted, whole_nodes=False)
    assert slots == {holder_name("a", "GPU-0"): PlaceholderNeed("a", "GPU-0", open=False)}
    due = changes(slots, [holder("GPU-0")], {}, 0.0, 0.0)
    assert (due.create, due.delete) == ({}, ())


def test_pods_of_others_do_not_keep_holders_away_but_a_cordon_does():
    requests = {"path": "other", "job": None, "node": "a", "containers": ONE}
    state = make_cluster_state(make_pod(node="a", devices=half("1")), make_pod("x", **requests))
    (slot,) = needed(state.snapshot(), state.nodes.takes_pods, {}, whole_nodes=False).values()
    assert slot.open
    state.nodes.changed(make_node("a", cordoned=True))
    (slot,) = needed(state.snapshot(), state.nodes.takes_pods, {}, whole_nodes=False).values()
    assert not slot.open


def test_one_is_created_for_each_that_has_none():
    slots = {holder_name("a", d): PlaceholderNeed("a", d) for d in "01"}
    due = changes(slots, [holder("1")], {}, 0, 60)
    assert (list(due.create.values()), due.delete) == ([PlaceholderNeed("a", "0")], ())


def test_none_is_created_on_a_node_that_takes_no_pods():
    slots = {holder_name("a", "0"): PlaceholderNeed("a", "0", open=False)}
    assert changes(slots, [], {}, 0, 60).create == {}


def test_an_idle_holder_stays_for_a_while():
    first = changes({}, [holder()], {}, 100, 60)
    assert (first.delete, dict(first.idle_since)) == ((), {holder_name("a", "0"): 100})
    assert changes({}, [holder()], first.idle_since, 159, 60).delete == ()
    assert changes({}, [holder()], first.idle_since, 160, 60).delete == (holder(),)


def test_its_time_starts_anew_once_its_device_was_used_again():
    slots = {holder_name("a", "0"): PlaceholderNeed("a", "0")}
    idle = changes({}, [holder()], {}, 100, 60).idle_since
    used = changes(slots, [holder()], idle, 120, 60).idle_since
    assert used == {}
    assert changes({}, [holder()], used, 170, 60).delete == ()


def test_an_idle_holder_without_a_node_goes_at_once():
    waits = holder(node="")
    assert changes({}, [waits], {}, 0, 60).delete == (waits,)


def test_a_holder_that_was_ended_is_removed_before_there_is_another():
    slots = {holder_name("a", "0"): PlaceholderNeed("a", "0")}
    ended = holder(phase="Failed")
    due = changes(slots, [ended], {}, 0, 60)
    assert (due.create, due.delete) == ({}, (ended,))
    leaving = holder(phase="Failed", deleting=True)
    assert changes(slots, [leaving], {}, 0, 60) == changes(slots, [holder()], {}, 0, 60)
    assert list(changes(slots, [], {}, 0, 60).create) == [holder_name("a", "0")]


DEVICES = st.sampled_from([(node, device) for node in "abc" for device in "0123"])


@given(st.sets(DEVICES), st.sets(DEVICES))
def test_carried_out_without_delay_every_device_in_use_has_one_and_no_other(
    used: set[tuple[str, str]], held: set[tuple[str, str]]
):
    slots = {holder_name(*each): PlaceholderNeed(*each) for each in used}
    pods = [holder(device, node=node, of=node) for node, device in held]
    due = changes(slots, pods, {}, 0, 0)
    left = {pod.name for pod in pods} - {pod.name for pod in due.delete}
    assert left | due.create.keys() == slots.keys()
    assert not left & due.create.keys()
