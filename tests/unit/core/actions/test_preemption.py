"""Who gives way to whom: reclaim between projects, preemption inside one, and what is held."""

from dataclasses import replace

from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model.decision import EvictReason, Plan, Reason, ReservationReason
from gpu_scheduler.core.model.request import Project

WHOLE, HALF, PAIR = pod_shape(1000), pod_shape(500), pod_shape(1000, count=2)


def evicted(result: Plan) -> list[str]:
    return [evict.job.removeprefix("ns/") for evict in result.evicts]


def started(result: Plan) -> list[str]:
    return [place.job.removeprefix("ns/") for place in result.assignments]


def full(gpus: int, *those: Project, holder: str = "b", **pod: object) -> Play:
    """One node whose GPUs are held by pods v0, v1 … of a project; the last is the youngest."""
    play = Play((gpus,), projects(*those))
    for i in range(gpus):
        play.now = 100.0 + i
        play.place(Pod(f"v{i}", holder, WHOLE, **pod), f"n0/{i}")  # type: ignore[arg-type]
    play.now = 1000.0
    return play


EVEN = (project("a", 0), project("b", 0))


def test_a_project_below_its_share_gets_gpus_back_and_both_end_at_theirs():
    play = full(4, *EVEN)
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(4)))
    first = play.cycle()
    assert evicted(first) == ["v3", "v2"]
    assert {e.beneficiary for e in first.evicts} == {"ns/w0", "ns/w1"}
    assert all(e.reason is EvictReason.RECLAIM for e in first.evicts)
    second = play.cycle()
    assert started(second) == ["w0", "w1"]
    assert (play.held("a"), play.held("b")) == (2000, 2000)
    for _ in range(5):
        assert play.cycle().evicts == ()


def test_the_sentence_says_who_holds_what_of_which_share():
    play = full(2, *EVEN).wait(Pod("w", "a", WHOLE))
    (evict,) = play.plan().evicts
    assert evict.message == (
        "v1 gives 1 GPU on n0 to ns/w: project a holds 0 GPUs, its fair share is 1,"
        " project b holds 2 GPUs, its fair share is 1"
    )


def test_what_can_never_fit_its_project_asks_for_no_share():
    never = Pod("never", "a", pod_shape(1000, count=2))
    play = full(4, project("a", 0, 1000), project("b", 0), project("c", 0))
    alone = play.wait(Pod("w", "c", PAIR)).plan()
    play.wait(never)
    result = play.plan()
    assert result.shares_milli == alone.shares_milli == {"a": 0, "b": 2000, "c": 2000}
    assert evicted(result) == ["v3", "v2"]
    assert {wait.job: wait.reason for wait in result.waits}["ns/never"] is Reason.EXCEEDS_QUOTA


def test_pods_inside_quota_are_never_taken():
    play = full(4, project("a", 0), project("b", 4000)).wait(Pod("w", "a", WHOLE))
    assert play.plan().evicts == ()


def test_a_guarantee_is_met_where_what_was_lent_cannot_be_divided():
    """The borrower is left below its fair share: its one pod holds more than that exceeds it."""
    owner, borrower = project("a", 4000), project("b", 0)
    play = Play((4,), projects(owner, borrower))
    play.place(Pod("big", "b", pod_shape(1000, count=4)), "n0/0", "n0/1", "n0/2", "n0/3")
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(3)))
    assert evicted(play.cycle()) == ["big"]
    assert sorted(started(play.cycle())) == ["w0", "w1", "w2"]
    for _ in range(5):
        assert play.cycle().evicts == ()


def test_a_quota_is_not_taken_for_a_guarantee_and_a_share_not_for_a_borrower():
    for owner, borrower in (
        (project("a", 4000), project("b", 1000)),
        (project("a", 0), project("b", 0)),
    ):
        play = Play((4,), projects(owner, borrower))
        play.place(Pod("big", "b", pod_shape(1000, count=4)), "n0/0", "n0/1", "n0/2", "n0/3")
        play.wait(Pod("w", "a", WHOLE))
        assert play.plan().evicts == ()


def test_who_can_give_and_keep_its_share_gives_first():
    those = project("a", 2000), project("b", 0, weight=2), project("c", 0)
    play = Play((4, 3), projects(*those))
    play.place(Pod("big", "b", pod_shape(1000, count=4)), "n0/0", "n0/1", "n0/2", "n0/3")
    for i in range(3):
        play.now = 100.0 + i
        play.place(Pod(f"c{i}", "c", WHOLE), f"n1/{i}")
    play.wait(Pod("w", "a", WHOLE))
    result = play.plan()
    assert (result.shares_milli[those[1].name], result.shares_milli[those[2].name]) == (4000, 2000)
    assert evicted(result) == ["c2"]


