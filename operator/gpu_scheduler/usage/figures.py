"""What the leader knows of the use of GPUs: for metrics, GPUUsage and whoever else shows it.

Made from agents' answers and the ledger by ``runtime.usage``. Times are epoch seconds, ratios 0 to
1; None is unknown, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

Amount = TypeVar("Amount", int, float)


class GpuState(StrEnum):
    """Where a part of a GPU is: each GPU of the cluster adds up to exactly one over these."""

    BUSY = "busy"  # of shares: what is used of each, at most the share
    PART_UNUSED = "part-unused"  # the rest of shares that are used
    IDLE = "idle"  # shares whose work has done nothing for the threshold
    UNKNOWN = "unknown"  # shares whose use nobody knows
    NEIGHBOURS = "neighbours"  # held by pods that are not ours
    FREE_IN_PIECES = "free-in-pieces"  # smaller than the least that waits, or than half a GPU
    FREE = "free"
    CLOSED = "closed"  # cordoned, unhealthy, quarantined


HELD = (GpuState.BUSY, GpuState.PART_UNUSED, GpuState.IDLE, GpuState.UNKNOWN)
"""Held by work of ours."""


def held_parts(
    held: Amount, used: Amount | None, *, idle: bool
) -> tuple[tuple[GpuState, Amount], ...]:
    """The states that a held part is in, in the unit of ``held``, which they add up to.

    Args:
        held: how much.
        used: of the device, which may be more; None: nobody knows.
        idle: it has done nothing for the threshold.
    """
    if used is None:
        return ((GpuState.UNKNOWN, held),)
    if idle:
        return ((GpuState.IDLE, held),)
    busy = min(used, held)
    return (GpuState.BUSY, busy), (GpuState.PART_UNUSED, held - busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFigures:
    """A GPU container of a workload whose pods have several, in all of its pods.

    Attributes:
        name: of the container.
        gpus: that it holds.
        busy: mean over its shares, weighted by share, of time with a kernel of its own.
        memory_mib: on GPUs, in all.
        memory_limit_mib: that it may hold there.
    """

    name: str
    gpus: float = 0.0
    busy: float | None = None
    memory_mib: float | None = None
    memory_limit_mib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkUse:
    """One workload with GPUs at this moment: a GPUJob, or who owns pods that ask by themselves.

    Attributes:
        namespace: where it is.
        name: of the GPUJob; of another workload kind/name in lower case, such as deployment/api.
        project: that is charged; empty: none.
        type: training, interactive or service.
        gpus: that it holds.
        used: GPUs of these in use, of each share at most the share.
        requested_gpus: that a GPUJob asks for, with all pods that may run at once; None also where
            it asks for memory.
        busy: mean over its shares, weighted by share, of time with a kernel of its own.
        memory_mib: on GPUs, in all.
        memory_limit_mib: that it may hold there.
        cpu_cores: in use.
        ram_mib: in use.
        idle_seconds: since the last kernel of any of it.
        advice: the rule of its headline; empty: none.
        containers: where a pod of it has several with GPUs.
    """

    namespace: str
    name: str
    project: str = ""
    type: str = "training"
    gpus: float = 0.0
    used: float | None = None
    requested_gpus: float | None = None
    busy: float | None = None
    memory_mib: float | None = None
    memory_limit_mib: float | None = None
    cpu_cores: float | None = None
    ram_mib: float | None = None
    idle_seconds: int | None = None
    advice: str = ""
    containers: Sequence[ContainerFigures] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUse:
    """All of it.

    Attributes:
        gpus: how many GPUs are in each state; adds up to all GPUs.
        work: what holds GPUs now.
        gpu_seconds: held since this replica leads, by project and type.
        idle_gpu_seconds: of these past the idle threshold.
        silent_agents: that did not answer the last time.
        heard: when the agent of a node answered last, by the leader's clock.
    """

    gpus: Mapping[GpuState, float] = field(default_factory=dict)
    work: Sequence[WorkUse] = ()
    gpu_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    idle_gpu_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    silent_agents: int = 0
    heard: Mapping[str, float] = field(default_factory=dict)
