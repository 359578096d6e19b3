"""Before anybody gives way to a job, the plan asks that somebody looks at it."""

from dataclasses import replace

import pytest
from tests.unit.builders import project, projects
from tests.unit.core.actions.test_consolidation import scattered
from tests.unit.core.actions.test_preemption import evicted, started
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.test_doubtful import AT_ONCE, PAIR, WHOLE, full

from gpu_scheduler.core.actions.preemption import MOST_HELPED
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy


@pytest.mark.parametrize("gang", ["", "w"])
@pytest.mark.parametrize("preemption_policy", [STRICT, AT_ONCE])
def test_nobody_goes_for_a_guarantee_before_somebody_has_looked(
    preemption_policy: PreemptionPolicy, gang: str
) -> None:
    wanted = Pod("w", "a", WHOLE, gang=gang, unseen=True)
    case = full(preemption_policy).wait(wanted)
    result = case.plan()
    assert evicted(result) == [] and result.looks == ("ns/w",)
    nominal_since = result.memory.nominal_since
    case.waiting = [replace(wanted, unseen=False)]
    result = case.plan()
    assert len(evicted(result)) == 1 and result.looks == ()
    assert result.memory.nominal_since == nominal_since, "it has waited since then"


def test_nor_for_a_priority() -> None:
    case = full(STRICT, "a", priority=10).wait(Pod("w", "a", WHOLE, priority=90, unseen=True))
    result = case.plan()
    assert evicted(result) == [] and result.looks == ("ns/w",)


def test_nor_does_anybody_move() -> None:
    result = scattered().wait(Pod("pair", "p", PAIR, unseen=True)).plan()
    assert evicted(result) == [] and result.looks == ("ns/pair",)


def test_who_needs_nobody_to_go_is_not_looked_at() -> None:
    case = Play((2,), full(STRICT).projects)
    result = case.wait(Pod("w", "a", WHOLE, unseen=True)).plan()
    assert started(result) == ["w"] and result.looks == ()


def test_nor_who_would_only_be_started_before_others_of_the_same_plan() -> None:
    case = Play((1,), full(STRICT).projects)
    case.wait(Pod("late", "b", WHOLE, created=1.0), Pod("w", "a", WHOLE, created=2.0, unseen=True))
    result = case.plan()
    assert started(result) == ["w"] and result.looks == () and evicted(result) == []


def test_who_has_been_looked_at_is_helped_beside_one_that_has_not() -> None:
    case = full(STRICT).wait(Pod("first", "a", WHOLE, unseen=True))
    case.wait(Pod("second", "a", WHOLE, created=1.0))
    result = case.plan()
    assert {each.beneficiary for each in result.evicts} == {"ns/second"}
    assert result.looks == ("ns/first",)


def test_of_many_pods_of_a_job_it_is_asked_for_once_and_of_many_jobs_for_some() -> None:
    case = full(STRICT)
    case.projects = projects(project("a", 10**6), project("b", 0))
    case.wait(*(Pod(f"w{i}", "a", WHOLE, job="many", unseen=True) for i in range(5)))
    assert case.plan().looks == ("ns/many",)
    case.waiting = [Pod(f"w{i}", "a", WHOLE, unseen=True) for i in range(3 * MOST_HELPED)]
    assert 0 < len(case.plan().looks) <= MOST_HELPED
