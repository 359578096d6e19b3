"""When others are evicted for whom, in seconds, and what it may cost them."""

from dataclasses import replace
from math import inf

import pytest
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.actions.test_preemption import evicted, started
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.eviction.deadlines import WORTH, Deadline
from gpu_scheduler.core.model.preemption_policy import FAIR, PlannerMemory, PreemptionPolicy
from gpu_scheduler.core.model.request import ProjectName

WHOLE = pod_shape(1000)
A, B = ProjectName("a"), ProjectName("b")


def play(*teams: object, gpus: int = 2) -> Play:
    made = Play((gpus,), projects(*teams))  # type: ignore[arg-type]
    made.preemption_policy = FAIR
    return made


def later(case: Play, seconds: float) -> Play:
    """So much later, with a plan at each end."""
    case.carry_out(case.plan())
    case.tick(seconds)
    return case


def borrowed(owner_quota: int = 2000) -> Play:
    """Two GPUs that b borrows from a since long ago, and one pod of a that waits for one."""
    case = play(project("a", owner_quota), project("b", 0))
    for i in range(2):
        case.place(Pod(f"v{i}", "b", WHOLE), f"n0/{i}")
    case.now += 1000.0
    return case.wait(Pod("w", "a", WHOLE, created=case.now))


def test_a_guarantee_waits_for_its_seconds_and_no_longer():
    case = borrowed()
    first = case.plan()
    assert evicted(first) == []
    assert first.again_at is not None and first.again_at <= case.now + 60.0
    assert "who borrows gives way from 1970-01-01T00:34:20Z on" in first.waits[0].message
    case.carry_out(first)
    case.tick(59.0)
    assert evicted(case.cycle(1.0)) == []
    assert len(evicted(case.cycle(1.0))) == 1
    assert started(case.cycle(1.0)) == ["w"]


def spare_all(case: Play) -> None:
    for uid, (pod, running) in case.running.items():
        case.running[uid] = pod, replace(running, spared=True)


def waits_in_vain(case: Play, seconds: float) -> str:
    """What is said of w once its deadline has passed and nobody could go."""
    spare_all(case)
    later(case, 1.0)
    later(case, seconds)
    result = case.plan()
    assert evicted(result) == []
    return result.waits[0].message


def test_no_time_that_has_passed_is_promised():
    """Who is owed something by then, and gets it from nobody, reads that it was due."""
    assert "its guarantee was due at 1970-01-01T00:34:20Z: too little" in waits_in_vain(
        borrowed(), 60.0
    )
    case = play(project("a", 2000))
    for i in range(2):
        case.place(Pod(f"v{i}", "a", WHOLE, priority=10), f"n0/{i}")
    case.now += 1000.0
    case.wait(Pod("w", "a", WHOLE, priority=90, created=case.now))
    assert "its priority was due at 1970-01-01T00:43:20Z: too little" in waits_in_vain(case, 600.0)
    case = play(project("a", 0), project("b", 0))
    for i in range(2):
        case.place(Pod(f"v{i}", "b", WHOLE), f"n0/{i}")
    case.now += 1000.0
    case.wait(Pod("w", "a", WHOLE, created=case.now))
    assert "its fair share was due at 1970-01-01T00:44:35Z: too little" in waits_in_vain(
        case, 700.0
    )


def test_nobody_is_promised_what_no_eviction_could_bring():
    """Whatever b gives back is too small, or no place for it: no time is named for that."""
    case = borrowed()
    spare_all(case)
    assert "gives way" not in later(case, 1.0).plan().waits[0].message
    case = play(project("a", 2000), project("b", 0), project("c", 1000), gpus=3)
    case.place(Pod("v0", "b", WHOLE), "n0/0")
    for i in (1, 2):
        case.place(Pod(f"v{i}", "c", pod_shape(500)), f"n0/{i}", milli=500)
    case.now += 1000.0
    case.wait(Pod("w", "a", pod_shape(1000, count=2), created=case.now))
    assert "gives way" not in later(case, 1.0).plan().waits[0].message


