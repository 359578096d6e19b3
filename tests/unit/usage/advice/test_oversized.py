"""Right-sizing: how it rounds, and that it never costs the work what it needs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_fields
from tests.unit.usage.advice.seen import DEVICE_MIB, USABLE, work_of
from tests.unit.usage.advice.traces import CAP, good, oversized

from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.oversized import p95_of, right_share_milli
from gpu_scheduler.usage.advice.rules import advise
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window

DEFAULTS = Thresholds()


def work(share: float, busy_p95: float, peak: float, **fields: object) -> Work:
    """``peak``: of the device's memory."""
    base = Work(
        namespace="team-a",
        name="train",
        share=share,
        gpus=share,
        cap_mib=share * USABLE * DEVICE_MIB,
        device_mib=DEVICE_MIB,
        running_seconds=3600,
        ever_used=True,
        peak_mib=peak * DEVICE_MIB,
        busy_p95=busy_p95,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def advised(work: Work) -> str | None:
    found = [each for each in advise(work) if each.rule == RuleName.OVERSIZED]
    return found[0].command.rsplit(" ", 1)[-1] if found else None


@pytest.mark.parametrize(
    ("share", "busy_p95", "peak", "expected"),
    [
        (1.0, 0.2, 0.1, "0.2"),
        (1.0, 0.21, 0.1, "0.25"),  # rounded up
        (1.0, 0.2, 0.2, "0.25"),  # 0.2 × 1.15 = 0.23
        (1.0, 0.9, 0.1, "0.9"),
        (1.0, 0.91, 0.1, None),  # 0.95 is less than 0.1 below 1
        (0.3, 0.2, 0.1, "0.2"),
        (0.3, 0.21, 0.1, None),
        (0.5, 0.1, 0.0, "0.1"),
        (0.15, 0.01, 0.0, "0.05"),
        (0.125, 0.01, 0.0, None),
        (0.1, 0.0, 0.0, None),
        (1.0, 0.3, 0.85, None),
    ],
)
def test_the_share_is_rounded_up_and_at_least_a_tenth_smaller(
    share: float, busy_p95: float, peak: float, expected: str | None
) -> None:
    assert advised(work(share, busy_p95, peak)) == expected


@given(st.integers(1, 1000), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.85, 0.93, 0.99]))
def test_no_share_is_below_what_was_needed(
    milli: int, busy_p95: float, peak: float, usable: float
) -> None:
    share = milli / 1000
    cap = share * usable * DEVICE_MIB
    before = work(share, busy_p95, 0, cap_mib=cap, peak_mib=peak * cap)
    text = advised(before)
    if text is None:
        return
    smaller = float(text)
    assert smaller <= share - 0.1 + 1e-9
    assert smaller * usable * DEVICE_MIB >= (before.peak_mib or 0) - 1e-6
    assert smaller >= busy_p95 - 1e-9
    assert round(smaller * 1000) % 50 == 0
    assert 0.05 <= smaller <= 1
    after = replace(before, share=smaller, gpus=smaller, cap_mib=cap * smaller / share)
    assert advised(after) is None


def test_a_cap_is_less_than_its_part_of_the_device_s_memory() -> None:
    """0.42 × 1.15 is 0.483; of a device that leaves 80 % to shares, 0.5 is a cap of 0.4."""
    assert advised(work(1.0, 0.1, 0.42, cap_mib=0.8 * DEVICE_MIB)) == "0.55"
    assert advised(work(1.0, 0.1, 0.42)) == "0.5"


def test_memory_that_peaks_once_for_two_seconds_counts() -> None:
    looks = good(busy=0.3, memory_mib=0.1 * CAP)
    assert advised(work_of(looks)) == "0.4"  # looks every ten seconds do not see it
    assert advised(work_of(looks, peak_mib=0.7 * CAP)) == "0.8"  # the high-water mark does


def test_a_size_is_advised_after_half_an_hour() -> None:
    assert advised(work(1.0, 0.2, 0.1, running_seconds=1799)) is None
    assert advised(work(1.0, 0.2, 0.1, running_seconds=1800)) == "0.2"


def test_with_one_window_the_rules_before_it_are_waited_for() -> None:
    looks = good(30 + 90 + 60, busy=0.2, cpu=0.95, memory_mib=0.1 * CAP)
    assert advise(work_of(looks)) == []
    looks += good(30, busy=0.2, cpu=0.95, memory_mib=0.1 * CAP)
    assert [each.rule for each in advise(work_of(looks))] == ["DATA_BOUND", "OVERSIZED"]


def test_where_memory_says_nothing_use_alone_counts_and_that_is_said() -> None:
    found = advise(work(1.0, 0.3, 0.93, takes_all=True))[0]
    assert found.command.endswith("-g 0.3")
    assert found.message.endswith(
        "; its allocator takes all memory that it may have, so try whether it runs with less"
    )
    assert "held at most" not in found.message


@pytest.mark.parametrize("field", ["busy_p95", "peak_mib", "device_mib", "ever_used"])
def test_what_is_unknown_silences_it(field: str) -> None:
    assert advised(replace(work(1.0, 0.2, 0.1), **{field: None})) is None  # type: ignore[arg-type]


def test_a_share_is_not_made_smaller_where_it_is_too_small() -> None:
    windows = oversized().windows
    crowded = [_with(each, device_busy_median=1.0, neighbours_above=0.3) for each in windows]
    crowded = [_with(each, busy_median=0.3) for each in crowded]
    assert advised(replace(oversized(), windows=crowded)) is None
    refused = [_with(each, refused=2) for each in windows]
    assert advised(replace(oversized(), windows=refused)) is None


def _with(window: Window, **fields: float) -> Window:
    return replace_fields(window, **fields)


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ((0,) * 10, None),
        ((10, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0.1),
        ((95, 5, 0, 0, 0, 0, 0, 0, 0, 0), 0.1),
        ((94, 6, 0, 0, 0, 0, 0, 0, 0, 0), 0.2),
        ((0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 1.0),
    ],
)
def test_the_95th_percentile_is_the_upper_end_of_its_step(
    buckets: tuple[int, ...], expected: float | None
) -> None:
    assert p95_of(buckets) == expected


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_right_share_grows_with_what_is_needed(busy_p95: float, peak: float) -> None:
    least = right_share_milli(work(1.0, busy_p95, peak), DEFAULTS) or 0
    assert 50 <= least <= 1000
    assert (right_share_milli(work(1.0, min(busy_p95 + 0.1, 1), peak), DEFAULTS) or 0) >= least
    assert (right_share_milli(work(1.0, busy_p95, peak + 0.1), DEFAULTS) or 0) >= least
