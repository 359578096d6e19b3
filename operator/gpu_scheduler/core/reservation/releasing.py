"""What pods that are about to go will free, less what of it is kept for somebody already.

A pod that is being evicted holds its devices until it is gone, but nobody need be evicted for room
that comes anyway. Room is promised once: ``take`` takes it off what comes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.model.resources import NOTHING, NodeResources, resources_of
from gpu_scheduler.core.model.running_pods import RunningPod, RunningPods
from gpu_scheduler.core.model.snapshot import IndexedAllocations, Snapshot


@dataclass(slots=True)
class _Coming:
    """What will be free on one node."""

    room: NodeResources = NOTHING
    devices: dict[int, tuple[int, int]] = field(default_factory=dict)  # of fractions milli, MiB


class ReleasingResources:
    """Room that will be there, by node."""

    def __init__(self, snapshot: Snapshot, running_pods: RunningPods) -> None:
        self._snapshot = snapshot
        self._running_pods = running_pods
        self._coming: dict[int, _Coming] = {}
        self.by_model: Counter[tuple[ProjectName, str]] = Counter()  # the same by product
        self.milli: Counter[ProjectName] = Counter()
        """Charged to projects until the pods are gone."""
        self.pods: set[PodUID] = set()
        """Those that are about to go."""
        for pod in running_pods.leaving():
            self.add(pod)

    @property
    def nodes(self) -> Iterable[int]:
        """Nodes on which room will be."""
        return self._coming.keys()

    def coming_milli(self, node: int) -> int:
        """Milli-GPU that will be free on a node and are promised to nobody."""
        coming = self._coming.get(node)
        return sum(milli for milli, _ in coming.devices.values()) if coming else 0

    def coming_on(self, node: int) -> object:
        """What will be free on a node and is promised to nobody; equal to the same."""
        coming = self._coming.get(node)
        return coming and (coming.room, tuple(coming.devices.items()))

    def staying_on(self, node: int) -> list[RunningPod]:
        """The pods on a node that are not about to go."""
        on = self._running_pods.on(self._snapshot.cluster.nodes[node].name)
        return [pod for pod in on if pod.uid not in self.pods]

    def add(self, pod: RunningPod) -> None:
        """One more pod is about to go."""
        node = self._snapshot.number_of(pod.node)
        self.pods.add(pod.uid)
        self.milli[pod.project] += pod.milli
        if node is None:
            return
        coming = self._coming.setdefault(node, _Coming())
        coming.room += resources_of(pod)
        for pick in self._snapshot.held_by(pod):
            _, device, milli, mib = pick
            model = self._snapshot.cluster.dev_model[device]
            self.by_model[pod.project, model] += self._snapshot.charge_milli(pick)
            if device not in self._snapshot.barred:
                before = coming.devices.get(device, (0, 0))
                coming.devices[device] = (before[0] + milli, before[1] + mib)

    def release_all(self) -> None:
        """All of it is there, on the snapshot; to be rolled back."""
        for node in sorted(self._coming):
            self.release(node)

    def release(self, node: int) -> None:
        """Put what will be free on a node into the snapshot; to be rolled back."""
        coming = self._coming.get(node)
        if coming is None:
            return
        picks = tuple([(0, device, *amount) for device, amount in coming.devices.items()])
        self._snapshot.release(node, coming.room, picks, ProjectName(""))

    def take(
        self, node: int, room: NodeResources, picks: IndexedAllocations
    ) -> tuple[NodeResources, IndexedAllocations]:
        """Promise what comes of this to somebody; what that is, with the devices of all picks."""
        coming = self._coming.get(node)
        if coming is None:
            return NOTHING, tuple([(container, device, 0, 0) for container, device, _, _ in picks])
        got = room.at_most(coming.room)
        coming.room -= got
        parts = []
        for container, device, milli, mib in picks:
            comes = coming.devices.get(device, (0, 0))
            part = min(milli, comes[0]), min(mib, comes[1])
            coming.devices[device] = (comes[0] - part[0], comes[1] - part[1])
            parts.append((container, device, *part))
        return got, tuple(parts)

    def give_back(self, node: int, room: NodeResources, picks: IndexedAllocations) -> None:
        """That is promised to nobody any more."""
        coming = self._coming.get(node)
        if coming is None:
            return
        coming.room += room
        for _, device, milli, mib in picks:
            comes = coming.devices.get(device, (0, 0))
            coming.devices[device] = (comes[0] + milli, comes[1] + mib)
