"""Quotas, limits, shares and promises hold over GPUJobs and pods that ask by themselves alike.

The plays are those of ``core/properties``; which of their pods have no GPUJob is drawn beside.
"""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.properties import test_promises
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.test_fair_play import check_each_plan, check_everybody_runs, plays
from tests.unit.core.properties.test_promises import WHOLE, check_the_guarantee
from tests.unit.state.mixed_play import mixed, play_of

from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy

EXAMPLES = settings(max_examples=100, deadline=None)
Case = tuple[Play, list[Pod]]
by_themselves = st.sets(st.integers(0, 9))  # numbers of the pods without a GPUJob


def without_jobs(case: Case, numbers: set[int]) -> Case:
    """The same case, in which these pods ask by themselves."""
    play, later = case

    def requests(pod: Pod) -> bool:
        return int(pod.name.lstrip("abcdefghijklmnopqrstuvwxyz")) in numbers

    return play_of(play, requests), mixed(later, requests)


@pytest.mark.long
@EXAMPLES
@given(plays(), by_themselves)
def test_limits_quotas_and_shares_hold(case: Case, numbers: set[int]) -> None:
    check_each_plan(*without_jobs(case, numbers))


@pytest.mark.long
@EXAMPLES
@given(plays(finite=True), by_themselves)
def test_everybody_runs_in_the_end(case: Case, numbers: set[int]) -> None:
    check_everybody_runs(*without_jobs(case, numbers))


@pytest.mark.long
@EXAMPLES
@given(test_promises.work((WHOLE,)), by_themselves)
def test_a_pod_inside_quota_starts_within_the_promise(case: Case, numbers: set[int]) -> None:
    check_the_guarantee(*without_jobs(case, numbers))


@pytest.mark.long
@settings(EXAMPLES, max_examples=150)
@given(plays(), by_themselves, st.sampled_from([STRICT, PreemptionPolicy(3.0, 3.0, 5.0, 10.0)]))
def test_the_same_work_is_treated_the_same_whoever_asks(
    case: Case, numbers: set[int], preemption_policy: PreemptionPolicy
) -> None:
    """Same places, victims, room kept and sentences, in the same order, plan by plan."""
    jobs, some = without_jobs(case, set()), without_jobs(case, numbers)
    for cycle in range(8):
        told = []
        for play, later in (jobs, some):
            play.preemption_policy = preemption_policy
            told.append(in_words(play.cycle()))
            # Who comes again is another one: its age is its own, and that of a job its job's.
            play.waiting = [pod for pod in play.waiting if not pod.again]
            play.wait(*(later if cycle == 1 else ()))
        assert told[0] == told[1]


_NAMES = re.compile("; (?:held by|room is kept for) ")
_GROUP = re.compile(r"/(?:pod (?=\w+-0)|replicaset )(\w+)(?:-0)?")


def in_words(result: Plan) -> list[Any]:
    """A plan with the names that jobs of the same pods would have."""
    found = [
        *((a.pod, a.node, a.devices) for a in result.assignments),
        *((e.pod, e.job, e.beneficiary, e.reason, e.message) for e in result.evicts),
        *((h.pod, h.job, h.node, h.reason, h.start, h.devices) for h in result.reservations),
        # Who holds as much, or has room kept, is told in the order of names, which are others.
        *((w.job, w.reason, w.position, _NAMES.split(w.message)[0]) for w in result.waits),
        *sorted(result.shares_milli.items()),
    ]
    return [tuple(map(_named, each)) for each in found]


def _named(told: object) -> object:
    return _GROUP.sub(r"/\1", told) if isinstance(told, str) else told
