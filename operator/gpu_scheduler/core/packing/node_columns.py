"""The free resources of a snapshot's nodes, ready for scoring one node or many.

Along alike devices the free milli are sorted: which device it is does not matter for a score. A
node is *regular* for a row when they say whether it fits. They do for one fraction; a request in
MiB may find more memory on a device than its free milli promise, and several requests together may
take less of a device than their sum. There devices are picked by ``Chooser``. What one column needs
is at hand at once; the arrays for rows, nodes grouped by kind, catch up when a row is made. Called
by ``table``.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.resources import Scalars
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI

Exact = tuple[tuple[int, int], ...]  # of each device, milli that no fraction holds, and MiB

_NONE: Ints = np.zeros(1, dtype=np.int64)


class MemoryRequests(NamedTuple):
    """What of memory rows look at, for any of them.

    Attributes:
        sizes: MiB of lone requests, ascending.
        several: most requests of one row that has more than one.
        in_mib: of these, some ask in MiB.
    """

    sizes: tuple[int, ...] = ()
    several: int = 0
    in_mib: bool = False

    @staticmethod
    def of(pod_shapes: Iterable[tuple[DeviceRequest, ...]]) -> "MemoryRequests":
        """What rows with these requests look at."""
        sizes, several, in_mib = set[int](), 0, False
        for requests in pod_shapes:
            if len(requests) > 1:
                several = max(several, len(requests))
                in_mib = in_mib or any(r.mib for r in requests)
            else:
                sizes.update(r.mib for r in requests if r.mib)
        return MemoryRequests(tuple(sorted(sizes)), several, in_mib)


class FreeColumns:
    """Free milli per device, and what is free beside them per node; what is below 0 is as 0."""

    def __init__(self, snapshot: Snapshot, alike: list[bool]) -> None:
        self._snapshot = snapshot
        self._alike = alike
        nodes, shapes = (
            range(len(snapshot.node_shape)),
            np.array(snapshot.node_shape, dtype=np.int64),
        )
        self.members = [
            np.flatnonzero(shapes == shape) for shape in range(len(snapshot.node_shapes))
        ]
        self.irregular: set[int] = set()  # for any row
        self._looked = MemoryRequests()
        self._place = np.zeros(len(nodes), dtype=np.int64)  # of a node among its kind
        for members in self.members:
            self._place[members] = np.arange(len(members))
        self._free: list[tuple[int, ...]] = [()] * len(nodes)
        for node in nodes:
            self.renew(node)
        self._stale: set[int] = set()
        self._rows: list[Ints] = []
        for shape, members in enumerate(self.members):
            each = [self._free[node] for node in members.tolist()]
            size = len(members), len(snapshot.node_shapes[shape])
            self._rows.append(np.array(each, dtype=np.int64).reshape(size))
        cluster = snapshot.cluster
        self._cpu = _at_least_0(cluster.free_cpu_milli)
        self._memory = _at_least_0(cluster.free_memory_bytes)
        self._ephemeral = _at_least_0(cluster.free_ephemeral_bytes)
        self._pods = np.array(cluster.free_pods, dtype=np.int64)
        self._scalars = {
            name: np.array(free, dtype=np.int64) for name, free in cluster.free_scalars.items()
        }

    def renew(self, node: int) -> None:
        """Take over a node that changed."""
        cluster, shape = self._snapshot.cluster, self._snapshot.node_shape[node]
        a, b = cluster.first[node], cluster.first[node + 1]
        free = cluster.free_milli[a:b]
        if free and min(free) < 0:
            free = [max(0, milli) for milli in free]
        looked = self._looked
        if looked.sizes or looked.in_mib or cluster.fractions:
            if self._is_irregular(a, b):
                self.irregular.add(node)
            else:
                self.irregular.discard(node)
        elif self.irregular:
            self.irregular.discard(node)
        if self._alike[shape]:
            free.sort()
        self._free[node] = tuple(free)

    def look_at(self, looked: MemoryRequests) -> None:
        """Take over what the rows look at by now."""
        if looked != self._looked:
            self._looked = looked
            first = self._snapshot.cluster.first
            self.irregular = {
                node
                for node in self._nodes_with_memory()
                if self._is_irregular(first[node], first[node + 1])
            }

    def is_irregular(self, node: int, requests: tuple[DeviceRequest, ...]) -> bool:
        """Whether free milli do not say what a row with these requests fits there."""
        if node not in self.irregular:
            return False
        first = self._snapshot.cluster.first
        return self._is_irregular(first[node], first[node + 1], MemoryRequests.of([requests]))

    def exact(self, node: int) -> Exact:
        """What decides the scores of an irregular node beside ``of``; nothing of others."""
        if node not in self.irregular:
            return ()
        cluster, alike = self._snapshot.cluster, self._alike[self._snapshot.node_shape[node]]
        devices = range(cluster.first[node], cluster.first[node + 1])
        each = [(cluster.unheld_milli(d), cluster.free_mib[d]) for d in devices]
        return tuple(sorted(each) if alike else each)

    def _nodes_with_memory(self) -> list[int]:
        """Nodes where a device has memory beyond its free milli, or milli beyond its memory."""
        cluster = self._snapshot.cluster
        milli = np.array(cluster.free_milli, dtype=np.int64)
        more = np.array(cluster.free_mib, dtype=np.int64) * DEVICE_MILLI
        found = more > milli * np.array(cluster.dev_usable_mib, dtype=np.int64)
        found[list(cluster.fractions)] = True
        nodes = np.searchsorted(cluster.first, np.flatnonzero(found), side="right") - 1
        return list(dict.fromkeys(nodes.tolist()))

    def _is_irregular(self, first: int, last: int, looked: MemoryRequests | None = None) -> bool:
        cluster, (sizes, several, in_mib) = self._snapshot.cluster, looked or self._looked
        if several and not cluster.fractions.keys().isdisjoint(range(first, last)):
            for device in range(first, last):
                if cluster.milli_together(device, several) > cluster.free_milli[device]:
                    return True
        if not sizes and not in_mib:
            return False
        for milli, mib, usable in zip(
            cluster.free_milli[first:last],
            cluster.free_mib[first:last],
            cluster.dev_usable_mib[first:last],
            strict=True,
        ):
            if mib * DEVICE_MILLI > milli * usable:
                at = bisect_right(sizes, mib)
                if in_mib or (at and sizes[at - 1] * DEVICE_MILLI > milli * usable):
                    return True
        return False

    def changed(self, node: int) -> None:
        """Take over a node that changed, and remember that the arrays do not know it yet."""
        self.renew(node)
        self._stale.add(node)

    def of(self, node: int) -> tuple[int, tuple[int, ...]]:
        """Free CPU and free milli of the devices: what of a node decides its scores."""
        return max(0, self._snapshot.cluster.free_cpu_milli[node]), self._free[node]

    def of_many(self, shape: int, nodes: Ints) -> tuple[Ints, Ints]:
        """[nodes, devices] free milli and [nodes] free CPU of nodes of one kind."""
        self._catch_up()
        return self._rows[shape][self._place[nodes]], self._cpu[nodes]

    def room(self, memory_bytes: int, ephemeral_bytes: int, scalars: Scalars) -> Flags:
        """[nodes] Whether so much memory and storage, these scalars and a pod slot are free."""
        self._catch_up()
        found: Flags = (self._memory >= memory_bytes) & (self._ephemeral >= ephemeral_bytes)
        found &= self._pods > 0
        for name, amount in scalars:
            found &= self._scalars.get(name, _NONE) >= amount
        return found

    def _catch_up(self) -> None:
        cluster, shapes = self._snapshot.cluster, self._snapshot.node_shape
        for node in self._stale:
            self._rows[shapes[node]][self._place[node]] = self._free[node]
            self._cpu[node] = max(0, cluster.free_cpu_milli[node])
            self._memory[node] = max(0, cluster.free_memory_bytes[node])
            self._ephemeral[node] = max(0, cluster.free_ephemeral_bytes[node])
            self._pods[node] = cluster.free_pods[node]
            for name, free in cluster.free_scalars.items():
                self._scalars[name][node] = free[node]
        self._stale.clear()


def _at_least_0(amounts: list[int]) -> Ints:
    found: Ints = np.maximum(np.array(amounts, dtype=np.int64), 0)
    return found
