"""What a pod asks for, as the planner sees it.

A ``PodShape`` is the equivalence class of pods that the planner may treat alike: equal pod shapes
get equal answers, so each is scored once. Pod shapes are hashable and interned by the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from gpu_scheduler.core.model.affinity import AffinityInfo
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.resources import Scalars
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.vocabulary import Word

PodUID = NewType("PodUID", str)
JobKey = NewType("JobKey", str)  # "namespace/name"
ProjectName = NewType("ProjectName", str)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """Devices of one container: ``count`` different ones, the same amount on each.

    Exactly one of ``milli`` and ``mib`` is above 0. ``milli`` of 1,000 asks for fully free devices.
    """

    container: int  # index in the pod's containers
    count: int
    milli: int  # per device
    mib: int = 0  # per device


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """A node selector term: all of its requirements hold; ``fields`` match metadata.name."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration; empty key and ``Exists`` tolerate all taints, an empty effect any effect."""

    key: Word = ""
    operator: Word = "Equal"
    value: str = ""
    effect: Word = ""


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes a pod accepts. ``terms``: None = no affinity, else one of them must match."""

    selector: tuple[tuple[Word, str], ...] = ()
    terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PodShape:
    """What one pod asks for."""

    devices: tuple[DeviceRequest, ...] = ()
    models: tuple[Word, ...] = ()  # lower case, see ``products``; empty = any
    min_compute: tuple[int, int] = (0, 0)  # compute capability (major, minor)
    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    where: NodeFilter = field(default_factory=NodeFilter)
    scalars: Scalars = ()
    isolation: Word = ""  # what is to hold its memory caps; empty = nothing that nodes test

    @property
    def nominal_milli(self) -> int:
        """Milli-GPU asked for by fractions; requests in MiB count only once a device is known."""
        return sum(d.count * d.milli for d in self.devices)

    @property
    def whole_devices(self) -> int:
        """How many whole GPUs are asked for, by all containers together."""
        return sum(d.count for d in self.devices if d.milli == DEVICE_MILLI)

    @property
    def needed_isolation(self) -> str:
        """``isolation`` where it shares a GPU; who has it whole harms nobody there."""
        return self.isolation if any(d.milli != DEVICE_MILLI for d in self.devices) else ""


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that exists and has no node yet."""

    uid: PodUID
    name: str
    pod_shape: PodShape
    avoid: frozenset[str] = frozenset()  # node names on which it, or a sibling, just failed
    since: float = 0.0  # epoch seconds from which it waits
    role: str = ""  # of its job; empty where the job has no roles
    affinity: AffinityInfo | None = (
        None  # who it is to the rules of others, and its own; None = to none
    )


@dataclass(frozen=True, slots=True)
class Topology:
    """All pods of a gang in one domain: on nodes with the same value of a label."""

    key: Word
    required: bool = True  # False: only if that is possible now


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together or not at all.

    Attributes:
        missing: members that do not run and have not succeeded: as many pods must be waiting, and
            all of them start in one cycle.
        size: members in all, for messages.
        distinct: no two members share a GPU.
        topology: None = anywhere.
        nodes: nodes of the members that run, which fix the domain.
        devices: ids of the GPUs of those members, which distinct members stay away from.
    """

    missing: int
    size: int
    distinct: bool = True
    topology: Topology | None = None
    nodes: frozenset[str] = frozenset()
    devices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """The waiting pods of one job, in index order; ``created`` is epoch seconds."""

    key: JobKey
    project: ProjectName
    pods: tuple[WaitingPod, ...]
    interactive: bool = False
    priority: int = 50
    created: float = 0.0
    time_limit_seconds: int | None = None  # a pod of the job runs no longer than this
    gang: Gang | None = None  # None: each pod starts when it fits
    ruled: bool = False  # a pod of it has rules about others (``WaitingPod.affinity``)
    doubtful: bool = False
    """Its last pods could not start for a reason of their own: nobody gives way to it, and no room
    is kept for it, until one has started on what is free."""
    unseen: bool = False
    """Whether its pods could start was not looked at of late: before anybody gives way to it, the
    plan asks for that (``Plan.looks``)."""


@dataclass(frozen=True, slots=True)
class Project:
    """A quota. ``limit_milli`` None = no hard cap; ``weight`` 0 = never above quota."""

    name: ProjectName
    quota_milli: int
    limit_milli: int | None = None
    weight: int = 1
    quota_by_model: Mapping[Word, int] = field(default_factory=dict)
    min_runtime_seconds: float | None = None  # None = what the cluster promises
