"""What pods that are about to go will free, and what of it is owed to whom already.

A pod that is being evicted holds its devices until it is gone, but nobody need be evicted for room
that comes anyway. Room is owed to a waiting pod once: ``owe`` takes it off what comes, and blocks
the part of it that is free now. Called by ``holds`` and ``reclaim``.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_scheduler.core.cluster import Cluster
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.request import PodUID, ProjectName, Shape
from gpu_scheduler.core.snapshot import Picks, Snapshot


@dataclass(frozen=True, slots=True)
class Room:
    """Room on a node beside GPUs."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0


@dataclass(slots=True)
class _Coming:
    """What will be free on one node."""

    room: Room = field(default_factory=Room)
    devices: dict[int, tuple[int, int]] = field(default_factory=dict)  # milli, MiB


class Locator:
    """Indexes of nodes and devices by their names."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, int] = {}
        self._picks: dict[PodUID, Picks] = {}

    def node(self, name: str) -> int | None:
        """The index of a node; None when it is unknown."""
        if not self._nodes:
            self._nodes = {node.name: n for n, node in enumerate(self._cluster.nodes)}
        return self._nodes.get(name)

    def picks(self, pod: Occupant) -> Picks:
        """The devices that a pod holds, as far as they are known."""
        picks = self._picks.get(pod.uid)
        if picks is None:
            picks = self._picks[pod.uid] = self._find(pod)
        return picks

    def _find(self, pod: Occupant) -> Picks:
        node = self.node(pod.node)
        if node is None:
            return ()
        first, last = self._cluster.first[node], self._cluster.first[node + 1]
        at = {self._cluster.dev_id[device]: device for device in range(first, last)}
        return tuple(
            (grant.container, at[grant.device], grant.milli, grant.mib)
            for grant in pod.grants
            if grant.device in at
        )


class Departures:
    """Room that will be there, by node."""

    def __init__(self, snapshot: Snapshot, locator: Locator, leaving: Iterable[Occupant]) -> None:
        self._snapshot, self._locator = snapshot, locator
        self._coming: dict[int, _Coming] = {}
        self.by_model: Counter[tuple[ProjectName, str]] = Counter()  # the same by product
        self.milli: Counter[ProjectName] = Counter()
        """Charged to projects until the pods are gone."""
        self.pods: set[PodUID] = set()
        """Those that are about to go."""
        for pod in leaving:
            self.add(pod)

    @property
    def nodes(self) -> Iterable[int]:
        """Nodes on which room will be."""
        return self._coming.keys()

    def coming_milli(self, node: int) -> int:
        """Milli-GPU that will be free on a node and are owed to nobody."""
        coming = self._coming.get(node)
        return sum(milli for milli, _ in coming.devices.values()) if coming else 0

    def add(self, pod: Occupant) -> None:
        """One more pod is about to go."""
        node = self._locator.node(pod.node)
        self.pods.add(pod.uid)
        self.milli[pod.project] += pod.milli
        if node is None:
            return
        coming = self._coming.setdefault(node, _Coming())
        coming.room = Room(
            coming.room.cpu_milli + pod.cpu_milli,
            coming.room.memory_bytes + pod.memory_bytes,
            coming.room.ephemeral_bytes + pod.ephemeral_bytes,
        )
        for _, device, milli, mib in self._locator.picks(pod):
            self.by_model[pod.project, self._snapshot.cluster.dev_model[device]] += milli
            if device not in self._snapshot.barred:
                before = coming.devices.get(device, (0, 0))
                coming.devices[device] = (before[0] + milli, before[1] + mib)

    def release(self, node: int) -> None:
        """Put what will be free on a node into the snapshot; to be rolled back."""
        coming = self._coming.get(node)
        if coming is None:
            return
        picks = tuple([(0, device, *amount) for device, amount in coming.devices.items()])
        self._snapshot.release(node, coming.room, picks, ProjectName(""))

    def owe(self, node: int, shape: Shape, picks: Picks, project: ProjectName) -> None:
        """Keep room for a pod: take it from what comes, and block what is missing now."""
        coming = self._coming.setdefault(node, _Coming())
        blocked = []
        for container, device, milli, mib in picks:
            comes = coming.devices.get(device, (0, 0))
            coming.devices[device] = (max(0, comes[0] - milli), max(0, comes[1] - mib))
            blocked.append((container, device, max(0, milli - comes[0]), max(0, mib - comes[1])))
        room = coming.room
        short = Room(
            max(0, shape.cpu_milli - room.cpu_milli),
            max(0, shape.memory_bytes - room.memory_bytes),
            max(0, shape.ephemeral_bytes - room.ephemeral_bytes),
        )
        coming.room = Room(
            max(0, room.cpu_milli - shape.cpu_milli),
            max(0, room.memory_bytes - shape.memory_bytes),
            max(0, room.ephemeral_bytes - shape.ephemeral_bytes),
        )
        charge = sum(pick[2] for pick in picks)
        self._snapshot.take(node, short, tuple(blocked), project, charge)
