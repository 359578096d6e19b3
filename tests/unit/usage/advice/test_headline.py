"""A headline changes at most once an hour."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.usage.advice.seen import work_of
from tests.unit.usage.advice.traces import good

from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.headline import DWELL_SECONDS, SILENCE, Headline, settle
from gpu_scheduler.usage.advice.rules import advise

IDLE = [Finding(RuleName.GPU_IDLE, "it idles")]
HOT = [Finding(RuleName.THROTTLED, "it is hot"), Finding(RuleName.SMALL_BATCH, "and small")]


def test_what_never_had_one_has_none() -> None:
    assert settle(None, [], 100.0) is None


def test_the_first_one_stands_at_once() -> None:
    assert settle(None, HOT, 100.0) == ("THROTTLED", 100.0)


def test_it_keeps_its_time_while_it_holds() -> None:
    assert settle(("THROTTLED", 100.0), HOT, 99_999.0) == ("THROTTLED", 100.0)


def test_another_one_waits_for_an_hour() -> None:
    assert settle(("THROTTLED", 100.0), IDLE, 3699.0) == ("THROTTLED", 100.0)
    assert settle(("THROTTLED", 100.0), IDLE, 3700.0) == ("GPU_IDLE", 3700.0)


def test_silence_waits_for_an_hour_and_lasts_for_one() -> None:
    assert settle(("THROTTLED", 100.0), [], 3699.0) == ("THROTTLED", 100.0)
    silent = settle(("THROTTLED", 100.0), [], 3700.0)
    assert silent == (SILENCE, 3700.0)
    assert settle(silent, HOT, 7299.0) == silent
    assert settle(silent, HOT, 7300.0) == ("THROTTLED", 7300.0)


def test_work_that_ends_is_silent_at_once() -> None:
    assert settle(("THROTTLED", 100.0), HOT, 101.0, ended=True) is None


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    assert settle(("THROTTLED", 1e9), IDLE, 100.0) == ("GPU_IDLE", 100.0)


def changes(moments: list[tuple[float, list[Finding]]]) -> list[float]:
    """When another headline was shown."""
    shown: Headline | None = None
    found = []
    for now, findings in moments:
        after = settle(shown, findings, now)
        if (after or (SILENCE, 0))[0] != (shown or (SILENCE, 0))[0]:
            found.append(now)
        shown = after
    return found


@given(st.lists(st.tuples(st.integers(1, 2000), st.sampled_from([[], IDLE, HOT])), max_size=60))
def test_no_two_changes_are_in_one_hour(steps: list[tuple[int, list[Finding]]]) -> None:
    now, moments = 0.0, []
    for passed, findings in steps:
        now += passed
        moments.append((now, findings))
    times = changes(moments)
    assert all(b - a >= DWELL_SECONDS for a, b in zip(times, times[1:], strict=False))


def test_work_that_goes_to_and_fro_changes_its_headline_once_an_hour() -> None:
    """Half an hour of hunger for data, half an hour of heat, all day."""
    half = 180
    hungry = good(half, busy=0.2, cpu=0.95)
    looks = [*good(30), *[*hungry, *good(half, throttled=True)] * 12]
    moments = [(at * 10.0, advise(work_of(looks[:at]))) for at in range(30, len(looks), 90)]
    rules = {found[0].rule for _, found in moments if found}
    assert {RuleName.DATA_BOUND, RuleName.THROTTLED} <= rules
    before = [found[0].rule if found else None for _, found in moments]
    to_and_fro = sum(a != b for a, b in zip(before, before[1:], strict=False))
    times = changes(moments)
    assert len(times) < to_and_fro
    assert all(b - a >= DWELL_SECONDS for a, b in zip(times, times[1:], strict=False))
