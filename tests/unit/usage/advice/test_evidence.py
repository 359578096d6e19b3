"""What counts as evidence, and what silences a rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.usage.advice.seen import work_of
from tests.unit.usage.advice.traces import CAP, good, in_periods

from gpu_scheduler.usage.advice.evidence import Condition, every, held, opposite, some
from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.memory import takes_all
from gpu_scheduler.usage.advice.rules import advise
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import MOST_WINDOWS, Look, Window

CONDITIONS = st.sampled_from([True, False, None])


def said(work: Work) -> list[RuleName]:
    return [each.rule for each in advise(work)]


def unlike(condition: Condition) -> list[bool]:
    """What it may turn out to be."""
    return [True, False] if condition is None else [condition]


@given(CONDITIONS, CONDITIONS)
def test_what_is_unknown_may_be_either(one: Condition, other: Condition) -> None:
    both = {a and b for a in unlike(one) for b in unlike(other)}
    either = {a or b for a in unlike(one) for b in unlike(other)}
    assert every(one, other) == (both.pop() if len(both) == 1 else None)
    assert some(one, other) == (either.pop() if len(either) == 1 else None)
    assert opposite(opposite(one)) == one


@pytest.mark.parametrize(
    ("results", "at"),
    [
        ((), None),
        ((True,), None),
        ((True, True), 1),
        ((True, True, None), 1),
        ((True, True, None, None), None),
        ((True, None, True), None),
        ((True, True, False), 1),
        ((True, True, False, False), None),
        ((False, True, True, True), 3),
    ],
)
def test_the_last_two_equal_neighbours_decide(results: tuple[Condition, ...], at: int) -> None:
    windows = [Window(swings=number) for number in range(len(results))]
    found = held(
        Work(namespace="team-a", name="train", windows=windows), lambda each: results[each.swings]
    )
    assert (None if found is None else found.swings) == at


LOADING = {"busy": 0.0, "memory_mib": 0.0, "device_busy": 0.0}


@pytest.mark.parametrize(
    ("minutes", "cpu", "io", "expected"),
    [
        (9, 0.0, 0.0, []),
        (11, 0.0, 0.0, ["GPU_NEVER_USED"]),
        (11, 0.2, 0.0, []),
        (11, 0.0, 0.5, []),
        (25, 0.2, 0.0, []),
        (25, 0.0, 0.5, []),
        (25, 0.01, 0.01, ["GPU_NEVER_USED", "GPU_IDLE"]),
        (30, 0.2, 0.5, ["GPU_NEVER_USED", "GPU_IDLE"]),
    ],
)
def test_a_program_may_load_for_half_an_hour(
    minutes: int, cpu: float, io: float, expected: list[RuleName]
) -> None:
    looks = good(minutes * 6, cpu=cpu, io_stalled=io, **LOADING)
    assert said(work_of(looks, idle_timeout=1200)) == expected


def test_without_a_limit_in_cores_cpu_of_the_limit_tells_whether_it_loads() -> None:
    looks = good(70, cpu=0.06, **LOADING)
    assert said(work_of(looks, cpu_cores=None)) == []
    assert said(work_of(looks, cpu_cores=4.0)) == ["GPU_NEVER_USED"]


def test_who_holds_memory_has_found_its_gpu() -> None:
    looks = good(80, busy=0.0, cpu=0.0)
    assert said(work_of(looks)) == []
    assert said(work_of(looks, idle_timeout=600)) == ["GPU_IDLE"]


def test_without_a_timeout_nothing_is_idle() -> None:
    looks = [*good(100), *good(2000, busy=0.0)]
    assert RuleName.GPU_IDLE in said(work_of(looks))
    assert RuleName.GPU_IDLE not in said(work_of(looks, idle_timeout=None))


def test_a_first_window_in_which_it_still_loads_is_no_evidence() -> None:
    looks = [*good(120, cpu=0.9, **LOADING), *good(90, busy=0.2, cpu=0.95)]
    assert RuleName.DATA_BOUND not in said(work_of(looks))


def test_single_refusals_are_not_a_tight_cap() -> None:
    looks = [*good(60), *good(1, refused=3), *good(329)]
    assert said(work_of(looks)) == []


def test_a_full_cap_is_tight_only_for_who_was_refused() -> None:
    looks = good(memory_mib=0.98 * CAP)
    assert said(work_of(looks)) == []
    assert said(work_of(looks, refused=1)) == ["MEMORY_TIGHT"]
    assert said(work_of(looks, refused=1, takes_all=True)) == []


@pytest.mark.parametrize(
    ("first", "low", "high", "expected"),
    [(950, 950, 955, True), (850, 950, 950, False), (950, 700, 950, False)],
)
def test_an_allocator_takes_all_at_once_and_keeps_it(
    first: float, low: float, high: float, expected: bool
) -> None:
    windows = [Window(memory_min_mib=low, memory_max_mib=high), Window()]
    assert takes_all(first, 1000, windows) is expected


def test_stalls_further_apart_than_five_minutes_are_not_the_input_s() -> None:
    rare = in_periods([*good(30), *good(12, busy=0.0)])  # seven minutes
    often = in_periods([*good(15), *good(6, busy=0.0)])
    assert said(work_of(rare)) == []
    assert said(work_of(often)) == ["STOP_AND_GO"]


def test_cpu_that_is_not_known_silences_what_would_speak_of_it() -> None:
    looks = good(busy=0.2, cpu=None, memory_mib=0.9 * CAP)
    assert said(work_of(looks)) == []
    no_pressure = good(busy=0.2, cpu=0.06, io_stalled=None, memory_mib=0.9 * CAP)
    assert said(work_of(no_pressure)) == []


LOOKS = st.builds(
    Look,
    busy=st.none() | st.floats(0, 1),
    memory_mib=st.none() | st.floats(0, 1e5),
    device_busy=st.none() | st.floats(0, 1),
    neighbours_above=st.none() | st.floats(0, 1),
    tensor=st.none() | st.floats(0, 1),
    throttled=st.none() | st.booleans(),
    refused=st.integers(0, 2),
    cpu=st.none() | st.floats(0, 1),
    ram=st.none() | st.floats(0, 1),
    io_stalled=st.none() | st.floats(0, 1),
)


@settings(max_examples=40)
@given(st.lists(LOOKS, min_size=1, max_size=8), st.integers(1, 1000), st.booleans())
def test_whatever_was_seen_each_rule_speaks_once_and_in_order(
    looks: list[Look], milli: int, all_memory: bool
) -> None:
    work = work_of(in_periods(looks), milli / 1000, takes_all=all_memory)
    assert len(work.windows) == MOST_WINDOWS
    found = advise(work)
    order = [list(RuleName).index(each.rule) for each in found]
    assert order == sorted(set(order))
    assert all(each.message and each.saved >= 0 for each in found)
