"""The world counts the pods that are on nodes, and those that it has just put there."""

from tests.unit.state.builders import half, make_pod
from tests.unit.state.worlds import make_world

from gpu_scheduler.core.model.decision import Place
from gpu_scheduler.core.model.peers import PodSelector
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.world import World

ALL = (PodSelector(None, ()),)


def on(world: World) -> dict[str, int]:
    found = world.snapshot().neighbours.count(ALL, staying=False)
    assert found is not None
    return dict(found)


def test_a_pod_counts_from_its_decision_until_it_has_ended() -> None:
    world = make_world(make_pod(uid="p"))
    assert on(world) == {}
    before = world.version
    world.assume(Place(JobKey("team-a/job"), PodUID("p"), "a", half()))
    assert on(world) == {"a": 1} and world.version > before
    world.pod_changed(make_pod(uid="p", version=2))
    assert on(world) == {"a": 1}
    world.pod_changed(make_pod(uid="p", version=3, node="a", grants=half(), phase="Running"))
    assert on(world) == {"a": 1}
    world.pod_changed(make_pod(uid="p", version=4, node="a", grants=half(), phase="Failed"))
    assert on(world) == {}


def test_a_decision_that_is_taken_back_counts_no_more() -> None:
    world = make_world(make_pod(uid="p"))
    world.assume(Place(JobKey("team-a/job"), PodUID("p"), "a", half()))
    world.forget(PodUID("p"), make_pod(uid="p", version=2))
    assert on(world) == {}
    world.assume(Place(JobKey("team-a/job"), PodUID("p"), "a", half()))
    world.forget(PodUID("p"), None)
    assert on(world) == {}


def test_pods_of_others_count_until_they_are_gone() -> None:
    world = make_world(make_pod(uid="d", job=None, path="other", node="a", phase="Running"))
    assert on(world) == {"a": 1}
    world.pod_gone(PodUID("d"))
    assert on(world) == {}
