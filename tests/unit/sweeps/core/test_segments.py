"""Every trial is in exactly one segment, and there are never more open than are needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.sweeps.core.segments import SEGMENT_TRIALS, Segment, following, widths


def all_segments(completions: int) -> list[Segment]:
    return opened([], completions)


def opened(existing: list[Segment], completions: int) -> list[Segment]:
    """All segments that come behind those that exist."""
    found: list[Segment] = []
    while (segment := following([*existing, *found], completions)) is not None:
        found.append(segment)
    return found


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
        existing += opened(existing, completions)
    assert [s.number for s in existing] == list(range(len(existing)))
    trials = [segment.trial(i) for segment in existing for i in range(segment.size)]
    assert trials == list(range(completions))
    assert all(1 <= s.size <= SEGMENT_TRIALS for s in existing)


def test_nothing_opens_behind_the_last_trial():
    assert following([Segment(0, 0, 40)], 40) is None


@given(st.lists(st.integers(0, 1000), max_size=8), st.integers(1, 3000))
def test_segments_share_the_parallelism_and_none_gets_more_than_it_has_left(left, parallelism):
    found = widths(left, parallelism)
    assert sum(found) == min(parallelism, sum(left))
    assert all(width <= each for width, each in zip(found, left, strict=True))


def test_there_is_no_index_outside_a_segment():
    with pytest.raises(IndexError):
        Segment(0, 0, 40).trial(40)
