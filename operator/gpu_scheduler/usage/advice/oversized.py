"""A share that is larger than what the work has needed since it began.

The share that is advised is never below the most memory that it held, nor below its use of the
device for 95 % of the time; where its allocator takes all memory, only the use is known.
"""

from collections.abc import Sequence
from math import ceil

from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.answer import percentile_of

_EXACT = 1e-9  # a product of ratios may miss a multiple of the step by this


def p95_of(buckets: Sequence[int]) -> float | None:
    """Of the histogram of use, seconds by step."""
    return percentile_of(buckets, 95)


def oversized(work: Work, thresholds: Thresholds) -> Finding | None:
    """A smaller share would have done."""
    if work.running_seconds < thresholds.size_seconds or not work.ever_used:
        return None
    if len(work.windows) == 1:
        return None  # rules that matter more need two, and would find this one said already
    advised = right_share_milli(work, thresholds)
    if advised is None or phrases.milli(work.share) - advised < thresholds.size_gain_milli:
        return None
    less = phrases.milli(work.share) - advised
    saved = less * work.devices * work.pods * 24 / 1000
    share = gpu_from_milli(advised)
    each = " on each GPU" if work.devices > 1 else ""
    return Finding(
        RuleName.OVERSIZED,
        f"95 % of the time it used at most {phrases.percent(work.busy_p95)} of a GPU{_held(work)}: "
        f"ask for {share} instead of {gpu_from_milli(phrases.milli(work.share))}{each}, which "
        f"gives back {phrases.saving(saved, work.price)}{_unknown(work)}",
        _command(work, share),
        saved,
    )


def right_share_milli(work: Work, thresholds: Thresholds) -> int | None:
    """The least share that would have done, a multiple of the step; None: nobody knows."""
    if work.busy_p95 is None:
        return None
    step = thresholds.size_step_milli
    milli = max(_up(work.busy_p95 * 1000, step), step)
    if work.takes_all:
        return min(milli, 1000)
    if work.peak_mib is None or not work.device_mib:
        return None
    milli = max(milli, _up(work.peak_mib * thresholds.size_margin / work.device_mib * 1000, step))
    while work.cap_mib and _cap_mib(milli, work.cap_mib, work.share) < work.peak_mib:
        milli += step  # a cap is less than that part of the device's memory
    return min(milli, 1000)


def _up(milli: float, step: int) -> int:
    return ceil(milli / step - _EXACT) * step


def _cap_mib(milli: int, cap_mib: float, share: float) -> float:
    """Of another share, where this one has this cap."""
    return cap_mib * milli / (share * 1000)


def _held(work: Work) -> str:
    if work.takes_all or work.peak_mib is None or not work.device_mib:
        return ""
    return f" and held at most {phrases.mib(work.peak_mib)} of {phrases.mib(work.device_mib)}"


def _unknown(work: Work) -> str:
    if not work.takes_all:
        return ""
    return "; its allocator takes all memory that it may have, so try whether it runs with less"


def _command(work: Work, share: str) -> str:
    if not work.is_job:
        return ""
    devices = f" --gpu-devices {work.devices}" if work.devices > 1 else ""
    new = f"{work.name}-2"
    return f"kubectl gpu submit {new} --from {work.name} -n {work.namespace} -g {share}{devices}"
