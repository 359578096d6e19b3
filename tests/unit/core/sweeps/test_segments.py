"""Every trial is in exactly one segment, and there are never more open than are needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.sweeps.segments import SEGMENT_TRIALS, Segment, to_open, widths


def all_segments(completions: int) -> list[Segment]:
    return to_open([], 0, completions, parallelism=10**6)


def test_ten_thousand_trials_are_ten_segments_of_a_thousand():
    found = all_segments(10_000)
    assert found == [Segment(k, 1000 * k, SEGMENT_TRIALS) for k in range(10)]
    assert found[7].trial(999) == 7999


def test_the_last_segment_has_what_is_left():
    assert all_segments(2001)[-1] == Segment(2, 2000, 1)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_every_trial_is_in_one_segment_however_often_trials_are_added(rises):
    existing: list[Segment] = []
    completions = 0
    for rise in rises:
        completions += rise
        existing += to_open(existing, 0, completions, parallelism=10**6)
    assert [s.number for s in existing] == list(range(len(existing)))
    trials = [segment.trial(i) for segment in existing for i in range(segment.size)]
    assert trials == list(range(completions))
    assert all(1 <= s.size <= SEGMENT_TRIALS for s in existing)


@pytest.mark.parametrize(("left", "opens"), [(1000, 0), (9, 0), (8, 0), (7, 1), (0, 1)])
def test_the_next_opens_when_fewer_are_left_than_may_run(left, opens):
    first = Segment(0, 0, 1000)
    assert len(to_open([first], left, 3000, parallelism=8)) == opens


def test_as_many_open_as_a_wide_sweep_needs():
    assert len(to_open([], 0, 10_000, parallelism=2500)) == 3


def test_nothing_opens_behind_the_last_trial():
    assert to_open([Segment(0, 0, 40)], 0, 40, parallelism=8) == []


@given(st.lists(st.integers(0, 1000), max_size=8), st.integers(1, 3000))
def test_segments_share_the_parallelism_and_none_gets_more_than_it_has_left(left, parallelism):
    found = widths(left, parallelism)
    assert sum(found) == min(parallelism, sum(left))
    assert all(width <= each for width, each in zip(found, left, strict=True))


def test_there_is_no_index_outside_a_segment():
    with pytest.raises(IndexError):
        Segment(0, 0, 40).trial(40)
