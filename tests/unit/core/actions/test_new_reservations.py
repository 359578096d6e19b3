"""Room for those who have waited long although it is their turn."""

from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model.decision import Plan, Reason, ReservationReason
from gpu_scheduler.core.model.request import NodeFilter

WHOLE, PAIR = pod_shape(1000), pod_shape(1000, count=2)


def started(result: Plan) -> list[str]:
    return [place.job.removeprefix("ns/") for place in result.assignments]


def stream(*, limit: int | None = None) -> Play:
    """Two GPUs, one busy until 1100 and known to be; a pair waits since 900 inside its quota."""
    play = Play((2,), projects(project("a", 2000), project("b", 2000)))
    play.now = 1000.0
    play.place(Pod("old", "b", WHOLE, seconds=100, limit=True), "n0/0")
    play.wait(Pod("pair", "a", PAIR, created=900.0))
    if limit is not None:
        play.wait(Pod("small", "b", WHOLE, seconds=limit, limit=True, created=950.0))
    return play


def test_nobody_takes_what_a_long_waiting_head_needs():
    play = stream()
    (reservation,) = play.cycle().reservations
    assert (reservation.reason, reservation.node, reservation.start) == (
        ReservationReason.RESERVED,
        "n0",
        1100.0,
    )
    play.wait(Pod("late", "b", WHOLE, created=950.0, interactive=True))
    for _ in range(20):
        assert started(play.cycle()) == []
    play.now = 1099.0
    play.cycle()
    assert started(play.cycle()) == ["pair"]


def test_a_pod_known_to_end_sooner_may_use_reserved_room():
    play = stream()
    play.cycle()
    play.wait(Pod("short", "b", WHOLE, seconds=90, limit=True))
    assert started(play.cycle()) == ["short"]
    (reservation,) = play.plan().reservations
    assert reservation.start == 1100.0


def test_a_pod_that_would_end_later_may_not():
    play = stream()
    play.cycle()
    play.wait(Pod("long", "b", WHOLE, seconds=200, limit=True))
    assert started(play.cycle()) == []


def test_nothing_is_reserved_before_the_time_and_the_plan_says_when_to_look_again():
    play = stream()
    play.now = 930.0
    result = play.plan()
    assert (result.reservations, result.again_at) == ((), 960.0)
    play.now = 960.0
    assert len(play.plan().reservations) == 1


def test_nothing_is_reserved_for_borrowers():
    play = stream()
    play.projects = projects(project("a", 1000), project("b", 2000))
    result = play.plan()
    assert (result.reservations, result.again_at) == ((), None)


def test_the_node_where_it_fits_soonest_is_taken():
    play = Play((2, 2, 2), projects(project("a", 2000), project("b", 6000)))
    for n, seconds in enumerate((None, 300, 500)):
        busy = Pod(f"x{n}", "b", WHOLE, seconds=seconds, limit=seconds is not None)
        play.place(busy, f"n{n}/0")
    play.wait(Pod("pair", "a", PAIR, created=0.0))
    (reservation,) = play.plan().reservations
    assert (reservation.node, reservation.start) == ("n1", 1300.0)


def test_without_time_limits_the_node_with_the_least_to_free_is_taken():
    play = Play((2, 2), projects(project("a", 2000), project("b", 6000)))
    play.place(Pod("x", "b", WHOLE), "n0/0").place(Pod("y", "b", pod_shape(300)), "n1/0", milli=300)
    play.wait(Pod("pair", "a", PAIR, created=0.0))
    (reservation,) = play.plan().reservations
    assert (reservation.node, reservation.start) == ("n1", None)


def test_a_job_of_the_same_project_that_ranks_before_may_use_the_room():
    play = stream()
    play.cycle()
    play.wait(Pod("later", "a", WHOLE, created=950.0))
    assert started(play.plan()) == []
    play.wait(Pod("notebook", "a", WHOLE, created=950.0, interactive=True))
    assert started(play.plan()) == ["notebook"]


def test_a_reserved_pod_starts_elsewhere_as_soon_as_it_fits_there():
    play = stream()
    play.cycle()
    play.gpus = (2, 2)
    result = play.plan()
    assert [(p.job, p.node) for p in result.assignments] == [("ns/pair", "n1")]


