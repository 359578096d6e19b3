"""The state counts the pods that are on nodes, and those that it has just put there."""

from tests.unit.state.builders import half, make_pod
from tests.unit.state.cluster_states import make_cluster_state

from gpu_scheduler.core.model.affinity import PodSelector
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.cluster_state import ClusterState

ALL = (PodSelector(None, ()),)


def on(state: ClusterState) -> dict[str, int]:
    found = state.snapshot().placed_pods.count(ALL, staying=False)
    assert found is not None
    return dict(found)


def test_a_pod_counts_from_its_decision_until_it_has_ended() -> None:
    state = make_cluster_state(make_pod(uid="p"))
    assert on(state) == {}
    before = state.changes.version
    state.decisions.assume(Assignment(JobKey("team-a/job"), PodUID("p"), "a", half()))
    assert on(state) == {"a": 1} and state.changes.version > before
    state.pod_changed(make_pod(uid="p", version=2))
    assert on(state) == {"a": 1}
    state.pod_changed(make_pod(uid="p", version=3, node="a", devices=half(), phase="Running"))
    assert on(state) == {"a": 1}
    state.pod_changed(make_pod(uid="p", version=4, node="a", devices=half(), phase="Failed"))
    assert on(state) == {}


def test_a_decision_that_is_taken_back_counts_no_more() -> None:
    state = make_cluster_state(make_pod(uid="p"))
    state.decisions.assume(Assignment(JobKey("team-a/job"), PodUID("p"), "a", half()))
    state.forget(PodUID("p"), make_pod(uid="p", version=2))
    assert on(state) == {}
    state.decisions.assume(Assignment(JobKey("team-a/job"), PodUID("p"), "a", half()))
    state.forget(PodUID("p"), None)
    assert on(state) == {}


def test_pods_of_others_count_until_they_are_gone() -> None:
    state = make_cluster_state(make_pod(uid="d", job=None, path="other", node="a", phase="Running"))
    assert on(state) == {"a": 1}
    state.pod_gone(PodUID("d"))
    assert on(state) == {}
