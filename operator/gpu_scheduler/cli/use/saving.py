"""What advice would save. Pure."""

import re
import shlex

from gpu_scheduler.cli.use.amounts import between
from gpu_scheduler.cli.use.workload import AdviceFigures, UsedWorkload

GIVES_ALL_BACK = ("GPU_IDLE", "GPU_NEVER_USED")


def saved_milli(workload: UsedWorkload, advice: AdviceFigures) -> int | None:
    """Milli-GPU that it would hold less; None: that is not what the advice is about."""
    if advice.rule in GIVES_ALL_BACK:
        return workload.milli or None
    share = share_of(advice.command)
    if share is None or not workload.pods:
        return None
    saved = workload.milli - share * workload.pods
    return saved if saved > 0 else None


def share_of(command: str) -> int | None:
    """Milli-GPU that a command asks for with ``-g`` or ``--gpu``; None: it does not."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    flags = words[: words.index("--")] if "--" in words else words
    for number, flag in enumerate(flags):
        name, _, joined = flag.partition("=")
        value = flags[number + 1] if number + 1 < len(flags) else ""
        if name in ("-g", "--gpu") and re.fullmatch(r"\d+(\.\d+)?", joined or value):
            return round(1000 * float(joined or value))
    return None


def saving(workload: UsedWorkload, advice: AdviceFigures) -> str:
    """The same as a sentence; empty: not known."""
    milli = saved_milli(workload, advice)
    if milli is None:
        return ""
    said = f"{milli / 1000:.2f} of {workload.milli / 1000:.2f} GPUs"
    hours = _saved_hours(workload, advice, milli)
    until = "" if hours is None else f"{hours:.2f} GPU-hours"
    if workload.runs:
        return f"saves {said}" + (f"; {until} would be saved by now" if until else "")
    return f"would have saved {said}" + (f", {until}" if until else "")


def _saved_hours(workload: UsedWorkload, advice: AdviceFigures, milli: int) -> float | None:
    """GPU-hours that it would have held less until now; of an idle one since it is idle."""
    if advice.rule in GIVES_ALL_BACK and workload.idle_since is not None:
        seconds = between(workload.idle_since, workload.observed_at)
        return None if seconds is None else milli / 1000 * seconds / 3600
    held = workload.held_gpu_hours
    return None if held is None else held * milli / workload.milli
