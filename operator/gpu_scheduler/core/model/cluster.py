"""The cluster as flat arrays: what the planner reads and, on a copy, consumes.

Device ``d`` of node ``n`` lives at index ``first[n] <= d < first[n + 1]`` of every ``dev_*`` and
``free_*`` device array. The state keeps one ``Cluster`` up to date; a snapshot is ``copy()``,
which shares what a plan never changes and copies what it does. A fraction takes milli and MiB of a
device, a request in MiB takes MiB alone; ``free_milli`` is the largest fraction that fits now.
Invariant: free <= capacity, and a plan takes nothing that is not free. Free amounts below 0 are a
state like others: a pod was bound
by hand, or what a node has was lowered under running pods. Who asks for none of it fits all the
same, as the kubelet says too, others do not until it is back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.catalogue import NO_CATALOGUE, Catalogue
from gpu_scheduler.core.model.placed_pods import NOBODY_NEAR, PlacedPods
from gpu_scheduler.core.model.request import JobKey, PodShape, ProjectName
from gpu_scheduler.core.model.resources import Scalars
from gpu_scheduler.core.model.units import DEVICE_MILLI, most_milli
from gpu_scheduler.core.vocabulary import Word


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
    pods away for the moment, by a taint that is not among ``taints``. ``not_listed``: why GPUs that
    it has are not listed. ``failed_isolation``: levels that did not hold in its self-test.
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
    scalars: Scalars = ()
    not_listed: str = ""
    failed_isolation: tuple[Word, ...] = ()

    def closed_to(self, pod_shape: PodShape) -> str:
        """Why it takes no such pods at present, to follow its name; empty when it takes them."""
        if self.unschedulable:
            return self.unschedulable
        needed = pod_shape.needed_isolation
        failed = f"failed the self-test of isolation: {needed}"
        return failed if needed in self.failed_isolation else ""

    def amount(self, scalar: str) -> int:
        """Of a scalar, allocatable."""
        return next((amount for name, amount in self.scalars if name == scalar), 0)


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
    free_milli: list[int] = field(default_factory=list)  # the largest fraction that fits
    fractions: dict[int, int] = field(default_factory=dict)
    """Milli that no fraction holds, of devices whose free memory allows only smaller ones."""
    free_mib: list[int] = field(default_factory=list)
    free_cpu_milli: list[int] = field(default_factory=list)
    free_memory_bytes: list[int] = field(default_factory=list)
    free_ephemeral_bytes: list[int] = field(default_factory=list)
    free_pods: list[int] = field(default_factory=list)
    free_scalars: dict[Word, list[int]] = field(default_factory=dict)  # of those that a node has
    allocated_milli: dict[ProjectName, int] = field(default_factory=dict)  # held by pods not ended
    dev_trouble: dict[int, str] = field(default_factory=dict)  # why a device takes no new pods
    catalogue: Catalogue = NO_CATALOGUE  # what kinds of GPUs there are
    held_by_model: dict[tuple[ProjectName, str], int] = field(default_factory=dict)  # by product
    placed_pods: PlacedPods = NOBODY_NEAR
    names: Mapping[JobKey, str] = field(default_factory=dict)  # of jobs not called by their key

    def name_of(self, job: JobKey) -> str:
        """What a job is called in sentences; several may be called the same."""
        return self.names.get(job, job)

    def unheld_milli(self, device: int) -> int:
        """Milli of a device that no fraction holds."""
        return self.fractions.get(device, self.free_milli[device])

    def milli_together(self, device: int, requests: int) -> int:
        """No more milli than so fit in fractions, one by one; each takes MiB rounded down."""
        milli = self.free_milli[device]
        if requests > 1 and device in self.fractions:
            mib = self.free_mib[device] + requests - 1
            milli = min(self.fractions[device], most_milli(mib, self.dev_usable_mib[device]))
        return milli

    def free_device(self, device: int, milli: int, mib: int) -> int:
        """So much more is free on a device, or less; ``milli``: of fractions.

        Returns by how much ``free_milli`` of the device rose.
        """
        usable, before = self.dev_usable_mib[device], self.free_milli[device]
        milli += self.fractions.pop(device, before) if self.fractions else before
        self.free_mib[device] = free_mib = self.free_mib[device] + mib
        if milli * usable >= (free_mib + 1) * DEVICE_MILLI and usable and milli > 0:
            self.fractions[device] = milli
            milli = most_milli(free_mib, usable)
        self.free_milli[device] = milli
        return milli - before

    def add_empty(self, node: NodeInfo) -> None:
        """One more node, the last, of which all is free; its devices are the caller's."""
        self.nodes.append(node)
        self.free_cpu_milli.append(node.cpu_milli)
        self.free_memory_bytes.append(node.memory_bytes)
        self.free_ephemeral_bytes.append(node.ephemeral_bytes)
        self.free_pods.append(node.pods)
        for name, _ in node.scalars:
            self.free_scalars.setdefault(name, [0] * (len(self.nodes) - 1))
        for name, free in self.free_scalars.items():
            free.append(node.amount(name))

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
            self.fractions.copy(),
            self.free_mib.copy(),
            self.free_cpu_milli.copy(),
            self.free_memory_bytes.copy(),
            self.free_ephemeral_bytes.copy(),
            self.free_pods.copy(),
            {name: free.copy() for name, free in self.free_scalars.items()},
            self.allocated_milli.copy(),
            self.dev_trouble,
            self.catalogue,
            self.held_by_model,
            self.placed_pods,
            self.names,
        )