def test_a_guarantee_is_the_ground_that_who_gives_way_reads():
    evict = later(borrowed(), 60.0).plan().evicts[0]
    assert (
        "gives 1 GPU on n0 to ns/w: its quota is a guarantee: project a holds 0 GPUs, its quota is"
        " 2, project b holds 2 GPUs, its quota is 0; "
    ) in evict.message


def test_who_gets_what_others_are_giving_up_is_promised_nothing_more():
    case = borrowed()
    case.carry_out(case.plan())
    case.tick(60.0)
    result = case.plan()
    assert len(evicted(result)) == 1
    assert result.waits[0].message.endswith("is kept for it and pods there are ending")


def test_a_guarantee_is_met_at_once_at_the_cost_of_who_just_started():
    case = borrowed()
    uid, (pod, young) = list(case.running.items())[1]
    case.running[uid] = pod, replace(young, since=case.now - 45.0)
    assert evicted(case.plan()) == [pod.name]
    case.running[uid] = pod, replace(young, since=case.now - 46.0)
    assert evicted(case.plan()) == []


def overdue(*others: Pod, ages: tuple[float, ...]) -> list[str]:
    """Who goes for a pod of a that is inside its quota, when its minute is over.

    Two GPUs are borrowed by pods of such ages then.
    """
    case = play(project("a", 2000), project("b", 0), project("c", 0, weight=3))
    now = case.now = 1000.0
    for i, (pod, age) in enumerate(zip(others, ages, strict=True)):
        case.now = now + 60.0 - age
        case.place(pod, f"n0/{i}")
    case.now = now
    case.wait(Pod("w", "a", WHOLE, created=case.now))
    return evicted(later(case, 60.0).plan())


def test_a_guarantee_takes_what_loses_least_and_not_from_who_is_above_its_share():
    old, young = Pod("old", "b", WHOLE), Pod("young", "c", WHOLE)
    assert overdue(old, young, ages=(400.0, 300.0)) == ["young"], "c is below its share"
    assert overdue(old, young, ages=(300.0, 400.0)) == ["old"]


def test_what_an_interactive_pod_loses_counts_four_times():
    note, train = Pod("note", "b", WHOLE, interactive=True), Pod("train", "b", WHOLE)
    assert overdue(note, train, ages=(150.0, 500.0)) == ["train"]
    assert overdue(note, train, ages=(120.0, 500.0)) == ["note"]


def test_what_was_saved_is_not_lost():
    case = borrowed()
    uid, (pod, old) = list(case.running.items())[0]
    case.running[uid] = pod, replace(old, saved=case.now - 10.0)
    result = case.plan()
    assert evicted(result) == [pod.name]
    assert "10 GPU-seconds of its work are lost" in result.evicts[0].message


def test_a_priority_waits_for_its_patience_and_then_for_what_is_worth_it():
    case = play(project("a", 2000))
    case.place(Pod("old", "a", WHOLE, priority=10), "n0/0")
    case.now += 100.0
    case.place(Pod("young", "a", WHOLE, priority=10), "n0/1")
    case.wait(Pod("w", "a", WHOLE, priority=90, created=case.now))
    first = case.plan()
    assert (evicted(first), first.again_at) == ([], case.now + 60.0)
    message = first.waits[0].message
    assert (
        "give way from 1970-01-01T00:19:20Z on if they lose little, from 1970-01-01T00:28:2"
        in message
    )
    later(case, 60.0)
    assert evicted(case.plan()) == [], "60 s are lost, of 60 s that it waited"
    later(case, 539.0)
    assert evicted(case.plan()) == []
    assert case.plan().again_at == case.now + 1.0
    later(case, 1.0)
    assert evicted(case.plan()) == ["young"], "ten times the patience, whatever it costs"


def test_a_priority_takes_what_began_after_it_as_soon_as_patience_is_over():
    case = play(project("a", 2000))
    case.place(Pod("old", "a", WHOLE, priority=10), "n0/0")
    case.wait(Pod("w", "a", pod_shape(1000, count=2), priority=90, created=case.now))
    later(case, 50.0)
    case.place(Pod("small", "a", WHOLE, priority=10), "n0/1")
    case.wait(Pod("one", "a", WHOLE, priority=80, created=case.now - 50.0))
    later(case, 10.0)
    assert evicted(case.plan()) == ["small"], "10 s of work for 60 s of waiting"


