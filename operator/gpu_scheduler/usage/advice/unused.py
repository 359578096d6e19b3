"""GPUs that are held and not used; judged by what is known since the work began, at any moment."""

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import loads
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.giving_back import SCALED, give_back

_SCALED = {kind.lower(): kind for kind in SCALED}


def never_used(work: Work, thresholds: Thresholds) -> Finding | None:
    """No process of it was ever on a GPU. One that holds memory there has at least found it."""
    if work.running_seconds < thresholds.never_seconds or loads(work, thresholds):
        return None
    if work.ever_used is not False or work.peak_mib is None or work.peak_mib > 0:
        return None
    return Finding(
        RuleName.GPU_NEVER_USED,
        f"it has run for {phrases.lasting(work.running_seconds)} and no process of it was ever on "
        "the GPU: its code or image does not use CUDA; make it do so, or ask for no GPU",
        saved=_a_day(work),
    )


def idle(work: Work, thresholds: Thresholds) -> Finding | None:
    """No kernel of it for the idle timeout."""
    if work.idle_seconds is None or work.idle_timeout is None or loads(work, thresholds):
        return None
    if work.idle_seconds < max(work.idle_timeout, 1):
        return None
    saved = _a_day(work)
    return Finding(
        RuleName.GPU_IDLE,
        f"it holds {phrases.gpus(work.gpus_held)} and has computed nothing there for "
        f"{phrases.lasting(work.idle_seconds)}: release it, which gives back "
        f"{phrases.saving(saved, work.price)}",
        _release(work),
        saved,
    )


def _a_day(work: Work) -> float:
    return work.gpus_held * 24


def _release(work: Work) -> str:
    if work.is_job:
        return give_back("GPUJob", work.namespace, work.name)
    kind, _, name = work.name.partition("/")
    return give_back(_SCALED[kind], work.namespace, name) if kind in _SCALED else ""
