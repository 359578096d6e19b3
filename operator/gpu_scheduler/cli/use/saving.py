"""What advice would save, and the line that gives the GPUs of a workload back. Pure."""

import re
import shlex

from gpu_scheduler.cli.use.workload import AdviceFigures, UsedWorkload

GIVES_ALL_BACK = ("GPU_IDLE", "GPU_NEVER_USED")
_SCALED = ("Deployment", "StatefulSet", "ReplicaSet")
_SUSPENDED = ("Job", "CronJob")


def give_back(workload: UsedWorkload) -> str:
    """The command that gives its GPUs back and keeps it, where that can be."""
    kind, name, there = workload.kind, workload.name, f"-n {workload.namespace}"
    if kind == "GPUJob":
        return f"kubectl gpu suspend {there} {name}"
    word = f"{kind.lower()}/{name}"
    if kind in _SCALED:
        return f"kubectl scale {there} {word} --replicas=0"
    if kind in _SUSPENDED:
        patch = '{"spec":{"suspend":true}}'
        return f"kubectl patch {there} {word} --type=merge -p '{patch}'"
    return f"kubectl delete {there} {word}"


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
    for flag, value in zip(flags, [*flags[1:], ""], strict=True):
        name, _, joined = flag.partition("=")
        if name in ("-g", "--gpu") and re.fullmatch(r"\d+(\.\d+)?", joined or value):
            return round(1000 * float(joined or value))
    return None


def saving(workload: UsedWorkload, advice: AdviceFigures) -> str:
    """The same as a sentence; empty: not known."""
    milli = saved_milli(workload, advice)
    if milli is None:
        return ""
    said = f"{milli / 1000:.2f} of {workload.milli / 1000:.2f} GPUs"
    said = f"saves {said}" if workload.runs else f"would have saved {said}"
    if workload.held_gpu_hours is None:
        return said
    hours = workload.held_gpu_hours * milli / workload.milli
    return f"{said}, {hours:.2f} of the GPU-hours{' until now' if workload.runs else ''}"
