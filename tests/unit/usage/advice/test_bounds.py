"""Each bound of the table in docs/advice.md, from both sides."""

from dataclasses import fields, replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields
from tests.unit.usage.advice.traces import TRACES

from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.rules import advise
from gpu_scheduler.usage.advice.work import EarlierRun, Work
from gpu_scheduler.usage.window import Window

ONE = 1e-6
BY_WINDOWS = {RuleName.MEMORY_TIGHT, RuleName.STOP_AND_GO}
"""They have fields of the same name in windows and of all its life: those of windows are meant."""
OF_WORK = {field.name for field in fields(Work)}

# A rule, a field, what it may be at most or at least, and what it may not.
BOUNDS: list[tuple[RuleName, str, float, float]] = [
    (RuleName.GPU_NEVER_USED, "running_seconds", 600, 599),
    (RuleName.GPU_NEVER_USED, "peak_mib", 0, 1),
    (RuleName.GPU_IDLE, "idle_seconds", 1800, 1799),
    (RuleName.THROTTLED, "throttled", 0.2, 0.2 - ONE),
    (RuleName.THROTTLED, "computing", 0.6, 0.6 - ONE),
    (RuleName.THROTTLED, "looks", 45, 44),
    (RuleName.MEMORY_TIGHT, "refused", 1, 0),
    (RuleName.CONTENDED, "device_busy_median", 0.95, 0.95 - ONE),
    (RuleName.CONTENDED, "busy_median", 0.56 - ONE, 0.56 + ONE),
    (RuleName.CONTENDED, "neighbours_above", 0.05, 0.05 - ONE),
    (RuleName.DATA_BOUND, "busy_median", 0.6 - ONE, 0.6),
    (RuleName.DATA_BOUND, "cpu_median", 0.8 + ONE, 0.8),
    (RuleName.ADD_WORKERS, "busy_median", 0.6 - ONE, 0.6),
    (RuleName.ADD_WORKERS, "cpu_median", 0.8, 0.8 + ONE),
    (RuleName.ADD_WORKERS, "ram_max", 0.5 - ONE, 0.5),
    (RuleName.ADD_WORKERS, "io_stalled", 0.1, 0.1 - ONE),
    (RuleName.CODE_BOUND, "busy_median", 0.4 - ONE, 0.4),
    (RuleName.CODE_BOUND, "cpu_median", 0.4 - ONE, 0.4),
    (RuleName.CODE_BOUND, "io_stalled", 0.05 - ONE, 0.05),
    (RuleName.STOP_AND_GO, "low", 0.2, 0.2 - ONE),
    (RuleName.STOP_AND_GO, "computing", 0.2, 0.2 - ONE),
    (RuleName.STOP_AND_GO, "busy_p95", 0.7 + ONE, 0.7),
    (RuleName.STOP_AND_GO, "swings", 4, 3),
    (RuleName.NO_TENSOR_CORES, "capability", 7.0, 6.1),
    (RuleName.NO_TENSOR_CORES, "busy_median", 0.6 + ONE, 0.6),
    (RuleName.NO_TENSOR_CORES, "tensor_median", 0.05 - ONE, 0.05),
    (RuleName.OVERSIZED, "busy_p95", 0.9, 0.91),
    (RuleName.OVERSIZED, "running_seconds", 1800, 1799),
    (RuleName.SMALL_BATCH, "busy_median", 0.08 + ONE, 0.08 - ONE),
    (RuleName.SMALL_BATCH, "busy_median", 0.14 - ONE, 0.14 + ONE),
    (RuleName.SMALL_BATCH, "peak_mib", 7782, 7783),
]


def held(rule: RuleName, **changes: Any) -> bool:
    work = TRACES[rule]()
    of_windows = {
        name: value for name, value in changes.items() if name not in OF_WORK or rule in BY_WINDOWS
    }
    of_work = {name: value for name, value in changes.items() if name not in of_windows}
    if rule == RuleName.MEMORY_TIGHT:
        of_work["refused"] = 0  # since it began, too
    windows = [replace_fields(each, **of_windows) for each in work.windows]
    work = replace(work, windows=windows, **of_work)
    return rule in [each.rule for each in advise(work)]


