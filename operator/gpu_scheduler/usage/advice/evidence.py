"""How windows become a verdict, where each figure may be unknown.

A condition is True, False or None, which is unknown: no evidence for and none against. A rule holds
as the last two equal results of neighbouring windows say, so that one window alone changes nothing,
and what is not known for two is not said.
"""

from collections.abc import Callable

from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window

Condition = bool | None


def below(value: float | None, bound: float) -> Condition:
    """Whether it is less."""
    return None if value is None else value < bound


def reaches(value: float | None, bound: float) -> Condition:
    """Whether it is as much, or more."""
    return None if value is None else value >= bound


def above(value: float | None, bound: float) -> Condition:
    """Whether it is more."""
    return None if value is None else value > bound


def every(*conditions: Condition) -> Condition:
    """False where one is, and else None where one is."""
    return False if False in conditions else None if None in conditions else True


def some(*conditions: Condition) -> Condition:
    """True where one is, and else None where one is."""
    return True if True in conditions else None if None in conditions else False


def opposite(condition: Condition) -> Condition:
    """Of what is not known nothing."""
    return None if condition is None else not condition


def use(value: float | None, work: Work) -> float | None:
    """Of the share instead of the device: above 1 where it uses more than its part."""
    return None if value is None or work.share <= 0 else value / work.share


def counts(window: Window, thresholds: Thresholds) -> bool:
    """Whether its use was known long enough."""
    return window.looks >= thresholds.least_looks


def computes(window: Window, thresholds: Thresholds, least: float | None = None) -> bool:
    """Whether the program computed long enough for a rule that speaks of speed.

    ``least``: share of looks, where it is another one than that of all rules.
    """
    least = thresholds.least_computing if least is None else least
    return counts(window, thresholds) and (window.computing or 0.0) >= least


def held(work: Work, condition: Callable[[Window], Condition]) -> Window | None:
    """The last window that shows it, where it holds."""
    results = [condition(each) for each in work.windows]
    for later in range(len(results) - 1, 0, -1):
        if results[later] is results[later - 1]:
            return work.windows[later] if results[later] else None
    return None


def held_computing(
    work: Work,
    thresholds: Thresholds,
    condition: Callable[[Window], Condition],
    least: float | None = None,
) -> Window | None:
    """The same of windows in which the program computes; others are no evidence."""
    return held(work, lambda each: condition(each) if computes(each, thresholds, least) else None)


def loads(work: Work, thresholds: Thresholds) -> bool:
    """Whether it may still compile or load: it computed nothing yet, while CPU or disks worked."""
    if work.running_seconds >= thresholds.loading_seconds or work.ever_used:
        return False
    if not work.windows:
        return _works(work.cpu_now, work.io_now, work, thresholds)
    last = work.windows[-1]
    return not last.busy_max and _works(last.cpu_median, last.io_stalled, work, thresholds)


def _works(cpu: float | None, io: float | None, work: Work, thresholds: Thresholds) -> bool:
    if io is not None and io >= thresholds.io_waits:
        return True
    if cpu is None or work.cpu_cores is None:
        return cpu is not None and cpu >= thresholds.loading_cpu
    return cpu * work.cpu_cores >= thresholds.loading_cores
