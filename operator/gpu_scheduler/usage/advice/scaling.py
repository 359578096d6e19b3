"""Several pods that do the same, of which one is behind: the others wait for it."""

from statistics import median

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import Condition, computes
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import COMPUTES


def scaling_inefficient(work: Work, thresholds: Thresholds) -> Finding | None:
    """One pod uses its GPU far less than half of them do."""
    results = [_behind(work, at, thresholds) for at in range(len(work.windows))]
    for later in range(len(results) - 1, 0, -1):
        if results[later] is results[later - 1]:
            return _said(work, later) if results[later] else None
    return None


def _behind(work: Work, at: int, thresholds: Thresholds) -> Condition:
    means = _means(work, at)
    if len(means) < 2 or not computes(work.windows[at], thresholds):
        return None
    middle = median(means.values())
    if middle <= COMPUTES * work.share:
        return None
    return min(means.values()) < thresholds.slow_member * middle


def _means(work: Work, at: int) -> dict[str, float]:
    """By pod, of the window of that number; the members' means end where the windows end."""
    back = at - len(work.windows)
    return {
        each.name: mean
        for each in work.members
        if len(each.means) >= -back and (mean := each.means[back]) is not None
    }


def _said(work: Work, at: int) -> Finding:
    means = _means(work, at)
    slowest = min(means, key=lambda name: means[name])
    return Finding(
        RuleName.SCALING_INEFFICIENT,
        f"{slowest} uses {phrases.percent(means[slowest])} of its GPU, while the median of "
        f"{len(means)} pods is {phrases.percent(median(means.values()))}: the others wait for the "
        "slowest; look at its node and its data, or use fewer workers",
    )
