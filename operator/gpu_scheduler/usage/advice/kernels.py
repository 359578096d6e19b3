"""What the program's kernels leave unused: tensor cores, and the room for larger batches."""

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import (
    Condition,
    above,
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


def no_tensor_cores(work: Work, thresholds: Thresholds) -> Finding | None:
    """It computes much, and none of it on the tensor cores that the device has."""

    def condition(window: Window) -> Condition:
        return every(
            reaches(work.capability, thresholds.tensor_capability),
            above(use(window.busy_median, work), thresholds.tensor_use),
            below(window.tensor_median, thresholds.tensor_none),
        )

    shown = held_computing(work, thresholds, condition)
    if shown is None:
        return None
    return Finding(
        RuleName.NO_TENSOR_CORES,
        f"it uses {phrases.percent(use(shown.busy_median, work))} of its GPU, and the tensor cores "
        f"of the {work.gpu_model or 'GPU'} {phrases.percent(shown.tensor_median)} of the time: use "
        "mixed precision (BF16, FP16 or TF32), if what it computes allows that",
    )


def small_batch(work: Work, thresholds: Thresholds) -> Finding | None:
    """Half of its memory was never used, and its GPU is not full."""
    if work.takes_all or not work.cap_mib or work.peak_mib is None:
        return None
    peak = work.peak_mib / work.cap_mib
    if peak >= thresholds.small_memory:
        return None

    def condition(window: Window) -> Condition:
        used = use(window.busy_median, work)
        return every(
            reaches(used, thresholds.small_use_from),
            below(used, thresholds.small_use_below),
        )

    shown = held_computing(work, thresholds, condition)
    if shown is None:
        return None
    return Finding(
        RuleName.SMALL_BATCH,
        f"it uses {phrases.percent(use(shown.busy_median, work))} of its "
        f"{'GPU' if work.share >= 1 else 'share'} and has held at most {phrases.percent(peak)} of "
        f"its memory, {phrases.mib(work.peak_mib)} of {phrases.mib(work.cap_mib)}: try a larger "
        "batch, and scale the learning rate with it",
    )
