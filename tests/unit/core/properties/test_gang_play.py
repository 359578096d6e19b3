"""What holds for gangs over whole histories: plans carried out one after the other."""

from collections import Counter

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.play_checks import TEAMS, check_limits, check_losers, check_winners
from tests.unit.parts import in_parts

from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import Topology
from gpu_scheduler.core.packing.target_workload import DEFAULT
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

POD_KINDS = (
    pod_shape(1000),
    pod_shape(1000),
    pod_shape(500),
    pod_shape(300),
    pod_shape(1000, count=2),
    pod_shape(cpu_milli=20_000),
    pod_shape(500, cpu_milli=70_000),
)
TOPOLOGIES = (None, None, Topology("zone"), Topology("zone", required=False))
TEAM, WEIGHT = st.sampled_from(TEAMS), st.sampled_from([1, 1, 2, 0])
PRIORITY = st.sampled_from([50, 50, 50, 0, 90])
QUOTA = st.sampled_from([0, 0, 1000, 2000, 4000, 9000])
LIMIT = st.sampled_from([None, None, None, 3000])
RESERVE_AFTER = st.sampled_from([0.0, 60.0])
GPUS = st.lists(st.integers(1, 4), min_size=1, max_size=4)
SIZE, DISTINCT = st.sampled_from([1, 2, 2, 3, 3, 4]), st.sampled_from([True, True, False])
TOPOLOGY = st.sampled_from(TOPOLOGIES)
KINDS = {n: st.lists(st.sampled_from(POD_KINDS), min_size=n, max_size=n) for n in range(1, 5)}
# Without shrinking: an example is a whole history, and to make one smaller takes minutes.
PHASES = (Phase.explicit, Phase.generate)


def members(name: str, *pod_shapes: object, **about: object) -> list[Pod]:
    """The pods of a gang."""
    return [
        Pod(f"{name}-{i}", pod_shape=what, gang=name, size=len(pod_shapes), **about)  # type: ignore[arg-type]
        for i, what in enumerate(pod_shapes)
    ]


@st.composite
def pods(draw: st.DrawFn, wave: str, most: int, created: float, finite: bool) -> list[Pod]:
    """Gangs of one to four pods, and single pods."""
    found: list[Pod] = []
    for i in range(draw(st.integers(1, most))):
        count = draw(SIZE)
        pod_shapes = draw(KINDS[count])
        if draw(st.booleans()):
            pod_shapes = pod_shapes[:1] * count
        about = {
            "project": draw(TEAM),
            "interactive": draw(st.integers(0, 5)) == 0,
            "priority": draw(PRIORITY),
            "created": created + i,
            "seconds": draw(st.integers(1, 30)) if finite else None,
            "limit": draw(st.booleans()),
        }
        if draw(st.integers(0, 3)) == 0:
            found.append(Pod(f"{wave}{i}", pod_shape=pod_shapes[0], **about))  # type: ignore[arg-type]
        else:
            about |= {
                "distinct": draw(DISTINCT),
                "topology": draw(TOPOLOGY),
            }
            found += members(f"{wave}{i}", *pod_shapes, **about)
    return found


@st.composite
def plays(draw: st.DrawFn, *, finite: bool = False) -> tuple[Play, list[Pod]]:
    """Up to four nodes in two zones that some jobs fill, and the jobs that come then."""
    gpus = tuple(draw(GPUS))
    teams = [
        project(
            name,
            draw(QUOTA),
            draw(LIMIT),
            draw(WEIGHT),
        )
        for name in TEAMS
    ]
    play = Play(gpus, projects(*teams), grace=draw(st.integers(1, 3)))
    play.wait(*draw(pods("old", 5, 0.0, finite)))
    play.reserve_after_seconds = draw(RESERVE_AFTER)
    return play, draw(pods("new", 4, 500.0, finite))


def check_whole(play: Play, result: Plan) -> None:
    """All members start or none, their places follow one another, and they go together."""
    waiting = {pod.uid: pod for pod in play.waiting}
    placed = Counter(place.job for place in result.assignments if waiting[place.pod].gang)
    size = {pod.key: pod.size for pod in play.waiting}
    for key, count in placed.items():
        assert count == size[key]
    order = [place.job for place in result.assignments]
    assert len(list(dict.fromkeys(order))) == sum(
        1 for i, key in enumerate(order) if i == 0 or order[i - 1] != key
    )
    held = Counter(
        reservation.job for reservation in result.reservations if waiting[reservation.pod].gang
    )
    for key, count in held.items():
        assert count == size[key]
    gone = {evict.pod for evict in result.evicts}
    for evict in result.evicts:
        pod = play.running[evict.pod][0]
        assert evict.whole_job == bool(pod.gang)
        mates = {uid for uid, (other, _) in play.running.items() if other.key == pod.key}
        if pod.gang:
            assert mates - play.going.keys() <= gone