def test_an_interactive_pod_is_taken_only_above_its_quota():
    play = full(4, project("a", 2000), project("b", 2000), interactive=True)
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(4)))
    assert evicted(play.plan()) == ["v3", "v2"]
    play = full(4, project("a", 2000), project("b", 4000), interactive=True)
    play.wait(Pod("w", "a", WHOLE))
    assert play.plan().evicts == ()


def test_of_interactive_pods_above_quota_those_go_whose_places_fit():
    play = Play((2, 2), projects(project("a", 2000), project("b", 2000)))
    for i, device in enumerate(("n0/0", "n1/0", "n1/1", "n0/1")):
        play.now = 100.0 + i  # the two youngest are on different nodes
        play.place(Pod(f"v{i}", "b", WHOLE, interactive=True), device)
    assert sorted(evicted(play.wait(Pod("w", "a", PAIR)).plan())) in (["v0", "v3"], ["v1", "v2"])


def test_interactive_pods_inside_quota_stay_when_training_is_above_it():
    play = Play((2,), projects(project("a", 1000), project("b", 1000)))
    play.place(Pod("note", "b", WHOLE, interactive=True, priority=0), "n0/0")
    play.place(Pod("train", "b", WHOLE, priority=100), "n0/1")
    assert evicted(play.wait(Pod("w", "a", WHOLE)).plan()) == ["train"]


def test_the_project_most_over_its_share_pays_then_the_lowest_priority_then_the_youngest():
    play = Play((6,), projects(project("a", 0), project("b", 0), project("c", 0)))
    for i, (team, priority) in enumerate(
        [("b", 50), ("c", 50), ("c", 60), ("c", 50), ("c", 50), ("b", 0)]
    ):
        play.now = 100.0 + i
        play.place(Pod(f"{team}{i}", team, WHOLE, priority=priority), f"n0/{i}")
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(2)))
    assert evicted(play.plan()) == ["c4", "c3"]


def test_a_guarantee_is_met_where_the_first_victim_would_use_up_what_can_be_taken():
    play = Play((1, 2), projects(project("a", 2000), project("b", 2000), project("c", 1000)))
    for i, milli in enumerate((300, 250, 250)):  # the youngest would go first, and is too small
        play.now = 100.0 + i
        play.place(Pod(f"v{i}", "b", pod_shape(milli)), "n0/0", milli=milli)
    play.place(Pod("v3", "b", WHOLE, interactive=True), "n1/0")
    play.place(Pod("v4", "b", HALF, interactive=True), "n1/1", milli=500)
    play.place(Pod("own", "c", HALF), "n1/1", milli=500)
    play.now = 1000.0
    result = play.wait(Pod("w", "a", HALF)).plan()  # b holds 2.3: 0.3 can be taken
    assert evicted(result) == ["v0"]


def test_no_more_pods_go_than_are_needed():
    play = Play((2,), projects(*EVEN))
    for i in range(4):
        play.now = 100.0 + i
        play.place(Pod(f"v{i}", "b", HALF), f"n0/{i % 2}", milli=500)
    assert evicted(play.wait(Pod("w", "a", HALF)).plan()) == ["v3"]
    play.waiting.clear()
    # a whole GPU needs both pods of one device, and nobody of the other
    assert sorted(evicted(play.wait(Pod("w", "a", WHOLE)).plan())) == ["v1", "v3"]


def test_nobody_goes_when_that_would_not_make_the_pod_fit():
    play = full(2, *EVEN).wait(Pod("w", "a", PAIR))  # its share is one GPU
    assert play.plan().evicts == ()
    play = Play((2,), projects(*EVEN))
    play.place(Pod("v0", "b", WHOLE), "n0/0").place(Pod("v1", "b", WHOLE), "n0/1")
    play.wait(Pod("w", "a", replace(WHOLE, models=("h100",))))
    assert play.plan().evicts == ()


def test_a_whole_pair_moves_when_the_share_allows_it():
    play = full(4, *EVEN).wait(Pod("w", "a", PAIR))
    assert evicted(play.cycle()) == ["v3", "v2"]
    assert started(play.cycle()) == ["w"]


def test_cpu_is_made_room_for_too():
    play = Play((2,), projects(*EVEN))
    big = pod_shape(500, cpu_milli=100_000)
    play.place(Pod("big", "b", big), "n0/0", milli=500)
    play.place(Pod("v", "b", WHOLE), "n0/1")
    play.wait(Pod("w", "a", big), Pod("more", "a", WHOLE, created=1.0))
    assert evicted(play.plan()) == ["big"]


def test_victims_that_are_going_are_waited_for_and_not_multiplied():
    play = full(4, *EVEN)
    play.grace = 5
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(2)))
    assert len(play.cycle().evicts) == 2
    for _ in range(4):
        assert play.cycle().evicts == ()
    assert sorted(started(play.cycle())) == ["w0", "w1"]