@pytest.mark.parametrize(("rule", "field", "inside", "outside"), BOUNDS)
def test_it_holds_up_to_its_bound(
    rule: RuleName, field: str, inside: float, outside: float
) -> None:
    other = {}
    if rule == RuleName.CODE_BOUND:
        other = {"ram_max": 0.7}
    elif (rule, field) == (RuleName.STOP_AND_GO, "low"):
        other = {"busy_mean": 0.9}  # what stalls take by the mean
    assert held(rule, **other, **{field: inside})
    assert not held(rule, **other, **{field: outside})


def test_fields_of_bounds_exist() -> None:
    known = OF_WORK | set(Window.__struct_fields__)
    assert {field for _, field, _, _ in BOUNDS} <= known


@pytest.mark.parametrize(
    ("cores", "rule"),
    [
        (0.8, "CODE_BOUND"),
        (0.9, "ADD_WORKERS"),
        (1.0, "ADD_WORKERS"),
        (1.29, "ADD_WORKERS"),
        (1.4, "CODE_BOUND"),
        (1.95, "ADD_WORKERS"),
    ],
)
def test_so_many_workers_as_cores_are_used_may_be_too_few(cores: float, rule: str) -> None:
    work = TRACES[RuleName.CODE_BOUND]()
    windows = [replace_fields(each, cpu_median=cores / 8 + ONE) for each in work.windows]
    assert advise(replace(work, windows=windows))[0].rule == rule


@pytest.mark.parametrize(("mean", "stalls"), [(0.8 - ONE, True), (0.8 + ONE, False)])
def test_stalls_shorter_than_a_look_are_seen_by_what_they_take(mean: float, stalls: bool) -> None:
    fields = {"low": 0.0, "busy_p95": 1.0, "busy_mean": mean}
    assert held(RuleName.STOP_AND_GO, **fields) is stalls


@pytest.mark.parametrize(("ram", "rule"), [(0.49, "ADD_WORKERS"), (0.5, "DATA_BOUND")])
def test_who_waits_for_disks_is_told_of_workers_where_they_have_room(ram: float, rule: str) -> None:
    work = TRACES[RuleName.ADD_WORKERS]()
    windows = [replace_fields(each, ram_max=ram) for each in work.windows]
    found = advise(replace(work, windows=windows))[0]
    assert found.rule == rule
    assert "disks" in found.message


@pytest.mark.parametrize(("busy", "cores", "speaks"), [
    (0.39, 1.0, True), (0.5, 1.0, False), (0.5, 2.0, True), (0.5, None, False), (0.6, 2.0, False),
])  # fmt: skip
def test_one_full_core_may_be_a_thread_that_spins(
    busy: float, cores: float | None, speaks: bool
) -> None:
    work = TRACES[RuleName.DATA_BOUND]()
    windows = [replace_fields(each, busy_median=busy) for each in work.windows]
    found = advise(replace(work, windows=windows, cpu_cores=cores))
    assert ("DATA_BOUND" in [each.rule for each in found]) is speaks


@pytest.mark.parametrize(("mean", "behind"), [(0.69, True), (0.71, False)])
def test_one_pod_is_behind_from_thirty_percent(mean: float, behind: bool) -> None:
    work = TRACES[RuleName.SCALING_INEFFICIENT]()
    members = [replace(each, means=(1.0,) * 4) for each in work.members]
    members[2] = replace(members[2], means=(mean,) * 4)
    found = advise(replace(work, members=members))
    assert ([each.rule for each in found] == ["SCALING_INEFFICIENT"]) is behind
    if behind:
        assert found[0].message.startswith("train-2 uses 69 %")


@pytest.mark.parametrize(
    ("means", "fewer", "speaks"),
    [
        ((0.55, 0.55), 1, True),
        ((0.57, 0.57), 1, False),
        ((0.57, 0.55), 1, False),
        ((0.55, None), 1, False),
        ((0.55, 0.55), 5, False),
        ((), 1, False),
    ],
)
def test_workers_are_too_many_from_thirty_percent(
    means: tuple[float | None, ...], fewer: int, speaks: bool
) -> None:
    work = TRACES[RuleName.SCALING_INEFFICIENT]()
    earlier = EarlierRun("train-1", fewer, 0.8)
    work = replace(work, members=(), workers=5, means=means, earlier=earlier)
    assert ("SCALING_INEFFICIENT" in [each.rule for each in advise(work)]) is speaks
