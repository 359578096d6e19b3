"""The best node for a pod among those that may take it.

The score table with nodes kept out of it: those that others wait for, those that a job avoids,
those where a pod would be charged more than its project has left.
"""

from collections.abc import Callable, Iterator

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.table import ScoreTable

NOBODY: frozenset[str] = frozenset()


class Candidates:
    """The candidates of one cycle."""

    __slots__ = ("_snapshot", "_table")

    def __init__(self, snapshot: Snapshot, table: ScoreTable) -> None:
        self._snapshot = snapshot
        self._table = table

    def best(
        self,
        pod_request: PodRequest,
        barred: Flags | None = None,
        avoid: frozenset[str] = NOBODY,
        most_milli: int | None = None,
        may: Callable[[NodeAllocation], bool] | None = None,
    ) -> tuple[int, NodeAllocation] | None:
        """The best node and its devices, or None when no candidate holds the pod now.

        Args:
            pod_request: what the pod needs.
            barred: [nodes] that are no candidates.
            avoid: names of nodes to pass over.
            most_milli: pass over nodes where the pod would be charged more; None = no matter.
            may: pass over nodes where the pod would get devices that it may not have.
        """
        if avoid:
            barred = self._without(barred, avoid)
        found = self._table.best(pod_request, barred)
        if most_milli is None and may is None:
            return found

        def acceptable(choice: NodeAllocation) -> bool:
            if most_milli is not None and choice.milli > most_milli:
                return False
            return may is None or may(choice)

        left_out = None
        while found is not None and not acceptable(found[1]):
            for choice in self._of_one_type(pod_request, found[0]):
                if acceptable(choice):
                    return found[0], choice
            if left_out is None:
                barred = left_out = self._without(barred, NOBODY)
            left_out[self._charged_alike(found[0])] = True
            found = self._table.best(pod_request, barred)
        return found

    def _of_one_type(self, pod_request: PodRequest, node: int) -> Iterator[NodeAllocation]:
        """What a pod would get of each type of device alone, on a node with several types."""
        snapshot, cluster = self._snapshot, self._snapshot.cluster
        devices, base = snapshot.node_shapes[snapshot.node_shape[node]], cluster.first[node]
        types = dict.fromkeys(devices)
        for device_type in types if len(types) > 1 else ():
            others = [base + offset for offset, each in enumerate(devices) if each != device_type]
            mark = snapshot.mark()
            snapshot.block(node, snapshot.free_on_devices(others))
            choice = pod_request.chooser.choose(node)
            snapshot.rollback(mark)
            if choice is not None:
                yield choice

    def _without(self, barred: Flags | None, avoid: frozenset[str]) -> Flags:
        snapshot = self._snapshot
        if barred is not None:
            found = barred.copy()
        else:
            found = np.zeros(len(snapshot.node_shape), dtype=np.bool_)
        found[snapshot.numbers_of(avoid)] = True
        return found

    def _charged_alike(self, node: int) -> "Ints | int":
        """The nodes where the pod is charged as much as on this one, as far as that is sure."""
        snapshot = self._snapshot
        shape = snapshot.node_shape[node]
        if len(set(snapshot.node_shapes[shape])) > 1:
            return node
        return np.flatnonzero(np.array(snapshot.node_shape) == shape)