def test_a_reserved_pod_still_gets_gpus_back():
    play = Play((2,), projects(project("a", 2000), project("b", 2000)))
    play.place(Pod("x", "b", WHOLE), "n0/0")
    play.wait(Pod("pair", "a", PAIR, created=0.0))
    assert play.cycle().reservations[0].reason is ReservationReason.RESERVED
    play.projects = projects(project("a", 2000), project("b", 0))
    result = play.cycle()
    assert [evict.job for evict in result.evicts] == ["ns/x"]
    assert [reservation.reason for reservation in result.reservations] == [ReservationReason.FREED]
    assert started(play.cycle()) == ["pair"]


def vacated(borrowed: int) -> Play:
    """Room on n0 is reserved for a pair of a's; then b, of whom n1 is full, loses its quota."""
    play = Play((2, borrowed, 2), projects(*(project(name, 9000) for name in "abd")))
    play.place(Pod("d0", "d", WHOLE), "n0/1")
    play.place(Pod("d1", "d", WHOLE), "n2/0")
    play.place(Pod("own", "b", WHOLE, interactive=True), "n2/1")
    for i in range(borrowed):
        play.place(Pod(f"b{i}", "b", WHOLE), f"n1/{i}")
    play.wait(Pod("pair", "a", PAIR, created=1.0))
    assert [reservation.node for reservation in play.cycle().reservations] == ["n0"]
    play.wait(Pod("two", "a", PAIR, created=990.0), Pod("one", "d", WHOLE, created=990.0))
    play.projects = projects(project("a", 4000), project("b", 1000), project("d", 3000))
    return play


def test_reserved_room_that_is_given_up_is_used_before_anybody_gives_way_for_it():
    play = vacated(5)
    first = play.cycle()
    assert len(first.evicts) == 4  # for the two pairs; the single GPU on n0 needs nobody to go
    assert {place.job: place.node for place in first.assignments} == {"ns/one": "n0"}
    assert sorted(started(play.cycle())) == ["pair", "two"]


def test_room_that_came_free_while_planning_is_no_lack_of_anything():
    play = vacated(2)
    result = play.cycle()
    (wait,) = [wait for wait in result.waits if wait.job == "ns/one"]
    assert (wait.reason, wait.message.split("; ")[1]) == (
        Reason.WAITING_FOR_GPU,
        "room has just come free on n0 and is tried in the next cycle",
    )
    assert "one" in started(play.cycle())


def test_room_that_is_only_reserved_cannot_be_taken():
    known = projects(project("a", 3000), project("b", 2900), project("c", 100))
    play = Play((2, 2, 1, 1), known)
    play.place(Pod("runs", "a", WHOLE), "n0/0")
    play.place(Pod("stays", "b", WHOLE), "n0/1")
    play.place(Pod("stays-2", "b", pod_shape(900)), "n2/0", milli=900)
    play.place(Pod("ends", "c", pod_shape(100), seconds=100, limit=True), "n1/0", milli=100)
    play.wait(Pod("pair", "a", PAIR, created=900.0))
    assert [reservation.node for reservation in play.cycle().reservations] == ["n1"]
    play.wait(Pod("first", "a", WHOLE, created=990.0))  # a holds two GPUs then, and two are kept
    in_z0 = NodeFilter(selector=(("zone", "z0"),))
    play.wait(Pod("more", "b", pod_shape(1000, where=in_z0), created=995.0))
    result = play.plan()
    assert (started(result), result.evicts) == (["first"], ())


def test_many_are_told_for_whom_room_is_kept_only_where_it_keeps_them_out_now():
    full = Play((2,), projects(project("a", 2000), project("b", 2000)))
    full.now = 1000.0
    for device in ("n0/0", "n0/1"):
        full.place(Pod(f"old-{device[-1]}", "b", WHOLE), device)
    full.wait(Pod("pair", "a", PAIR, created=900.0))
    half = stream()
    for play, says in ((full, [True, True, True, False, False]), (half, [True] * 5)):
        play.cycle()
        for number in range(5):
            play.wait(Pod(f"late-{number}", "b", WHOLE, created=950.0 + number))
        waits = {wait.job: wait.message for wait in play.plan().waits}
        kept = ["kept for ns/pair" in waits[f"ns/late-{number}"] for number in range(5)]
        assert kept == says, waits


def test_what_is_reserved_is_said():
    play = stream()
    play.cycle()
    play.wait(Pod("late", "b", WHOLE, created=950.0))
    waits = {wait.job: wait.message for wait in play.plan().waits}
    assert waits["ns/pair"] == (
        "needs 2 GPUs; room on n0 is reserved for it, complete by 1970-01-01T00:18:20Z at the"
        " latest"
    )
    assert waits["ns/late"].endswith(
        "; room is kept for ns/pair on n0; held by ns/old (until"
        " 1970-01-01T00:18:20Z at the latest)"
    )