def test_a_restarted_planner_waits_for_the_victims_of_the_one_before():
    play = full(4, *EVEN)
    play.grace = 5
    play.wait(*(Pod(f"w{i}", "a", WHOLE, created=i) for i in range(2)))
    play.cycle()
    play.reservations = ()
    result = play.cycle()
    assert result.evicts == ()
    assert [reservation.reason for reservation in result.reservations] == [
        ReservationReason.FREED,
        ReservationReason.FREED,
    ]


def test_freed_devices_are_held_for_the_pod_for_which_they_were_freed():
    play = full(2, project("a", 0), project("b", 0), project("c", 1000))
    play.wait(Pod("w", "a", WHOLE))
    assert evicted(play.cycle()) == ["v1"]
    play.wait(Pod("first", "c", HALF, interactive=True, priority=100))
    play.wait(Pod("second", "c", HALF, priority=100))
    result = play.cycle()
    assert "w" in started(result)
    device = next(p.devices[0].device for p in result.assignments if p.job == "ns/w")
    assert device == "n0/1"


def test_held_room_is_let_go_when_its_pod_is_gone():
    play = full(2, *EVEN)
    play.grace = 3
    play.wait(Pod("w", "a", WHOLE))
    assert play.cycle().reservations
    play.waiting.clear()
    assert play.plan().reservations == ()


def test_a_pod_that_cannot_be_evicted_is_spared_and_another_one_goes():
    play = full(2, *EVEN).wait(Pod("w", "a", WHOLE))
    pod, running_pod = play.running[Pod("v1", "b", WHOLE).uid]
    play.running[pod.uid] = pod, replace(running_pod, spared=True)
    assert evicted(play.plan()) == ["v0"]


def test_a_higher_priority_takes_pods_of_a_strictly_lower_one_of_its_project():
    play = full(2, project("b", 2000), priority=50)
    play.wait(Pod("equal", "b", WHOLE, priority=50))
    assert play.plan().evicts == ()
    play.wait(Pod("urgent", "b", WHOLE, priority=51))
    (evict,) = play.cycle().evicts
    assert (evict.job, evict.beneficiary) == ("ns/v1", "ns/urgent")
    assert evict.reason is EvictReason.PRIORITY
    assert evict.message == (
        "v1 gives 1 GPU on n0 to ns/urgent: its priority is 51, that of ns/v1 50"
    )
    assert started(play.cycle()) == ["urgent"]
    assert play.cycle().evicts == ()


def test_a_higher_priority_gets_the_projects_own_room_where_devices_are_free():
    play = Play((2, 2), projects(project("b", 2000, weight=0)))
    play.place(Pod("v0", "b", WHOLE, priority=10), "n0/0")
    play.now += 1
    play.place(Pod("v1", "b", WHOLE, priority=20), "n0/1")
    play.wait(Pod("pair", "b", PAIR, priority=15))
    assert play.plan().evicts == ()  # only one of the two is below
    play.waiting.clear()
    play.wait(Pod("one", "b", WHOLE, priority=15))
    assert evicted(play.cycle()) == ["v0"]
    assert started(play.cycle()) == ["one"]
    assert play.held("b") == 2000


def test_another_project_is_not_touched_by_priority():
    play = full(2, project("a", 0), project("b", 2000), priority=0)
    play.wait(Pod("w", "a", WHOLE, priority=100))
    assert play.plan().evicts == ()


def test_a_limit_is_kept_by_those_who_preempt():
    play = full(2, project("b", 2000, 2000), priority=0)
    play.gpus = (4,)
    play.wait(*(Pod(f"w{i}", "b", WHOLE, priority=9, created=i) for i in range(3)))
    result = play.cycle()
    assert len(result.evicts) == 2
    play.cycle()
    assert play.held("b") == 2000


def test_what_a_helped_pod_waits_for_is_said():
    play = full(2, *EVEN)
    play.grace = 3
    play.wait(Pod("w", "a", WHOLE))
    wait = play.cycle().waits[0]
    assert wait.reason is Reason.WAITING_FOR_GPU
    assert wait.message == "needs 1 GPU; room on n0 is kept for it and pods there are ending"


def test_three_projects_are_at_their_shares_within_two_cycles_after_demand_changed():
    teams = (project("a", 0, weight=2), project("b", 0), project("c", 0))
    play = full(8, *teams, holder="a")
    play.wait(*(Pod(f"{team}w{i}", team, WHOLE, created=i) for i in range(8) for team in "abc"))
    for _ in range(2):
        play.cycle()
    assert [play.held(team) for team in "abc"] == [4000, 2000, 2000]
    play.waiting = [pod for pod in play.waiting if pod.project != "c"]
    play.running = {uid: each for uid, each in play.running.items() if each[0].project != "c"}
    for _ in range(2):
        play.cycle()
    assert play.held("a") + play.held("b") == 8000
    assert play.held("b") in (2000, 3000)  # its share is 2.667
