"""The planner's own copy of the cluster: consumed pod by pod, and given back on demand.

Adds to ``Cluster`` what one cycle needs: the *kind* of each node (nodes with the same devices
answer the same question about an empty node alike), the free GPU per node, a list of changed
nodes from which score tables catch up, and an undo log. Devices that are not healthy, or above
their capacity, have nothing free here. Invariant: ``rollback(mark())`` restores every number.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.model.resources import NOTHING, Footprint, NodeResources, Scalars
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.units import milli_for_mib

# Container, device (index in the cluster), milli, MiB. Milli of 0: asked for in MiB.
IndexedAllocation = tuple[int, int, int, int]
IndexedAllocations = tuple[IndexedAllocation, ...]
# Told of each change: whose, what, how much it is charged (None: what it picks), and +1 or -1.
Watcher = Callable[[ProjectName, IndexedAllocations, int | None, int], None]


class DeviceType(NamedTuple):
    """What of a device decides whether it can ever serve a request.

    ``rank``: 1 for the cheapest of the cluster. ``counts``: how many whole ones a pod may have;
    empty = any number.
    """

    model: str
    usable_mib: int
    compute: tuple[int, int]
    rank: int = 1
    counts: tuple[int, ...] = ()


NodeShape = tuple[DeviceType, ...]


_NOBODY = ProjectName("")


class Snapshot:
    """A cluster being filled within one cycle."""

    __slots__ = (
        "_held",
        "_log",
        "_number",
        "barred",
        "changed",
        "cluster",
        "node_shape",
        "node_shapes",
        "node_free_milli",
        "watcher",
    )

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster = cluster.copy()
        self._number: dict[str, int] = {}
        self._held: dict[PodUID, IndexedAllocations] = {}
        self.watcher: Watcher | None = None
        self.barred: set[int] = set()  # devices that take nothing, whoever leaves them
        for device, healthy in enumerate(cluster.dev_healthy):
            if not healthy or cluster.free_milli[device] < 0 or cluster.free_mib[device] < 0:
                cluster.free_milli[device] = cluster.free_mib[device] = 0
                cluster.fractions.pop(device, None)
                self.barred.add(device)
        free, first = cluster.free_milli, cluster.first
        self.node_free_milli = [sum(free[a:b]) for a, b in zip(first, first[1:], strict=False)]
        self.node_shapes: list[NodeShape] = []
        self.node_shape = self._intern_shapes()
        self.changed: list[int] = []  # nodes, in the order of the changes; only grows
        self._log: list[
            tuple[int, Footprint, IndexedAllocations, ProjectName, int, int | None]
        ] = []

    def same_layout(self, cluster: Cluster) -> bool:
        """Whether a cluster has the same nodes and devices, told by the lists themselves."""
        own = self.cluster
        return (
            own.nodes is cluster.nodes
            and own.first is cluster.first
            and own.dev_usable_mib is cluster.dev_usable_mib
            and own.dev_healthy is cluster.dev_healthy
            and own.catalogue is cluster.catalogue
        )

    def renew(self, cluster: Cluster) -> None:
        """Take over what is free now on nodes that stayed; nothing can be rolled back any more."""
        own = self.cluster
        self._log.clear()
        self._held.clear()
        own.allocated_milli = cluster.allocated_milli.copy()
        own.dev_trouble = cluster.dev_trouble
        own.held_by_model = cluster.held_by_model
        own.placed_pods = cluster.placed_pods
        self.watcher = None
        stale = {
            node
            for mine, theirs in (
                (own.free_cpu_milli, cluster.free_cpu_milli),
                (own.free_memory_bytes, cluster.free_memory_bytes),
                (own.free_ephemeral_bytes, cluster.free_ephemeral_bytes),
                (own.free_pods, cluster.free_pods),
                *((free, cluster.free_scalars[name]) for name, free in own.free_scalars.items()),
            )
            for node in differences(mine, theirs)
        }
        for mine, theirs in (
            (own.free_milli, cluster.free_milli),
            (own.free_mib, cluster.free_mib),
        ):
            stale.update(map(self._node_of, differences(mine, theirs)))
        if own.fractions or cluster.fractions:
            stale.update(
                self._node_of(d) for d, _ in own.fractions.items() ^ cluster.fractions.items()
            )
        milli, mib, healthy = cluster.free_milli, cluster.free_mib, cluster.dev_healthy
        for device in self.barred:  # 0 is free there as before, but it may be in order by now
            if healthy[device] and milli[device] >= 0 and mib[device] >= 0:
                stale.add(self._node_of(device))
        for node in sorted(stale):
            self._take_over(node, cluster)

    def number_of(self, name: str) -> int | None:
        """The index of a node; None when it is unknown."""
        if not self._number:
            self._number = {node.name: n for n, node in enumerate(self.cluster.nodes)}
        return self._number.get(name)

    def numbers_of(self, names: Iterable[str]) -> list[int]:
        """The indexes of those nodes that are known."""
        return [node for node in map(self.number_of, names) if node is not None]

    def picks_of(self, node: int, devices: Iterable[DeviceAllocation]) -> IndexedAllocations:
        """Devices of a node, as far as it has them."""
        first, last = self.cluster.first[node], self.cluster.first[node + 1]
        at = {self.cluster.dev_id[device]: device for device in range(first, last)}
        return tuple(
            (allocated.container, at[allocated.device], allocated.fraction_milli, allocated.mib)
            for allocated in devices
            if allocated.device in at
        )

    def charge_milli(self, pick: IndexedAllocation) -> int:
        """What a project is charged for a pick."""
        _, device, milli, mib = pick
        if milli or not mib:
            return milli
        return milli_for_mib(mib, max(1, self.cluster.dev_usable_mib[device]))

    def allocations_of(self, picks: IndexedAllocations) -> tuple[DeviceAllocation, ...]:
        """What a pod is given that gets these devices."""
        ids = self.cluster.dev_id
        return tuple(
            [
                DeviceAllocation(
                    pick[0], ids[pick[1]], self.charge_milli(pick), pick[3], not pick[2]
                )
                for pick in picks
            ]
        )

    def free_on_devices(self, devices: Iterable[int]) -> IndexedAllocations:
        """All that is free on devices."""
        cluster = self.cluster
        return tuple((0, d, cluster.unheld_milli(d), cluster.free_mib[d]) for d in devices)

    def held_by(self, pod: RunningPod) -> IndexedAllocations:
        """The devices that a pod on a node holds, as far as they are known."""
        picks = self._held.get(pod.uid)
        if picks is None:
            node = self.number_of(pod.node)
            picks = self._held[pod.uid] = () if node is None else self.picks_of(node, pod.devices)
        return picks

    def release_pod(self, pod: RunningPod) -> None:
        """Take a pod off the node on which it is, if that is known."""
        node = self.number_of(pod.node)
        if node is not None:
            self.release(node, pod, self.held_by(pod), pod.project)

    def put_back(self, pod: RunningPod) -> None:
        """Put a pod that was released back where it was."""
        node = self.number_of(pod.node)
        if node is not None:
            self.take(node, pod, self._not_barred(self.held_by(pod)), pod.project)

    def fits_back(self, pod: RunningPod) -> bool:
        """Whether the place of a pod that was released is still free."""
        node = self.number_of(pod.node)
        if node is None:
            return True
        return self.has_room(node, pod) and self.has_free(self._not_barred(self.held_by(pod)))

    def _not_barred(self, picks: IndexedAllocations) -> IndexedAllocations:
        """Of barred devices nothing is free, whoever leaves or comes back."""
        return tuple(p for p in picks if p[1] not in self.barred) if self.barred else picks

    def _node_of(self, device: int) -> int:
        return bisect_right(self.cluster.first, device) - 1

    def _take_over(self, node: int, cluster: Cluster) -> None:
        own = self.cluster
        first, last = own.first[node], own.first[node + 1]
        for device in range(first, last):
            milli, mib = cluster.free_milli[device], cluster.free_mib[device]
            self.barred.discard(device)
            if not cluster.dev_healthy[device] or milli < 0 or mib < 0:
                milli = mib = 0
                self.barred.add(device)
            own.free_milli[device], own.free_mib[device] = milli, mib
            own.fractions.pop(device, None)
            if device in cluster.fractions and device not in self.barred:
                own.fractions[device] = cluster.fractions[device]
        self.node_free_milli[node] = sum(own.free_milli[first:last])
        own.free_cpu_milli[node] = cluster.free_cpu_milli[node]
        own.free_memory_bytes[node] = cluster.free_memory_bytes[node]
        own.free_ephemeral_bytes[node] = cluster.free_ephemeral_bytes[node]
        own.free_pods[node] = cluster.free_pods[node]
        for name, free in own.free_scalars.items():
            free[node] = cluster.free_scalars[name][node]
        self.changed.append(node)

    def _intern_shapes(self) -> list[int]:
        cluster, first = self.cluster, self.cluster.first
        model, usable, compute = cluster.dev_model, cluster.dev_usable_mib, cluster.dev_compute
        ranks = cluster.catalogue.ranks(zip(model, usable, strict=True))
        index: dict[tuple[object, ...], int] = {}
        shape = []
        for a, b in zip(first, first[1:], strict=False):
            key = (*model[a:b], *usable[a:b], *compute[a:b])
            number = index.get(key)
            if number is None:
                number = index[key] = len(self.node_shapes)
                each = zip(model[a:b], usable[a:b], compute[a:b], strict=True)
                self.node_shapes.append(
                    tuple(
                        DeviceType(*device, ranks[device[:2]], cluster.catalogue.counts(device[0]))
                        for device in each
                    )
                )
            shape.append(number)
        return shape

    def has_room(self, node: int, pod_shape: Footprint) -> bool:
        """Whether all that it takes beside GPUs, and a pod slot, is free on the node."""
        cluster = self.cluster
        return (
            cluster.free_pods[node] > 0
            and max(0, cluster.free_cpu_milli[node]) >= pod_shape.cpu_milli
            and max(0, cluster.free_memory_bytes[node]) >= pod_shape.memory_bytes
            and max(0, cluster.free_ephemeral_bytes[node]) >= pod_shape.ephemeral_bytes
            and (not pod_shape.scalars or self.has_scalars(node, pod_shape.scalars))
        )

    def has_scalars(self, node: int, scalars: Scalars) -> bool:
        """Whether these are free on the node."""
        free = self.cluster.free_scalars
        return all(name in free and free[name][node] >= amount for name, amount in scalars)

    def free_on(self, node: int, scalars: Scalars) -> NodeResources:
        """What is free of a node beside GPUs, and of these scalars; none of it below 0."""
        c = self.cluster
        free = c.free_scalars
        return NodeResources(
            max(0, c.free_cpu_milli[node]),
            max(0, c.free_memory_bytes[node]),
            max(0, c.free_ephemeral_bytes[node]),
            tuple((name, max(0, free[name][node])) for name, _ in scalars if name in free),
        )

    def has_free(self, picks: IndexedAllocations) -> bool:
        """Whether so much is free on these devices; each is named once."""
        unheld, free_mib = self.cluster.unheld_milli, self.cluster.free_mib
        return all(milli <= unheld(d) and mib <= free_mib[d] for _, d, milli, mib in picks)

    def allocated_milli(self, project: ProjectName) -> int:
        """Milli-GPU charged to a project: what it held before, and what this cycle gave it."""
        return self.cluster.allocated_milli.get(project, 0)

    def take(
        self,
        node: int,
        pod: Footprint,
        picks: IndexedAllocations,
        project: ProjectName,
        charge_milli: int | None = None,
    ) -> None:
        """Put one pod on a node; its project is charged ``charge_milli``, or what it picks."""
        self._add(node, pod, picks, project, -1, charge_milli)
        self._log.append((node, pod, picks, project, -1, charge_milli))

    def release(
        self,
        node: int,
        pod: Footprint,
        picks: IndexedAllocations,
        project: ProjectName,
        charge_milli: int | None = None,
    ) -> None:
        """Take one pod off a node that was there before; devices that are barred stay so."""
        picks = self._not_barred(picks)
        self._add(node, pod, picks, project, 1, charge_milli)
        self._log.append((node, pod, picks, project, 1, charge_milli))

    def block(self, node: int, picks: IndexedAllocations) -> None:
        """Take devices of a node for nobody, without a pod slot; to be rolled back."""
        self.take(node, NOTHING, picks, _NOBODY, 0)
        self.release(node, NOTHING, (), _NOBODY, 0)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since ``mark``."""
        while len(self._log) > mark:
            node, pod, picks, project, sign, charge = self._log.pop()
            self._add(node, pod, picks, project, -sign, charge)

    def _add(
        self,
        node: int,
        pod: Footprint,
        picks: IndexedAllocations,
        project: ProjectName,
        sign: int,
        charge: int | None = None,
    ) -> None:
        cluster = self.cluster
        free = 0
        for _, device, milli, mib in picks:
            free += cluster.free_device(device, sign * milli, sign * mib)
        self.node_free_milli[node] += free
        cluster.free_pods[node] += sign
        cluster.free_cpu_milli[node] += sign * pod.cpu_milli
        cluster.free_memory_bytes[node] += sign * pod.memory_bytes
        cluster.free_ephemeral_bytes[node] += sign * pod.ephemeral_bytes
        for name, amount in pod.scalars:
            if name in cluster.free_scalars:
                cluster.free_scalars[name][node] += sign * amount
        if self.watcher is not None:
            self.watcher(project, picks, charge, -sign)
        if charge is None:
            charge = 0
            for pick in picks:
                charge += pick[2] or self.charge_milli(pick)
        held = cluster.allocated_milli
        held[project] = held.get(project, 0) - sign * charge
        self.changed.append(node)


_STRETCH = 256  # compared at once


def differences(one: Sequence[int], other: Sequence[int]) -> Iterator[int]:
    """Positions at which two sequences of the same length differ; quick where they are equal."""
    for begin in range(0, len(one), _STRETCH):
        stretch, theirs = one[begin : begin + _STRETCH], other[begin : begin + _STRETCH]
        if stretch != theirs:
            for i, (a, b) in enumerate(zip(stretch, theirs, strict=True), begin):
                if a != b:
                    yield i
