"""What is compared before a search is spared, and for whom."""

from typing import Any

import pytest
from tests.unit.builders import ClusterBuilder, pod_shape

from gpu_scheduler.core.fit.lone_searches import LoneSearches, NodeState, Soonest, state_of
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.snapshot import Snapshot

FOUND = Soonest((), NodeAllocation(((0, 0, 500, 20224),), 500, 0, 500))


def running_pod(uid: str, **more: Any) -> RunningPod:
    devices = (DeviceAllocation(0, "a/0", 500, 20224),)
    return RunningPod(PodUID(uid), uid, JobKey(f"ns/{uid}"), ProjectName("p"), "a", devices, **more)


def state(snapshot: Snapshot, *pods: RunningPod, coming: object = None) -> NodeState:
    return state_of(snapshot, 0, coming, pods)


def changed(snapshot: Snapshot, what: str) -> NodeState:
    """Of the first node after one thing there has become another."""
    pod, cluster = running_pod("x", since=1.0), snapshot.cluster
    if what == "pods":
        return state(snapshot)
    if what == "coming":
        return state(snapshot, pod, coming=(1,))
    if what == "end":
        return state(snapshot, running_pod("x", since=1.0, ends=9.0))
    if what == "barred":
        snapshot.barred.add(0)
    else:
        getattr(cluster, what)[0] -= 1
    return state(snapshot, pod)


WHATS = (
    *("pods", "coming", "end", "barred", "free_milli", "free_mib", "free_pods"),
    *("free_cpu_milli", "free_memory_bytes", "free_ephemeral_bytes"),
)


@pytest.mark.parametrize("what", WHATS)
def test_what_changes_on_the_node_is_searched_again(what: str) -> None:
    snapshot = Snapshot(ClusterBuilder().node("a", 1).node("b", 1).obj())
    pod_request = PodRequests(snapshot).of(pod_shape(500))
    searches, asked = LoneSearches(), list[int]()

    def search() -> Soonest:
        asked.append(1)
        return FOUND

    before = state(snapshot, running_pod("x", since=1.0))
    snapshot.cluster.free_milli[1] -= 300  # of another node
    snapshot.barred.add(1)
    for again in (before, state(snapshot, running_pod("x", since=1.0))):
        assert searches.find(pod_request, 0, again, search) is FOUND
    assert len(asked) == 1
    assert searches.find(pod_request, 0, changed(snapshot, what), search) is FOUND
    assert len(asked) == 2
