"""Whose last pods could not start for a reason of their own gets what is free, and no more."""

from dataclasses import replace

import pytest
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.actions.test_consolidation import scattered
from tests.unit.core.actions.test_preemption import evicted, started
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy

WHOLE, PAIR = pod_shape(1000), pod_shape(1000, count=2)
AT_ONCE = replace(FAIR, guarantee_seconds=0.0)
TEAMS = (project("a", 2000), project("b", 0))


def full(preemption_policy: PreemptionPolicy, holder: str = "b", **pod: object) -> Play:
    """Two GPUs that are held since long ago."""
    case = Play((2,), projects(*TEAMS), preemption_policy=preemption_policy)
    for i in range(2):
        case.place(Pod(f"v{i}", holder, WHOLE, **pod), f"n0/{i}")  # type: ignore[arg-type]
    case.now += 10_000.0
    return case


@pytest.mark.parametrize("gang", ["", "w"])
@pytest.mark.parametrize("preemption_policy", [STRICT, AT_ONCE])
def test_nobody_gives_way_to_it_for_a_guarantee(
    preemption_policy: PreemptionPolicy, gang: str
) -> None:
    case, wanted = full(preemption_policy), Pod("w", "a", WHOLE, gang=gang)
    assert evicted(replace(case, waiting=[wanted]).plan())
    result = case.wait(replace(wanted, doubtful=True)).plan()
    assert evicted(result) == [] and result.reservations == ()
    assert "guarantee" not in result.waits[0].message


@pytest.mark.parametrize("preemption_policy", [STRICT, AT_ONCE])
def test_nobody_gives_way_to_it_for_its_priority(preemption_policy: PreemptionPolicy) -> None:
    case, wanted = full(preemption_policy, "a", priority=10), Pod("w", "a", WHOLE, priority=90)
    assert evicted(replace(case, waiting=[wanted]).plan())
    result = case.wait(replace(wanted, doubtful=True)).plan()
    assert evicted(result) == []
    assert "give way" not in result.waits[0].message


def test_who_is_like_it_and_has_not_failed_is_helped() -> None:
    case = full(STRICT).wait(Pod("first", "a", WHOLE, doubtful=True))
    case.wait(Pod("second", "a", WHOLE, created=1.0))
    assert {each.beneficiary for each in case.plan().evicts} == {"ns/second"}


def test_no_room_is_kept_for_it_and_borrowers_get_what_it_waits_for() -> None:
    case = Play((2,), projects(*TEAMS), preemption_policy=FAIR)
    case.place(Pod("v", "b", WHOLE), "n0/0").now += 10_000.0
    wanted = Pod("w", "a", PAIR)
    borrower = Pod("x", "b", WHOLE, created=1.0)
    assert started(replace(case, waiting=[wanted, borrower]).plan()) == []
    result = case.wait(replace(wanted, doubtful=True), borrower).plan()
    assert started(result) == ["x"] and result.reservations == ()


def test_nobody_moves_for_it() -> None:
    wanted = Pod("pair", "p", PAIR)
    assert evicted(scattered().wait(wanted).plan()) == ["a"]
    assert evicted(scattered().wait(replace(wanted, doubtful=True)).plan()) == []


def test_it_starts_on_what_is_free() -> None:
    case = Play((2,), projects(*TEAMS)).wait(Pod("w", "a", WHOLE, doubtful=True))
    assert started(case.plan()) == ["w"]


def test_room_that_was_made_for_it_before_is_let_go() -> None:
    case = full(STRICT).wait(Pod("w", "a", WHOLE))
    case.carry_out(case.plan())
    assert case.reservations
    case.waiting = [replace(case.waiting[0], doubtful=True)]
    assert case.plan().reservations == ()
