"""The summary depends on the outcomes alone, and stays as small for any number of them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import ACCURACY, LOSS, broken, done

from gpu_scheduler.api.search import ERRORS, TOP, Objective
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.table import Table

STATES = st.sampled_from(TrialState)
OUTCOMES = st.lists(
    st.builds(Outcome, st.integers(0, 30), STATES, st.none() | st.integers(0, 5).map(float))
)


@given(OUTCOMES, st.randoms())
def test_the_summary_is_that_of_the_last_outcome_of_each_trial_in_any_order(outcomes, random):
    table = Table(LOSS, outcomes)
    last = {outcome.trial: outcome for outcome in outcomes}
    shuffled = list(last.values())
    random.shuffle(shuffled)
    assert table.summary() == Table(LOSS, shuffled).summary()
    assert list(table) == [last[trial] for trial in sorted(last)]

    good = [o for o in last.values() if o.state is TrialState.SUCCEEDED and o.value is not None]
    good.sort(key=lambda o: (o.value, o.trial))
    assert list(table.summary().top) == good[:TOP]
    failed = sorted((t for t, o in last.items() if o.failed), reverse=True)
    assert [o.trial for o in table.summary().errors] == failed[:ERRORS]
    assert table.summary().failed == len(failed)
    assert sum(table.summary().counts.values()) == len(last) == len(table)


def test_the_lowest_trial_wins_a_tie():
    assert Table(LOSS, [done(7, 0.5), done(3, 0.5), done(9, 0.5)]).summary().best == done(3, 0.5)


def test_maximize_turns_the_order():
    best = Table(ACCURACY, [done(0, 0.1), done(1, 0.9), done(2, 0.5)]).summary().best
    assert best == done(1, 0.9)


def test_a_pruned_trial_is_never_the_best():
    pruned = Outcome(0, TrialState.PRUNED, 0.0)
    assert Table(LOSS, [pruned, done(1, 1.0)]).summary().best == done(1, 1.0)


def test_without_an_objective_trials_are_counted_only():
    summary = Table(None, [Outcome(0, TrialState.SUCCEEDED), broken(1)]).summary()
    assert summary.best is None
    assert summary.counts == {TrialState.SUCCEEDED: 1, TrialState.FAILED: 1}
    assert not summary.target_reached


def test_a_started_trial_has_not_ended():
    summary = Table(LOSS, [Outcome(0, TrialState.STARTED, parameters=(1,)), done(1, 1.0)]).summary()
    assert (summary.ended, summary.failed) == (1, 0)


@pytest.mark.parametrize(("value", "reached"), [(0.02, True), (0.01, True), (0.03, False)])
def test_a_target_is_reached_by_a_value_as_good(value, reached):
    table = Table(Objective("val_loss", target=0.02), [done(0, value)])
    assert table.summary().target_reached is reached


def test_the_same_outcome_again_changes_nothing():
    table = Table(LOSS)
    assert [table.put(done(0, 1.0)), table.put(done(0, 1.0)), table.put(done(0, 2.0))] == [
        True,
        False,
        True,
    ]


@pytest.mark.long
def test_a_hundred_thousand_trials_have_a_summary_of_the_same_size():
    random = Random(1)
    table = Table(LOSS)
    for trial in range(100_000):
        table.put(broken(trial) if trial % 10 == 0 else done(trial, random.random()))
    summary = table.summary()
    assert (len(summary.top), len(summary.errors), summary.failed) == (TOP, ERRORS, 10_000)
    values = [outcome.value for outcome in table if outcome.value is not None]
    assert [o.value for o in summary.top] == sorted(values)[:TOP]
