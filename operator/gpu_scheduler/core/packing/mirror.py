"""The free resources of a snapshot's nodes as arrays, kept up to date node by node.

Nodes are grouped by kind, so that those with the same devices are scored together. Along alike
devices the free milli are sorted: which device it is does not matter for a score. A node is
*regular* when every device has at least the memory that its free milli promise; on others (a
ledger written by hand) the devices are picked one shape at a time. Called by ``table``.
"""

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Mirror:
    """Free milli per device, and CPU, memory, storage and pod slots per node."""

    def __init__(self, snapshot: Snapshot, alike: list[bool]) -> None:
        self._snapshot = snapshot
        self._alike = alike
        cluster, kinds = snapshot.cluster, np.array(snapshot.kind, dtype=np.int64)
        self.cpu = np.array(cluster.free_cpu_milli, dtype=np.int64)
        self.memory = np.array(cluster.free_memory_bytes, dtype=np.int64)
        self.ephemeral = np.array(cluster.free_ephemeral_bytes, dtype=np.int64)
        self.pods = np.array(cluster.free_pods, dtype=np.int64)
        self.members = [np.flatnonzero(kinds == kind) for kind in range(len(snapshot.kinds))]
        self.regular = np.ones(len(kinds), dtype=np.bool_)
        self._place = np.zeros(len(kinds), dtype=np.int64)  # of a node among its kind
        free = np.array(cluster.free_milli, dtype=np.int64)
        first = np.array(cluster.first[:-1], dtype=np.int64)
        self._free: list[Ints] = []
        for kind, members in enumerate(self.members):
            self._place[members] = np.arange(len(members))
            each = free[first[members][:, None] + np.arange(len(snapshot.kinds[kind]))]
            self._free.append(np.sort(each, axis=1) if alike[kind] else each)
        for node in self._irregular():
            self.regular[node] = False

    def renew(self, node: int) -> None:
        """Take over a node that changed."""
        cluster, kind = self._snapshot.cluster, self._snapshot.kind[node]
        self.cpu[node] = cluster.free_cpu_milli[node]
        self.memory[node] = cluster.free_memory_bytes[node]
        self.ephemeral[node] = cluster.free_ephemeral_bytes[node]
        self.pods[node] = cluster.free_pods[node]
        a, b = cluster.first[node], cluster.first[node + 1]
        free = [milli if milli > 0 else 0 for milli in cluster.free_milli[a:b]]
        regular = True
        for device, milli in enumerate(free, a):
            if cluster.free_mib[device] < milli * cluster.dev_usable_mib[device] // DEVICE_MILLI:
                regular = False
        self.regular[node] = regular
        self._free[kind][self._place[node]] = sorted(free) if self._alike[kind] else free

    def state(self, node: int) -> tuple[int, bytes]:
        """What of a node decides its scores: free CPU and free milli of the devices."""
        kind = self._snapshot.kind[node]
        return int(self.cpu[node]), self._free[kind][self._place[node]].tobytes()

    def of(self, node: int) -> tuple[list[int], int]:
        """Free milli of the devices and free CPU of a node."""
        kind, place = self._snapshot.kind[node], self._place[node]
        return self._free[kind][place].tolist(), int(self.cpu[node])

    def of_many(self, kind: int, nodes: Ints) -> tuple[Ints, Ints]:
        """[nodes, devices] free milli and [nodes] free CPU of nodes of one kind."""
        return self._free[kind][self._place[nodes]], self.cpu[nodes]

    def _irregular(self) -> list[int]:
        cluster = self._snapshot.cluster
        free = np.array(cluster.free_milli, dtype=np.int64)
        usable = np.array(cluster.dev_usable_mib, dtype=np.int64)
        short = np.array(cluster.free_mib, dtype=np.int64) < free * usable // DEVICE_MILLI
        first = np.array(cluster.first)
        nodes = np.searchsorted(first, np.flatnonzero(short), side="right") - 1
        return sorted(set(nodes.tolist()))
