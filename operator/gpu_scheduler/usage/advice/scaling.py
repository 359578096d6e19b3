"""Several workers that use less of each GPU: one is behind, or fewer of them used more."""

from collections.abc import Callable
from statistics import median

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import Condition, below, computes
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import EarlierRun, Work
from gpu_scheduler.usage.window import COMPUTES


def scaling_inefficient(work: Work, thresholds: Thresholds) -> Finding | None:
    """One pod uses its GPU far less than half of them do, or all do than in a smaller run."""
    behind = _held(work, lambda at: _behind(work, at, thresholds))
    if behind is not None:
        return _said(work, behind)
    earlier = work.earlier
    if earlier is None or earlier.workers >= work.workers:
        return None
    less = _held(work, lambda at: _less(work, earlier, at, thresholds))
    return None if less is None else _less_said(work, earlier, less)


def _held(work: Work, condition: Callable[[int], Condition]) -> int | None:
    """Number of the last window that shows it, where it holds; see ``evidence.held``."""
    results = [condition(at) for at in range(len(work.windows))]
    for later in range(len(results) - 1, 0, -1):
        if results[later] is results[later - 1]:
            return later if results[later] else None
    return None


def _less(work: Work, earlier: EarlierRun, at: int, thresholds: Thresholds) -> Condition:
    if not computes(work.windows[at], thresholds):
        return None
    return below(_mean(work, at), thresholds.slow_member * earlier.mean)


def _mean(work: Work, at: int) -> float | None:
    """Of the window of that number; means end where the windows end."""
    back = at - len(work.windows)
    return work.means[back] if len(work.means) >= -back else None


def _less_said(work: Work, earlier: EarlierRun, at: int) -> Finding:
    before = f"{earlier.workers} worker{'' if earlier.workers == 1 else 's'}"
    return Finding(
        RuleName.SCALING_INEFFICIENT,
        f"its {work.workers} workers use {phrases.percent(_mean(work, at))} of each GPU, while "
        f"{earlier.name} with {before} used {phrases.percent(earlier.mean)}: more of them wait "
        "for each other or for data; use fewer workers, larger batches, or a faster network",
    )


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
