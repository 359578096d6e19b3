"""For each rule work of which exactly that should be the headline, and the same work changed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.unit.usage.advice.seen import DEVICE_MIB, USABLE, member_of, work_of

from gpu_scheduler.usage.advice.finding import RuleName
from gpu_scheduler.usage.advice.work import Work, WorkType
from gpu_scheduler.usage.window import Look

WARM_UP, WINDOW = 30, 90  # looks
HOURS = WARM_UP + 4 * WINDOW
CAP = USABLE * DEVICE_MIB

GOOD = Look(
    busy=0.95,
    memory_mib=0.8 * CAP,
    device_busy=0.95,
    neighbours_above=0.0,
    throttled=False,
    cpu=0.5,
    ram=0.7,
    io_stalled=0.0,
)


def good(count: int = HOURS, **fields: Any) -> list[Look]:
    """Looks at work that does all it can, but for these fields."""
    return [replace(GOOD, **fields)] * count


def now_and_then(count: int, every: int, **fields: Any) -> list[Look]:
    """Looks at good work of which every so manieth has these fields."""
    return [replace(GOOD, **fields) if at % every == 0 else GOOD for at in range(count)]


def in_periods(period: Sequence[Look]) -> list[Look]:
    """The same again and again."""
    return (list(period) * HOURS)[:HOURS]


def never() -> Work:
    return work_of(good(busy=0.0, memory_mib=0.0, device_busy=0.0, cpu=0.0))


def idle() -> Work:
    return work_of([*good(), *good(200, busy=0.0)])


def throttled() -> Work:
    return work_of(now_and_then(HOURS, 3, throttled=True))


def memory_tight() -> Work:
    return work_of(now_and_then(HOURS, 20, refused=1, memory_mib=0.99 * CAP))


def contended() -> Work:
    looks = good(busy=0.4, device_busy=1.0, neighbours_above=0.3, memory_mib=0.6 * CAP)
    return work_of(looks, 0.7, type=WorkType.SERVICE, name="deployment/api")


def data_bound() -> Work:
    return work_of(good(busy=0.2, cpu=0.95))


def add_workers() -> Work:
    return work_of(good(busy=0.2, cpu=0.3, ram=0.3, io_stalled=0.4))


def code_bound() -> Work:
    return work_of(good(busy=0.2, cpu=0.1, ram=0.3))


def stop_and_go() -> Work:
    return work_of(in_periods([*good(7), *good(3, busy=0.0)]))


def scaling() -> Work:
    members = [member_of(f"train-{at}", good()) for at in range(4)]
    slow = member_of("train-4", good(busy=0.4))
    return work_of(good(), pods=5, members=[*members, slow])


def no_tensor_cores() -> Work:
    return work_of(good(tensor=0.0), capability=9.0, gpu_model="NVIDIA H100 80GB HBM3")


def oversized() -> Work:
    return work_of(good(busy=0.75, memory_mib=0.3 * CAP), price=2.5)


def small_batch() -> Work:
    return work_of(good(busy=0.12, memory_mib=0.08 * CAP), 0.2)


TRACES: dict[RuleName, Callable[[], Work]] = {
    RuleName.GPU_NEVER_USED: never,
    RuleName.GPU_IDLE: idle,
    RuleName.THROTTLED: throttled,
    RuleName.MEMORY_TIGHT: memory_tight,
    RuleName.CONTENDED: contended,
    RuleName.DATA_BOUND: data_bound,
    RuleName.ADD_WORKERS: add_workers,
    RuleName.CODE_BOUND: code_bound,
    RuleName.STOP_AND_GO: stop_and_go,
    RuleName.SCALING_INEFFICIENT: scaling,
    RuleName.NO_TENSOR_CORES: no_tensor_cores,
    RuleName.OVERSIZED: oversized,
    RuleName.SMALL_BATCH: small_batch,
}

CHANGED: dict[RuleName, Callable[[], Work]] = {
    RuleName.GPU_NEVER_USED: lambda: work_of(good()),
    RuleName.GPU_IDLE: lambda: work_of(good()),
    RuleName.THROTTLED: lambda: work_of(good()),
    RuleName.MEMORY_TIGHT: lambda: work_of(good(memory_mib=0.7 * CAP)),
    RuleName.CONTENDED: lambda: work_of(good(memory_mib=0.6 * CAP)),
    RuleName.DATA_BOUND: lambda: work_of(good(cpu=0.7)),
    RuleName.ADD_WORKERS: lambda: work_of(good(cpu=0.6, ram=0.5)),
    RuleName.CODE_BOUND: lambda: work_of(good(cpu=0.3)),
    RuleName.STOP_AND_GO: lambda: work_of(in_periods([*good(19), *good(1, busy=0.0)])),
    RuleName.SCALING_INEFFICIENT: lambda: work_of(
        good(), members=[member_of(f"train-{at}", good()) for at in range(4)]
    ),
    RuleName.NO_TENSOR_CORES: lambda: work_of(good(tensor=0.3), capability=9.0),
    RuleName.OVERSIZED: lambda: work_of(good(busy=0.75, memory_mib=0.3 * CAP), 0.8),
    RuleName.SMALL_BATCH: lambda: work_of(good(busy=0.19, memory_mib=0.18 * CAP), 0.2),
}
"""The work of ``TRACES`` after it has followed its headline."""
