"""The cluster as flat arrays: what the planner reads and, on a copy, consumes.

Device ``d`` of node ``n`` lives at index ``first[n] <= d < first[n + 1]`` of every ``dev_*`` and
``free_*`` device array. The state keeps one ``Cluster`` up to date; a snapshot is ``copy()``,
which shares what a plan never changes and copies what it does. Invariant: free <= capacity, and a
plan takes nothing that is not free. Free amounts below 0 are a state like others: a pod was bound
by hand, or what a node has was lowered under running pods. Nothing fits there until they are back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.catalogue import NO_CATALOGUE, Catalogue
from gpu_scheduler.core.model.placed_pods import NOBODY_NEAR, PlacedPods
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.vocabulary import Word


@dataclass(frozen=True, slots=True)
class NodeResources:
    """What a node has beside GPUs."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0

    def __add__(self, other: "NodeResources") -> "NodeResources":
        """Both."""
        return NodeResources(
            self.cpu_milli + other.cpu_milli,
            self.memory_bytes + other.memory_bytes,
            self.ephemeral_bytes + other.ephemeral_bytes,
        )

    def __sub__(self, other: "NodeResources") -> "NodeResources":
        """The rest."""
        return NodeResources(
            self.cpu_milli - other.cpu_milli,
            self.memory_bytes - other.memory_bytes,
            self.ephemeral_bytes - other.ephemeral_bytes,
        )

    def at_most(self, other: "NodeResources") -> "NodeResources":
        """The smaller of each."""
        return NodeResources(
            min(self.cpu_milli, other.cpu_milli),
            min(self.memory_bytes, other.memory_bytes),
            min(self.ephemeral_bytes, other.ephemeral_bytes),
        )


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node; a ``NodeInfo`` has only NoSchedule and NoExecute."""

    key: Word = ""
    value: str = ""
    effect: Word = ""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What of a node does not change when pods come and go.

    ``unschedulable`` is empty, or the sentence that says why the node takes no pods of ours at
    present (cordoned, not ready, GPUs handed out by somebody else). ``foreign``: the last of these
    alone; which of its GPUs are free is not known then. ``tainted``: Kubernetes itself keeps new
    pods away for the moment, by a taint that is not among ``taints``.
    """

    name: str
    labels: Mapping[Word, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: str = ""
    foreign: bool = False
    tainted: bool = False
    cpu_milli: int = 0  # allocatable
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    pods: int = 110


@dataclass(slots=True)
class Cluster:
    """Nodes and devices in a fixed order, with what is free on each."""

    nodes: list[NodeInfo] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [0])
    dev_id: list[str] = field(default_factory=list)  # UUID, or the index on the node as text
    dev_model: list[Word] = field(default_factory=list)
    dev_usable_mib: list[int] = field(default_factory=list)
    dev_compute: list[tuple[int, int]] = field(default_factory=list)
    dev_healthy: list[bool] = field(default_factory=list)  # it takes new pods
    free_milli: list[int] = field(default_factory=list)
    free_mib: list[int] = field(default_factory=list)
    free_cpu_milli: list[int] = field(default_factory=list)
    free_memory_bytes: list[int] = field(default_factory=list)
    free_ephemeral_bytes: list[int] = field(default_factory=list)
    free_pods: list[int] = field(default_factory=list)
    allocated_milli: dict[ProjectName, int] = field(default_factory=dict)  # held by pods not ended
    dev_trouble: dict[int, str] = field(default_factory=dict)  # why a device takes no new pods
    catalogue: Catalogue = NO_CATALOGUE  # what kinds of GPUs there are
    held_by_model: dict[tuple[ProjectName, str], int] = field(default_factory=dict)  # by product
    placed_pods: PlacedPods = NOBODY_NEAR
    names: Mapping[JobKey, str] = field(default_factory=dict)  # of jobs not called by their key

    def name_of(self, job: JobKey) -> str:
        """What a job is called in sentences; several may be called the same."""
        return self.names.get(job, job)

    def copy(self) -> "Cluster":
        """A cluster that shares the fixed arrays and owns what a plan consumes."""
        return Cluster(
            self.nodes,
            self.first,
            self.dev_id,
            self.dev_model,
            self.dev_usable_mib,
            self.dev_compute,
            self.dev_healthy,
            self.free_milli.copy(),
            self.free_mib.copy(),
            self.free_cpu_milli.copy(),
            self.free_memory_bytes.copy(),
            self.free_ephemeral_bytes.copy(),
            self.free_pods.copy(),
            self.allocated_milli.copy(),
            self.dev_trouble,
            self.catalogue,
            self.held_by_model,
            self.placed_pods,
            self.names,
        )
