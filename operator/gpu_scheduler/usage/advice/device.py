"""What the device does to the work: heat, and neighbours."""

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import (
    Condition,
    below,
    every,
    held_computing,
    reaches,
    use,
)
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window


def throttled(work: Work, thresholds: Thresholds) -> Finding | None:
    """Heat or a power brake slows the device while the program computes."""
    shown = held_computing(
        work, thresholds, lambda window: reaches(window.throttled, thresholds.throttled)
    )
    if shown is None:
        return None
    return Finding(
        RuleName.THROTTLED,
        f"heat or a power brake slowed its GPU down in {phrases.percent(shown.throttled)} of the "
        "looks of 15 minutes: it is the hardware; tell who runs the node",
    )


def contended(work: Work, thresholds: Thresholds) -> Finding | None:
    """The device is full, and neighbours take more of it than their shares."""

    def condition(window: Window) -> Condition:
        return every(
            reaches(window.device_busy_median, thresholds.full_device),
            below(use(window.busy_median, work), thresholds.crowded_out),
            reaches(window.neighbours_above, thresholds.neighbours_above),
        )

    shown = held_computing(work, thresholds, condition)
    if shown is None:
        return None
    return Finding(
        RuleName.CONTENDED,
        f"its GPU is busy {phrases.percent(shown.device_busy_median)} of the time and "
        f"neighbours use {phrases.percent(shown.neighbours_above)} of it beyond their shares, "
        f"so it gets {phrases.percent(use(shown.busy_median, work))} of its share: computing "
        "time is not divided; take a whole GPU, or other neighbours",
    )