def test_a_share_is_an_average_over_the_window():
    case = play(project("a", 0), project("b", 0))
    for i in range(2):
        case.place(Pod(f"v{i}", "b", WHOLE), f"n0/{i}")
    case.now += 1000.0
    case.wait(Pod("w", "a", WHOLE, created=case.now))
    result = case.plan()
    assert evicted(result) == []
    assert result.again_at is not None
    assert result.again_at - case.now == pytest.approx(46.2, abs=0.1)
    later(case, 674.0)
    result = case.plan()
    assert evicted(result) == []
    assert (
        "below its fair share: others give way from 1970-01-01T00:44:35Z" in result.waits[0].message
    )
    later(case, 1.0)
    assert len(evicted(case.plan())) == 1, "three quarters of a window that is due"


def test_what_ran_for_less_than_promised_goes_for_no_share():
    case = play(project("a", 0), project("b", 0))
    case.wait(Pod("w", "a", WHOLE, created=case.now))
    case.memory = PlannerMemory(case.now - 900.0, {}, {A: 1000, B: -1000})
    case.waiting = [replace(case.waiting[0], created=0.0)]
    for i in range(2):
        case.place(Pod(f"v{i}", "b", WHOLE), f"n0/{i}")
    case.now += 299.0
    assert evicted(case.plan()) == []
    case.now += 1.0
    assert len(evicted(case.plan())) == 1
    case.projects[B] = replace(case.projects[B], min_runtime_seconds=301.0)
    assert evicted(case.plan()) == []


def test_nobody_gives_way_to_the_same_job_twice_in_a_row():
    case = borrowed()
    case.preemption_policy = PreemptionPolicy(0.0, 0.0, 0.0, 1.0)
    (first,) = evicted(case.plan())
    uid, (pod, on) = next(e for e in case.running.items() if e[1][0].name == first)
    case.running[uid] = pod, replace(on, lost_to=case.waiting[0].key)
    (other,) = evicted(case.plan())
    assert other != first


def test_nothing_is_due_where_nothing_is_promised():
    case = borrowed()
    case.preemption_policy = PreemptionPolicy(inf, inf, inf, inf)
    result = case.plan()
    assert (evicted(result), result.again_at) == ([], case.now + case.reserve_after_seconds)
    later(case, 1_000_000.0)
    assert evicted(case.plan()) == []


def test_the_strict_rules_remember_nothing():
    case = borrowed()
    case.preemption_policy = PreemptionPolicy(0.0, 0.0, 0.0, 0.0, strict=True)
    result = case.plan()
    assert len(evicted(result)) == 1
    assert result.memory == PlannerMemory()


def test_a_due_allows_more_the_longer_it_is_waited_for():
    deadline = Deadline(100.0, 200.0, 45.0)
    assert deadline.most_lost_seconds(100.0) == 45.0
    assert deadline.most_lost_seconds(150.0) == 45.0 + 50 * WORTH
    assert deadline.most_lost_seconds(200.0) == inf
    assert deadline.most_lost_seconds(-3561.0) == 45.0  # never less than at its beginning


def test_averages_forget_what_was_long_ago():
    memory = PlannerMemory(1000.0, {}, {A: 1000, B: 0}, {A: 0.0, B: 500.0})
    after = memory.behind(1000.0 + 900.0, 900.0)
    assert after[A] == pytest.approx(632.1, abs=0.1)
    assert after[B] == pytest.approx(183.9, abs=0.1)
    at = memory.behind_at(A, 500.0, 900.0)
    assert memory.behind(at, 900.0)[A] == pytest.approx(500.0, abs=0.1)
    assert memory.behind(at, 900.0)[A] >= 500.0
    assert memory.behind_at(A, 1000.0, 900.0) == inf
    assert memory.behind_at(A, 500.0, inf) == inf
