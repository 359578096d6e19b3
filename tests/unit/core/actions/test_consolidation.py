"""Consolidation: fractional pods move together so that who needs several GPUs can start."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.test_gang_play import members
from tests.unit.parts import in_parts

from gpu_scheduler.core.model.decision import EvictReason, ReservationReason
from gpu_scheduler.core.model.request import PodShape, PodUID, ProjectName

HALF, ONE, PAIR = pod_shape(500), pod_shape(1000), pod_shape(1000, count=2)


def scattered(*, consolidate: bool = True, quota: int = 4000) -> Play:
    """Two nodes with two GPUs each, and a half used on each node."""
    play = Play((2, 2), projects(project("p", quota), project("q", 4000)))
    play.consolidate = consolidate
    play.place(Pod("a", "q", HALF), "n0/0", milli=500)
    play.place(Pod("b", "q", HALF), "n1/0", milli=500)
    return play


def changed(play: Play, name: str, **about: object) -> None:
    uid = PodUID(f"{name}-0")
    pod, running_pod = play.running[uid]
    play.running[uid] = pod, replace(running_pod, **about)  # type: ignore[arg-type]


def test_a_half_moves_to_the_other_node_so_that_a_pair_of_gpus_is_free():
    play = scattered()
    play.wait(Pod("pair", "p", PAIR))
    result = play.cycle()
    (evict,) = result.evicts
    assert (evict.job, evict.reason, evict.beneficiary) == (
        "ns/a",
        EvictReason.CONSOLIDATE,
        "ns/pair",
    )
    assert evict.message == "a moves from n0 and fits on n1: ns/pair needs 2 GPUs in 1 pod"
    assert [(reservation.node, reservation.reason) for reservation in result.reservations] == [
        ("n0", ReservationReason.FREED)
    ]
    play.cycle()
    where = {uid: running_pod.node for uid, (_, running_pod) in play.running.items()}
    assert where == {"pair-0": "n0", "a-0": "n1", "b-0": "n1"}
    assert not play.waiting


def test_nothing_moves_unless_it_is_switched_on():
    play = scattered(consolidate=False)
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


@pytest.mark.parametrize(
    "about",
    [
        {"interactive": True},
        {"gang": True},
        {"spared": True},
        {"pod_shape": None},
        {"moved": 900.0},
    ],
)
def test_what_may_not_move_stays(about: dict[str, object]):
    play = scattered()
    changed(play, "a", **about)
    changed(play, "b", **about)
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


def test_an_hour_after_a_move_a_pod_may_move_again():
    play = scattered()
    play.now = 10_000.0
    changed(play, "a", moved=10_000.0 - 3600.0)
    changed(play, "b", moved=10_000.0 - 3599.0)
    play.wait(Pod("pair", "p", PAIR, created=10_000.0))
    assert [evict.job for evict in play.plan().evicts] == ["ns/a"]


def test_a_move_of_the_future_is_none():
    play = scattered()
    play.now = 10_000.0
    changed(play, "a", moved=10_000.0 + 1e9)
    changed(play, "b", moved=9_000.0)
    play.wait(Pod("pair", "p", PAIR, created=10_000.0))
    assert [evict.job for evict in play.plan().evicts] == ["ns/a"]


def test_a_plan_says_when_a_pod_that_moved_lately_may_move_again():
    play = scattered()
    play.now, play.reserve_after_seconds = 10_000.0, 1e9
    changed(play, "a", moved=9_500.0)
    changed(play, "b", moved=9_000.0)
    play.wait(Pod("pair", "p", PAIR))
    result = play.plan()
    assert not result.evicts
    assert result.again_at == 9_000.0 + 3600.0


def test_nothing_moves_for_a_pod_outside_its_quota_of_a_model():
    play = scattered()
    named = replace(project("p", 4000, weight=0), quota_by_model={"a100": 1000})
    play.projects = projects(named, project("q", 4000))
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


def test_nothing_moves_for_a_pod_outside_its_quota():
    play = scattered(quota=1000)
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


def test_nothing_moves_for_a_pod_that_needs_one_gpu():
    play = Play((1,), projects(project("p", 4000), project("q", 4000)), consolidate=True)
    play.place(Pod("a", "q", HALF), "n0/0", milli=500)
    play.wait(Pod("one", "p", ONE))
    assert not play.plan().evicts


def test_pods_with_whole_gpus_do_not_move():
    play = Play((2, 2), projects(project("p", 4000), project("q", 4000)), consolidate=True)
    play.place(Pod("a", "q", ONE), "n0/0")
    play.place(Pod("b", "q", ONE), "n1/0")
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


def test_nothing_moves_where_one_of_the_pods_has_no_other_place():
    play = scattered()
    play.place(Pod("c", "q", pod_shape(600)), "n0/1", milli=600)
    play.place(Pod("d", "q", pod_shape(600)), "n1/1", milli=600)
    play.wait(Pod("pair", "p", PAIR))
    assert not play.plan().evicts


def test_pods_of_projects_that_borrow_stay():
    play = scattered()
    play.projects = projects(project("p", 4000), project("q", 500))
    play.wait(Pod("pair", "p", PAIR))
    result = play.plan()
    assert not [each for each in result.evicts if each.reason is EvictReason.CONSOLIDATE]


def test_pods_move_together_for_a_gang():
    play = Play((2, 2, 2), projects(project("p", 4000), project("q", 4000)), consolidate=True)
    for n in range(3):
        play.place(Pod(f"a{n}", "q", pod_shape(300)), f"n{n}/0", milli=300)
    play.wait(*members("g", PAIR, PAIR, project="p"))
    result = play.cycle()
    assert len(result.evicts) == 2
    play.cycle()
    assert not play.waiting


def test_a_pod_moves_to_another_gpu_of_its_node():
    play = Play((3,), projects(project("p", 4000), project("q", 4000)), consolidate=True)
    play.place(Pod("a", "q", HALF), "n0/0", milli=500)
    play.place(Pod("b", "q", pod_shape(400)), "n0/1", milli=400)
    play.wait(Pod("pair", "p", PAIR))
    (evict,) = play.cycle().evicts
    assert "another GPU there" in evict.message
    play.cycle()
    assert not play.waiting


PARTS = (pod_shape(300), HALF, pod_shape(700), pod_shape(200, cpu_milli=60_000))
HELD = st.sampled_from((None, *PARTS, ONE))
WANTED = st.sampled_from([[PAIR], [PAIR, PAIR], [ONE, ONE, HALF], [pod_shape(1000, count=3)]])
GPUS = st.lists(st.integers(1, 3), min_size=2, max_size=4)


@st.composite
def scenes(draw: st.DrawFn) -> Play:
    """Fractional pods scattered over a few nodes, and something that needs several GPUs."""
    gpus = tuple(draw(GPUS))
    big = 100_000
    play = Play(gpus, projects(project("p", big), project("q", big)), consolidate=True)
    for n, count in enumerate(gpus):
        cpu = 128_000
        for d in range(count):
            what: PodShape | None = draw(HELD)
            if what is not None and what.cpu_milli <= cpu:
                cpu -= what.cpu_milli
                pod = Pod(f"a{n}x{d}", "q", what, interactive=draw(st.integers(0, 5)) == 0)
                play.place(pod, f"n{n}/{d}", milli=what.nominal_milli)
    pod_shapes = draw(WANTED)
    if len(pod_shapes) == 1:
        play.wait(Pod("big", "p", pod_shapes[0]))
    else:
        play.wait(*members("big", *pod_shapes, project="p"))
    return play


@pytest.mark.long
@in_parts(4, examples=2000, report_multiple_bugs=False)
@given(scenes())
def test_after_a_move_both_fit_those_who_waited_and_those_who_moved(play: Play):
    play.reserve_after_seconds = 1e9
    result = play.plan()
    assume(result.evicts)
    moved = {evict.pod for evict in result.evicts}
    for evict in result.evicts:
        pod, running_pod = play.running[evict.pod]
        assert evict.reason is EvictReason.CONSOLIDATE
        assert not pod.interactive
        assert all(allocated.milli < 1000 for allocated in running_pod.devices)
    waiting = {pod.uid for pod in play.waiting}
    play.carry_out(result)
    play.tick()
    play.cycle()
    assert not play.waiting
    assert waiting | moved <= play.running.keys()
    assert ProjectName("p") in play.projects
