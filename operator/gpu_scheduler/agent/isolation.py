"""What enforces a container's cap right now: a pure function of what was seen.

The promise (libgpucap is mounted) is believed only until a process of the container is on a GPU:
from then on every one of these processes must have the library mapped, or the container is reported
as unprotected, with the first such process. So is one that is above its cap by memory which the
library, though mapped, did not count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpu_scheduler.agent.sampler import DeviceProcess
from gpu_scheduler.agent.usage import ContainerUse

InPlace = Literal["kernel", "interposer", "framework", "none", "unprotected"]


@dataclass(frozen=True, slots=True)
class IsolationVerdict:
    """The layer in place, and what is wrong, if anything is."""

    isolation: InPlace
    message: str | None = None


def verdict(
    use: ContainerUse,
    *,
    kernel: bool,
    has_library: Callable[[DeviceProcess], bool | None],
    got_past: bool = False,
) -> IsolationVerdict:
    """The layer that enforces a container's cap.

    Args:
        use: The container and its processes on GPUs.
        kernel: The driver holds a limit for it on each of its devices.
        has_library: Whether a process has libgpucap mapped; None when that cannot be read.
        got_past: It is above its cap by memory that libgpucap did not count.
    """
    if use.beside:
        return _beside(use)
    if kernel:
        return IsolationVerdict("kernel")
    own = use.container.own
    if not own.promised:
        return IsolationVerdict("framework")
    for gpu_process in use.processes:
        loaded = has_library(gpu_process)
        if loaded:
            continue
        command = gpu_process.process.command if gpu_process.process is not None else "?"
        why = "runs without libgpucap" if loaded is False else "cannot be looked into"
        return IsolationVerdict(
            "unprotected",
            f"container {own.name}: process {gpu_process.pid} ({command}) is on the GPU and "
            f"{why}: nothing but the watchdog holds it to its cap",
        )
    if got_past:
        return IsolationVerdict(
            "unprotected",
            f"container {own.name}: a program got past libgpucap, which did not count "
            "what it holds (an own loader, a static driver): nothing but the watchdog holds it to "
            "its cap",
        )
    return IsolationVerdict("interposer")


def _beside(use: ContainerUse) -> IsolationVerdict:
    """An ephemeral container sees what its pod holds, if it asks for it, and has no cap at all."""
    first = use.beside[0]
    command = first.gpu_process.process.command if first.gpu_process.process is not None else "?"
    more = f" and {len(use.beside) - 1} more processes" if len(use.beside) > 1 else ""
    return IsolationVerdict(
        "unprotected",
        f"ephemeral container {first.name}: process {first.gpu_process.pid} ({command}){more} is "
        f"on {first.uuid} of container {use.container.own.name}, where no cap holds it and nobody "
        "is charged for its memory; it ends with the pod, or when its process is stopped",
    )
