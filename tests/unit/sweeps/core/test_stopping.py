"""Trials that are hopeless are told so, others are not, and a trial that begins anew is new."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import ACCURACY, LOSS

from gpu_scheduler.sweeps.core.stopping import CURVES, POINTS, Asha, Median, Stopping


def run(stopping: Stopping, trial: int, curve: list[float], *, first: int = 0) -> int | None:
    """Report a curve step by step; the step at which the trial was stopped."""
    for step, value in enumerate(curve, start=first):
        if stopping.report(trial, step, value):
            stopping.ended(trial, succeeded=False)
            return step
    stopping.ended(trial, succeeded=True)
    return None


GOOD = [1.0, 0.8, 0.6, 0.4, 0.2]
BAD = [2.0, 2.0, 2.0, 2.0, 2.0]


def test_a_trial_worse_than_the_median_is_stopped():
    stopping = Median(LOSS, min_trials=3)
    assert [run(stopping, i, GOOD) for i in range(3)] == [None] * 3
    assert run(stopping, 3, BAD) == 0
    assert run(stopping, 4, GOOD) is None


def test_the_median_is_that_of_running_means():
    stopping = Median(LOSS, min_trials=1)
    run(stopping, 0, [1.0, 0.0])  # means 1.0, 0.5
    assert not stopping.report(1, 0, 1.0)
    assert not stopping.report(1, 1, 0.5)
    assert not stopping.report(2, 0, 1.0)
    assert stopping.report(2, 1, 0.6)


def test_the_best_value_so_far_counts_not_the_last():
    stopping = Median(LOSS, min_trials=1)
    run(stopping, 0, [1.0, 1.0, 1.0])
    assert not stopping.report(1, 0, 0.5)
    assert not stopping.report(1, 1, 9.0)


@pytest.mark.parametrize(("warmup", "at"), [(0, 0), (3, 3), (5, None)])
def test_nobody_is_stopped_before_the_warmup_is_over(warmup, at):
    stopping = Median(LOSS, min_trials=2, warmup_steps=warmup)
    run(stopping, 0, GOOD), run(stopping, 1, GOOD)
    assert run(stopping, 2, BAD) == at


def test_nobody_is_stopped_before_enough_trials_have_succeeded():
    stopping = Median(LOSS, min_trials=3)
    run(stopping, 0, GOOD), run(stopping, 1, GOOD)
    stopping.report(2, 0, 0.0)
    stopping.ended(2, succeeded=False)
    assert run(stopping, 3, BAD) is None


def test_trials_that_ended_earlier_than_this_step_say_nothing_of_it():
    stopping = Median(LOSS, min_trials=1)
    run(stopping, 0, [0.0], first=5)
    assert not stopping.report(1, 0, 9.0)
    assert stopping.report(1, 5, 9.0)


def test_maximize_turns_the_comparison():
    stopping = Median(ACCURACY, min_trials=1)
    run(stopping, 0, [0.5, 0.6])
    assert not stopping.report(1, 0, 0.9)
    assert stopping.report(2, 0, 0.1)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_the_worst(value):
    stopping = Median(LOSS, min_trials=1)
    run(stopping, 0, GOOD)
    assert stopping.report(1, 0, value)
    best_of_all = Median(ACCURACY, min_trials=1)
    run(best_of_all, 0, GOOD)
    assert best_of_all.report(1, 0, float("nan"))


def test_a_trial_that_was_started_again_is_judged_anew():
    stopping = Median(LOSS, min_trials=1)
    run(stopping, 0, [1.0, 1.0])
    assert not stopping.report(1, 0, 0.1)
    assert not stopping.report(1, 1, 5.0)  # its best is 0.1
    assert stopping.report(1, 0, 5.0)  # which the second try has not


def test_a_report_sent_twice_counts_once():
    stopping = Median(LOSS, min_trials=1)
    for value in (0.0, 1.0, 1.0, 1.0):  # the means stay 0.0, 0.5
        stopping.report(0, 0 if value == 0.0 else 1, value)
    stopping.ended(0, succeeded=True)
    stopping.report(1, 0, 1.0)
    assert stopping.stopped(1)
    assert stopping.report(1, 0, 0.0)  # once told, always told
    assert not stopping.report(2, 0, 0.0)


def test_curves_of_ended_trials_are_bounded():
    stopping = Median(LOSS, min_trials=1)
    for trial in range(3 * CURVES):
        run(stopping, trial, [1.0])
    assert len(stopping._ended) == CURVES
    assert not stopping._running
    assert not stopping._last_step


def test_a_trial_that_reports_for_ever_takes_no_more_room():
    stopping = Median(LOSS, min_trials=1)
    for step in range(20 * POINTS):
        stopping.report(0, step, 1.0)
        curve = stopping._running[0]
        assert len(curve.steps) == len(curve.means) <= POINTS
        assert curve.steps[-1] == step


def test_a_long_curve_still_has_the_mean_of_all_reports():
    random = Random(1)
    costs = [random.random() for _ in range(5 * POINTS)]
    stopping = Median(LOSS, min_trials=1)
    assert run(stopping, 0, costs) is None
    for step in (POINTS, 3 * POINTS, 5 * POINTS - 1):
        near = max(s for s in stopping._ended[0].steps if s <= step)
        assert step - near < 8  # it was thinned out three times
        mean = sum(costs[: near + 1]) / (near + 1)
        assert stopping._ended[0].mean_until(step) == pytest.approx(mean)


def test_a_rung_lets_the_best_third_go_on():
    stopping = Asha(LOSS, min_resource=1, reduction_factor=3)
    answers = [stopping.report(trial, 1, float(value)) for trial, value in enumerate([5, 4, 3])]
    assert answers == [False, False, False]  # 3 is the best of three; 5 and 4 were not judged
    assert stopping.report(3, 1, 4.5)
    assert not stopping.report(4, 1, 1.0)
    assert not stopping.report(5, 1, 2.0)  # best two of six


def test_rungs_are_a_factor_apart_and_nobody_is_judged_between_them():
    stopping = Asha(LOSS, min_resource=2, reduction_factor=3)
    for trial in range(10):
        assert not stopping.report(trial, 1, 9.0)
    for trial in range(9):
        stopping.report(trial, 2, float(trial))
    assert not stopping.report(0, 3, 99.0)
    assert not stopping.report(0, 5, 99.0)


def test_a_step_that_leaps_over_rungs_is_judged_at_each():
    stopping = Asha(LOSS, min_resource=1, reduction_factor=2)
    for trial in range(4):
        stopping.report(trial, 8, float(trial))
    assert [len(rung) for rung in stopping._rungs] == [4, 4, 4, 4]
    assert stopping.stopped(3)


def test_a_trial_that_was_started_again_stands_on_a_rung_once():
    stopping = Asha(LOSS, min_resource=1, reduction_factor=3)
    for _ in range(5):
        stopping.report(0, 1, 1.0)
        stopping.report(0, 0, 1.0)
    assert stopping._rungs == [[]]
    stopping.report(0, 3, 1.0)
    assert stopping._rungs == [[1.0], [1.0]]


@given(st.lists(st.floats(0, 1), min_size=30, max_size=60))
def test_asha_never_stops_the_best_trial_of_a_rung(values):
    stopping = Asha(LOSS, min_resource=1, reduction_factor=3)
    best = float("inf")
    for trial, value in enumerate(values):
        told = stopping.report(trial, 1, value)
        assert not (told and value <= best)
        best = min(best, value)


def make(kind: str) -> Stopping:
    if kind == "median":
        return Median(LOSS, min_trials=5, warmup_steps=3)
    return Asha(LOSS, reduction_factor=2)


@pytest.mark.parametrize("kind", ["median", "asha"])
def test_half_of_the_trials_of_a_case_where_half_are_hopeless_are_stopped(kind):
    stopping, random = make(kind), Random(3)
    stopped = []
    for trial in range(100):
        hopeless = trial % 2 == 1
        curve = [(2.0 if hopeless else 1.0 / (s + 1)) + 0.01 * random.random() for s in range(16)]
        if run(stopping, trial, curve, first=1) is not None:
            stopped.append(trial)
    hopeless_ones = [trial for trial in stopped if trial % 2]
    assert len(hopeless_ones) >= 45  # the first few have nobody to be compared with
    if kind == "median":  # past the warmup, what improves is below what others had on average
        assert stopped == hopeless_ones
