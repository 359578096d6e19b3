"""The statistics of fifteen minutes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_scheduler.usage.window import Look, Window, percentile, window

RATIOS = st.none() | st.floats(0, 1)
LOOKS = st.lists(
    st.builds(
        Look,
        busy=RATIOS,
        memory_mib=st.none() | st.floats(0, 1e5),
        device_busy=RATIOS,
        neighbours_above=RATIOS,
        tensor=RATIOS,
        throttled=st.none() | st.booleans(),
        refused=st.integers(0, 5),
        cpu=RATIOS,
        ram=RATIOS,
        io_stalled=RATIOS,
    ),
    max_size=90,
)


def busy(*values: float | None) -> list[Look]:
    return [Look(busy=value) for value in values]


def test_of_no_looks_nothing_is_known() -> None:
    assert window([], 1.0) == Window()


def test_what_is_unknown_counts_for_nothing() -> None:
    seen = window(busy(0.5, None, 0.7, None), 1.0)
    assert (seen.looks, seen.busy_mean, seen.busy_max) == (2, pytest.approx(0.6), 0.7)
    assert seen.device_busy_median is None
    assert seen.throttled is None


def test_use_is_of_the_device_and_what_counts_as_low_is_of_the_share() -> None:
    seen = window(busy(0.03, 0.03, 0.1, 0.0), 0.2)
    assert seen.busy_median == pytest.approx(0.03)
    assert seen.computing == 0.75  # 0.03 is 15 % of its share
    assert seen.low == 0.75


def test_a_swing_is_a_fall_from_high_to_low_whatever_lies_between() -> None:
    assert window(busy(0.9, 0.5, 0.1, 0.5, 0.1, 0.9, 0.9, 0.0), 1.0).swings == 2
    assert window(busy(0.5, 0.1, 0.5, 0.1), 1.0).swings == 0
    assert window(busy(0.0, 0.9), 1.0).swings == 0


def test_tensor_cores_are_looked_at_while_it_computes() -> None:
    looks = [Look(busy=0.9, tensor=0.4)] * 3 + [Look(busy=0.0, tensor=0.0)] * 9
    assert window([*looks, Look(busy=0.9)], 1.0).tensor_median == 0.4


def test_memory_has_its_bounds_and_refusals_their_sum() -> None:
    looks = [Look(memory_mib=each, refused=2) for each in (10.0, 40.0, 20.0)]
    seen = window(looks, 1.0)
    assert (seen.memory_min_mib, seen.memory_max_mib, seen.refused) == (10.0, 40.0, 6)


def test_heat_is_a_share_of_the_looks_in_which_it_was_known() -> None:
    looks = [Look(throttled=each) for each in (True, False, False, False, None)]
    assert window(looks, 1.0).throttled == 0.25


@pytest.mark.parametrize(
    ("values", "expected"), [([], None), ([3.0], 3.0), ([1.0] * 19 + [9.0], 1.0), ([1, 9], 9)]
)
def test_a_percentile_is_one_of_the_values(values: list[float], expected: float | None) -> None:
    assert percentile(values, 95) == expected


@settings(max_examples=40)
@given(LOOKS, st.floats(0.01, 1))
def test_any_looks_make_a_window_in_order(looks: list[Look], share: float) -> None:
    seen = window(looks, share)
    assert 0 <= seen.looks <= len(looks)
    if seen.busy_median is None:
        assert seen.looks == 0
    else:
        assert seen.busy_p95 is not None
        assert seen.busy_max is not None
        assert seen.busy_median <= seen.busy_max
        assert seen.busy_p95 <= seen.busy_max
        assert 0 <= (seen.computing or 0) <= 1
        assert 0 <= seen.swings <= seen.looks // 2
