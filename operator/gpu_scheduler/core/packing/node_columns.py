"""The free resources of a snapshot's nodes, ready for scoring one node or many.

Along alike devices the free milli are sorted: which device it is does not matter for a score. A
node is *regular* when every device has at least the memory that its free milli promise; on others
(a ledger written by hand) the devices are picked one pod shape at a time. What one column needs is
at hand at once; the arrays for rows, nodes grouped by kind, catch up when a row is made. Called by
``table``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.resources import Scalars
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI

_NONE: Ints = np.zeros(1, dtype=np.int64)


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
        self.irregular: set[int] = set()
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
        if self.irregular:
            self.irregular.discard(node)
        for milli, mib, usable in zip(
            free, cluster.free_mib[a:b], cluster.dev_usable_mib[a:b], strict=True
        ):
            if mib < milli * usable // DEVICE_MILLI:
                self.irregular.add(node)
        if self._alike[shape]:
            free.sort()
        self._free[node] = tuple(free)

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

    def regular(self) -> Flags:
        """[nodes] Whether nodes are."""
        flags = np.ones(len(self._free), dtype=np.bool_)
        flags[list(self.irregular)] = False
        return flags

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
