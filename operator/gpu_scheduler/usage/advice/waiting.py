"""A GPU that waits for its program: for data, for disks, or for code that runs beside it.

What a program does with its CPU cannot be seen from outside. Where the evidence does not decide
between too few loader workers and code that computes on one thread, the text names both.
"""

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import (
    Condition,
    above,
    below,
    every,
    held_computing,
    opposite,
    reaches,
    some,
    use,
)
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window


def data_bound(work: Work, thresholds: Thresholds) -> Finding | None:
    """The GPU waits, while all its CPU works, or for disks that more workers would not help."""
    shown = held_computing(
        work,
        thresholds,
        lambda window: some(
            _lacks_cpu(window, work, thresholds), _lacks_disks(window, work, thresholds)
        ),
    )
    if shown is None:
        return None
    if not _lacks_cpu(shown, work, thresholds):
        return Finding(
            RuleName.DATA_BOUND,
            f"it uses {_part(shown.busy_median, work)} and waits for disks "
            f"{phrases.percent(shown.io_stalled)} of the time, with "
            f"{phrases.percent(shown.ram_max)} of its memory beside the GPU in use, so more "
            "workers have no room: use faster storage, a cache, or fewer and larger files",
        )
    return Finding(
        RuleName.DATA_BOUND,
        f"{_seen(shown, work)} at {phrases.percent(shown.cpu_median)}: loading or preprocessing "
        "keeps the GPU waiting; give it more CPU, or prepare data on the GPU (DALI), with pinned "
        "memory, from a cache, or once beforehand",
    )


def add_workers(work: Work, thresholds: Thresholds) -> Finding | None:
    """CPU and RAM are spare, and it waits for disks or uses a whole number of cores."""
    shown = held_computing(
        work, thresholds, lambda window: _lacks_workers(window, work, thresholds)
    )
    if shown is None:
        return None
    if reaches(shown.io_stalled, thresholds.io_waits):
        return Finding(
            RuleName.ADD_WORKERS,
            f"{_seen(shown, work)} at {phrases.percent(shown.cpu_median)} and it waits for disks "
            f"{phrases.percent(shown.io_stalled)} of the time: use more loader workers, or faster "
            "storage",
        )
    return Finding(
        RuleName.ADD_WORKERS,
        f"{_seen(shown, work)} at {_cores(shown, work):.1f} of {work.cpu_cores:g} cores: use more "
        "loader workers if it is loading that works there; if it is other code, parallelise that",
    )


def code_bound(work: Work, thresholds: Thresholds) -> Finding | None:
    """Neither CPU nor disks are short, and the GPU waits."""
    shown = held_computing(
        work, thresholds, lambda window: _waits_for_code(window, work, thresholds)
    )
    if shown is None:
        return None
    return Finding(
        RuleName.CODE_BOUND,
        f"{_seen(shown, work)} at {phrases.percent(shown.cpu_median)} and it hardly waits for "
        "disks: what runs between its kernels runs on few threads; parallelise that code, or use "
        "more loader workers if it is loading",
    )


def stop_and_go(work: Work, thresholds: Thresholds) -> Finding | None:
    """It stands still again and again, and computes fully in between."""

    def condition(window: Window) -> Condition:
        return every(
            some(
                reaches(window.low, thresholds.stalled), reaches(_lost(window), thresholds.stalled)
            ),
            above(use(window.busy_p95, work), thresholds.stall_peak),
            window.swings * thresholds.stall_seconds > window.looks * 10,
        )

    shown = held_computing(work, thresholds, condition, thresholds.stop_computing)
    if shown is None:
        return None
    return Finding(
        RuleName.STOP_AND_GO,
        f"it stopped {shown.swings} times in 15 minutes, which takes "
        f"{phrases.percent(_lost(shown))} of its time, with {_part(shown.busy_p95, work)} in use "
        "in between: its input pipeline stalls; prefetch more, or make pauses such as evaluation "
        "shorter",
    )


def _lost(window: Window) -> float | None:
    """Share of time that it would save if it always computed as it does between its stalls.

    A look of ten seconds mixes a stall that is shorter with work, and is not low: it is less high.
    """
    if window.busy_mean is None or not window.busy_p95:
        return None
    return 1.0 - min(window.busy_mean / window.busy_p95, 1.0)


def _waits(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    return below(use(window.busy_median, work), thresholds.low_use)


def _waits_as_shown(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    return below(use(window.busy_median, work), thresholds.shown_use)


def _lacks_cpu(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    """Full CPU shows what is short where more than the program's own thread works.

    That one spins while kernels run, and fills a CPU of its own whatever the GPU waits for.
    """
    several = above(
        None if work.cpu_cores is None else _cores(window, work), 1.0 + thresholds.core_above
    )
    waits = _waits_as_shown if several else _waits
    return every(waits(window, work, thresholds), above(window.cpu_median, thresholds.busy_cpu))


def _waits_for_disks(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    """And CPU is not what is short."""
    return every(
        _waits_as_shown(window, work, thresholds),
        opposite(above(window.cpu_median, thresholds.busy_cpu)),
        reaches(window.io_stalled, thresholds.io_waits),
    )


def _lacks_disks(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    return every(
        _waits_for_disks(window, work, thresholds), reaches(window.ram_max, thresholds.spare_ram)
    )


def _lacks_workers(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    workers_work = every(
        _waits(window, work, thresholds),
        opposite(above(window.cpu_median, thresholds.busy_cpu)),
        _whole_cores(window, work, thresholds),
    )
    return every(
        below(window.ram_max, thresholds.spare_ram),
        some(_waits_for_disks(window, work, thresholds), workers_work),
    )


def _whole_cores(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    """One of eight cores, or another whole number of them below the limit.

    So many workers that never wait use so many cores, and the program beside them part of one.
    """
    if window.cpu_median is None or work.cpu_cores is None:
        return None
    cores = _cores(window, work)
    whole = int(cores + thresholds.core_below)
    return 1 <= whole < work.cpu_cores and cores - whole <= thresholds.core_above


def _waits_for_code(window: Window, work: Work, thresholds: Thresholds) -> Condition:
    # Without a limit of CPU in cores, workers that are too few look the same.
    workers = _lacks_workers(window, work, thresholds) if work.cpu_cores else False
    return every(
        _waits(window, work, thresholds),
        below(window.cpu_median, thresholds.quiet_cpu),
        below(window.io_stalled, thresholds.io_none),
        opposite(workers),
    )


def _cores(window: Window, work: Work) -> float:
    return (window.cpu_median or 0.0) * (work.cpu_cores or 0.0)


def _part(busy: float | None, work: Work) -> str:
    part = "its GPU" if work.share >= 1 else "its share"
    return f"{phrases.percent(use(busy, work))} of {part}"


def _seen(window: Window, work: Work) -> str:
    return f"it uses {_part(window.busy_median, work)} while its CPU is"
