"""Room that earlier plans made and kept, for pods and for gangs, and gangs that give way."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.test_gang_play import members

from gpu_scheduler.core.model.decision import (
    DeviceAllocation,
    EvictReason,
    Reason,
    Reservation,
    ReservationReason,
)
from gpu_scheduler.core.model.request import Topology

ONE, TWO = pod_shape(1000), pod_shape(1000, count=2)
SERVER = pod_shape(cpu_milli=1000)


def single(name: str, team: str, what: object = ONE, **about: object) -> Pod:
    return Pod(name, team, what, **about)  # type: ignore[arg-type]


def running(play: Play, pods: list[Pod], *devices: str) -> Play:
    """Put pods on devices one after the other; those without GPUs on the first node."""
    free = list(devices)
    for pod in pods:
        count = sum(request.count for request in pod.pod_shape.devices)
        play.place(
            pod, *[free.pop(0) for _ in range(count)] or ["n0/0"], milli=1000 if count else 0
        )
    return play


def names(play: Play) -> set[str]:
    return {pod.name for pod, _ in play.running.values()}


def test_two_gangs_of_three_on_four_gpus_both_finish():
    play = Play((2, 2), projects(project("p", 9000), project("q", 9000)))
    play.wait(*members("x", ONE, ONE, ONE, project="p", seconds=5))
    play.wait(*members("y", ONE, ONE, ONE, project="q", seconds=5))
    seen = []
    for _ in range(20):
        play.cycle()
        seen.append({name[0] for name in names(play)})
    assert {"x"} in seen
    assert {"y"} in seen
    assert {"x", "y"} not in seen
    assert not play.waiting
    assert not play.running


def test_a_gang_below_its_fair_share_gets_room_for_all_of_its_members_at_once():
    play = Play((2, 2), projects(project("p"), project("q", 0)))
    for i in range(4):
        play.place(single(f"q{i}", "q"), f"n{i // 2}/{i % 2}")
    play.projects = projects(project("p", 3000), project("q", 0))
    play.wait(*members("g", ONE, ONE, ONE, SERVER, project="p"))
    result = play.cycle()
    assert len(result.evicts) == 3
    assert {evict.beneficiary for evict in result.evicts} == {"ns/g"}
    assert not any(evict.whole_job for evict in result.evicts)
    assert [reservation.reason for reservation in result.reservations] == [
        ReservationReason.FREED
    ] * 4
    (wait,) = result.waits
    assert wait.reason is Reason.WAITING_FOR_GPU
    assert wait.message.startswith("needs 3 GPUs; room on n0, n1 is kept for it")
    play.cycle()
    assert {"g-0", "g-1", "g-2", "g-3"} <= names(play)


def test_nobody_goes_for_a_gang_that_would_not_fit_even_then():
    play = Play((2, 2), projects(project("p", 4000), project("q", 2000)))
    for i in range(4):
        play.place(single(f"q{i}", "q"), f"n{i // 2}/{i % 2}")
    play.wait(*members("g", ONE, ONE, ONE, project="p"))  # q keeps its quota of 2
    assert not play.plan().evicts


def test_only_those_go_whose_place_the_gang_takes():
    play = Play((4, 4), projects(project("p", 4000), project("q", 0)))
    for i in range(8):
        play.place(single(f"q{i}", "q"), f"n{i // 4}/{i % 4}")
    play.wait(*members("g", TWO, TWO, project="p"))
    assert len(play.plan().evicts) == 4


def test_a_gang_gives_way_whole_even_for_one_pod():
    play = Play((2, 2), projects(project("p", 4000), project("q", 0)))
    gang = members("g", ONE, ONE, ONE, SERVER, project="q")
    running(play, gang, "n0/0", "n0/1", "n1/0")
    play.place(single("r", "q"), "n1/1")
    play.wait(single("one", "p", TWO), single("two", "p", TWO, created=9.0))
    result = play.cycle()
    first = [evict for evict in result.evicts if evict.beneficiary == "ns/one"]
    assert {evict.pod for evict in first} == {pod.uid for pod in gang}
    assert all(evict.whole_job for evict in first)
    assert first[0].message.startswith(
        "gang ns/g gives 3 GPUs of its 4 pods to ns/one: its quota is a guarantee: project p holds"
    )
    # What the gang held on the other node is room that comes: there only one more has to go.
    assert [evict.job for evict in result.evicts if evict not in first] == ["ns/r"]
    play.cycle()
    assert names(play) == {"one", "two"}


def test_a_single_pod_goes_before_a_gang_of_the_same_rank():
    play = Play((2, 1), projects(project("p", 1000), project("q", 0)))
    running(play, members("g", ONE, ONE, project="q"), "n0/0", "n1/0")
    play.place(single("r", "q"), "n0/1")
    play.wait(single("one", "p"))
    assert [evict.job for evict in play.plan().evicts] == ["ns/r"]


def test_a_gang_that_would_take_its_project_below_its_quota_stays():
    play = Play((2, 2), projects(project("p", 2000), project("q", 2000)))
    running(play, members("g", ONE, ONE, ONE, project="q"), "n0/0", "n0/1", "n1/0")
    play.wait(single("one", "p", TWO))
    assert not play.plan().evicts


def test_a_gang_of_which_one_member_cannot_be_evicted_stays():
    play = Play((2,), projects(project("p", 2000), project("q", 0)))
    running(play, members("g", ONE, ONE, project="q"), "n0/0", "n0/1")
    pod, running_pod = next(iter(play.running.values()))
    play.running[pod.uid] = pod, replace(running_pod, spared=True)
    play.wait(single("one", "p"))
    assert not play.plan().evicts


def test_a_gang_of_a_higher_priority_takes_the_room_of_a_lower_gang_of_its_project():
    play = Play((2, 2), projects(project("p", 4000)))
    low = members("low", TWO, ONE, project="p", priority=10)
    running(play, low, "n0/0", "n0/1", "n1/0")
    play.wait(*members("high", ONE, ONE, ONE, project="p", priority=90))
    result = play.cycle()
    assert {evict.pod for evict in result.evicts} == {pod.uid for pod in low}
    assert {evict.reason for evict in result.evicts} == {EvictReason.PRIORITY}
    play.cycle()
    assert names(play) == {"high-0", "high-1", "high-2"}


def test_freed_room_is_kept_until_the_last_of_the_victims_is_gone():
    play = Play((2, 2), projects(project("p", 3000), project("q", 0)), grace=2)
    for i in range(4):
        play.place(single(f"q{i}", "q"), f"n{i // 2}/{i % 2}")
    play.wait(*members("g", ONE, ONE, ONE, project="p"))
    first = play.cycle()
    play.wait(single("thief", "q", created=-5.0))
    second = play.plan()
    assert second.assignments == ()
    assert not second.evicts
    assert second.reservations == first.reservations


def test_a_hold_of_some_members_only_is_worth_nothing():
    play = Play((2, 2), projects(project("p", 3000), project("q", 9000)), grace=3)
    for i in range(4):
        play.place(single(f"q{i}", "q"), f"n{i // 2}/{i % 2}")
    play.projects = projects(project("p", 3000), project("q", 0))
    play.wait(*members("g", ONE, ONE, ONE, project="p"))
    play.cycle()
    play.reservations = play.reservations[:2]
    result = play.plan()
    assert {reservation.pod for reservation in result.reservations} == {"g-0-0", "g-1-0", "g-2-0"}
    assert not result.evicts  # what is coming is enough


def test_a_gang_that_waits_long_gets_room_on_several_nodes_reserved():
    play = Play((2, 2), projects(project("p", 9000)))
    for i in range(4):
        about = {"seconds": 10 * (i + 1), "limit": True}
        play.place(single(f"old{i}", "p", **about), f"n{i // 2}/{i % 2}")
    play.wait(*members("g", ONE, ONE, ONE, project="p", created=0.0))
    play.wait(*[single(f"s{i}", "p", created=1.0 + i, seconds=50) for i in range(30)])
    result = play.plan()
    assert {reservation.reason for reservation in result.reservations} == {
        ReservationReason.RESERVED
    }
    assert len({reservation.node for reservation in result.reservations}) == 2
    assert {reservation.start for reservation in result.reservations} == {play.now + 30}
    message = next(wait.message for wait in result.waits if wait.job == "ns/g")
    assert message == (
        "needs 3 GPUs; room on n0, n1 is reserved for it,"
        " complete by 1970-01-01T00:17:10Z at the latest"
    )
    for _ in range(32):
        play.cycle()
    assert {"g-0", "g-1", "g-2"} <= names(play)


def test_a_stream_of_small_pods_does_not_starve_a_gang():
    play = Play((2, 2), projects(project("p", 9000), project("q", 9000)))
    play.wait(*[single(f"a{i}", "q", seconds=7 + i % 5) for i in range(4)])
    play.cycle()
    play.wait(*members("g", ONE, ONE, ONE, ONE, project="p", created=play.now))
    for i in range(200):
        if "g-0" in names(play):
            break
        play.wait(single(f"b{i}", "q", created=play.now, seconds=7 + i % 5))
        play.cycle()
    assert "g-0" in names(play)
    assert play.now < 1000 + 60 + 30


def test_reserved_room_goes_to_a_gang_that_ranks_before():
    play = Play((2,), projects(project("p", 9000)), reserve_after_seconds=0.0)
    play.place(single("old", "p"), "n0/0")
    play.wait(*members("g", ONE, ONE, project="p", created=1.0))
    assert {reservation.job for reservation in play.cycle().reservations} == {"ns/g"}
    play.wait(
        *members("first", pod_shape(500), pod_shape(500), distinct=False, project="p", priority=90)
    )
    assert {place.job for place in play.cycle().assignments} == {"ns/first"}


def test_a_required_zone_holds_when_room_is_made():
    play = Play((1, 1, 1, 1), projects(project("p", 2000), project("q", 0)))
    for i in range(4):
        play.place(single(f"q{i}", "q"), f"n{i}/0")
    play.wait(*members("g", ONE, ONE, project="p", topology=Topology("zone")))
    result = play.cycle()
    assert len(result.evicts) == 2
    assert {int(reservation.node[1:]) % 2 for reservation in result.reservations} in ({0}, {1})
    play.cycle()
    assert {"g-0", "g-1"} <= names(play)


@st.composite
def workloads(draw: st.DrawFn) -> Play:
    """Gangs and single pods of one project, each of which fits the empty cluster."""
    play = Play((2, 2), projects(project("p", 4000), project("q", 4000)))
    for i in range(draw(st.integers(1, 6))):
        about = {"project": draw(st.sampled_from("pq")), "created": float(i)}
        about |= {"seconds": draw(st.integers(1, 20)), "limit": draw(st.booleans())}
        pod_shapes = draw(
            st.sampled_from([[ONE], [ONE] * 3, [ONE] * 4, [TWO, TWO], [TWO, ONE, SERVER]])
        )
        play.wait(*members(f"g{i}", *pod_shapes, **about))
    play.reserve_after_seconds = draw(st.sampled_from([0.0, 60.0]))
    return play


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(workloads())
def test_every_gang_of_a_finite_workload_runs_in_the_end(play: Play):
    for _ in range(200):
        play.cycle(seconds=5.0)
        if not play.waiting:
            return
    raise AssertionError(f"never started: {[pod.name for pod in play.waiting]}")


def test_who_is_first_takes_what_is_free_and_who_is_later_waits_for_what_comes() -> None:
    """Both are promised a half of one GPU; one half of it is free, the other is being freed."""
    play = Play((3,), projects(project("a", 3000), project("b", 0)))
    going = {name: Pod(name, "b", pod_shape(500)) for name in ("v0", "v2")}
    for device, pod in zip(("n0/0", "n0/2"), going.values(), strict=True):
        play.place(pod, device, milli=500)
    for device in ("n0/1", "n0/2"):
        play.place(Pod(f"stays-{device[-1]}", "b", pod_shape(500)), device, milli=500)
    play.going = {pod.uid: 9 for pod in going.values()}
    first, later = (Pod(n, "a", pod_shape(500, count=2), job="w") for n in ("first", "later"))
    play.wait(first, later)
    play.reservations = tuple(
        Reservation(
            pod.uid,
            pod.key,
            "n0",
            ReservationReason.FREED,
            None,
            tuple(DeviceAllocation(0, device, 500, 20224) for device in devices),
        )
        for pod, devices in ((first, ("n0/0", "n0/1")), (later, ("n0/0", "n0/2")))
    )
    result = play.cycle()
    assert [place.pod for place in result.assignments] == [first.uid]
    assert [reservation.pod for reservation in result.reservations] == [later.uid]