def check_apart(play: Play, result: Plan) -> None:
    """Members that must are on GPUs of their own, and in one zone."""
    waiting = {pod.uid: pod for pod in play.waiting}
    devices: dict[str, list[str]] = {}
    zones: dict[str, set[int]] = {}
    for place in result.assignments:
        pod = waiting[place.pod]
        if not pod.gang:
            continue
        if pod.distinct:
            devices.setdefault(pod.gang, []).extend(
                {allocated.device for allocated in place.devices}
            )
        if pod.topology is not None and pod.topology.required:
            zones.setdefault(pod.gang, set()).add(int(place.node[1:]) % 2)
    for used in devices.values():
        assert len(used) == len(set(used))
    for found in zones.values():
        assert len(found) == 1


@pytest.mark.long
@in_parts(4, examples=2000, phases=PHASES)
@given(plays())
def test_gangs_are_whole_apart_in_one_zone_and_inside_what_their_projects_may_have(
    case: tuple[Play, list[Pod]],
):
    play, later = case
    for cycle in range(5):
        before = {name: play.held(name) for name in TEAMS}
        result = play.plan()
        check_whole(play, result)
        check_apart(play, result)
        check_losers(play, result)
        check_winners(play, result)
        play.carry_out(result)
        check_limits(play, before)
        play.tick()
        if cycle == 1:
            play.wait(*later)


@pytest.mark.long
@in_parts(4, examples=2000, phases=PHASES)
@given(plays())
def test_no_plan_undoes_an_earlier_one_with_gangs_as_victims(case: tuple[Play, list[Pod]]):
    play, later = case
    play.cycle()
    play.wait(*later)
    lost_to: dict[str, set[str]] = {}  # job -> those for which it had to go
    for cycle in range(24):
        before = play.going.copy(), play.reservations
        result = play.cycle()
        for evict in result.evicts:
            assert evict.job not in lost_to.get(evict.beneficiary, ())
            lost_to.setdefault(evict.job, set()).add(evict.beneficiary)
        if before == ({}, play.reservations) and not result.assignments and not result.evicts:
            # Nothing has changed and nothing ends: only the clock can make the next plan another.
            play.tick(23 - cycle)
            break
    assert not play.plan().evicts


@pytest.mark.long
@in_parts(2, examples=300, phases=PHASES)
@given(plays())
def test_a_plan_with_gangs_does_not_depend_on_what_the_planner_kept(case: tuple[Play, list[Pod]]):
    play, later = case
    for cycle in range(4):
        anew = plan(
            PlanInput(
                play.cluster(),
                play.projects,
                play.jobs()[::-1],
                running_pods=play.roll(),
                reservations=play.reservations,
                now=play.now,
                reserve_after_seconds=play.reserve_after_seconds,
                workload=DEFAULT,
            )
        )
        assert play.cycle() == anew
        if cycle == 0:
            play.wait(*later)


def test_a_gang_takes_room_beyond_its_share_for_a_higher_priority_alone() -> None:
    """A whole gang goes for one pod of a high priority; the rest of its room is nobody's yet."""
    teams = project("a", 9000, None, 1), project("b", 9000, None, 1), project("c", 0, 3000, 2)
    play = Play((1, 3), projects(*teams), grace=3)
    play.reserve_after_seconds = 60.0
    play.wait(
        Pod("low", project="a", pod_shape=pod_shape(500), priority=0, created=2.0),
        Pod("middle", project="b", pod_shape=pod_shape(300), created=3.0),
        *members(
            "victim", pod_shape(300), pod_shape(300), pod_shape(300), project="c", created=4.0
        ),
    )
    play.cycle()
    play.wait(
        *members("first", pod_shape(1000), project="b", created=500.0),
        *members(
            "big",
            pod_shape(500),
            pod_shape(500),
            pod_shape(1000, count=2),
            project="a",
            created=501.0,
        ),
        Pod("high", project="b", pod_shape=pod_shape(1000), priority=90, created=502.0),
        *members("last", pod_shape(1000), project="b", created=503.0),
    )
    result = play.plan()
    assert {evict.beneficiary for evict in result.evicts} == {"ns/high"}
    assert check_winners(play, result) == {"b"}
