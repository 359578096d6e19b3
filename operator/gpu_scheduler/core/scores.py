"""The nodes that may take pods of one shape now, best first.

A view of the score table for one demand, with nodes kept out of it: those that others wait for,
those that a job avoids, those where a pod would be charged more than its project has left.
Called by ``plan`` per pod and by the reasons.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.packing.table import ScoreTable
from gpu_scheduler.core.snapshot import Snapshot

Flags = npt.NDArray[np.bool_]

NOBODY: frozenset[str] = frozenset()


def _acceptable(
    choice: Choice, most_milli: int | None, may: Callable[[Choice], bool] | None
) -> bool:
    if most_milli is not None and sum(pick[2] for pick in choice.picks) > most_milli:
        return False
    return may is None or may(choice)


class Candidates:
    """The candidates of one demand; ``barred`` flags nodes that are none."""

    __slots__ = ("_barred", "_demand", "_snapshot", "_table")

    def __init__(
        self, demand: Demand, snapshot: Snapshot, table: ScoreTable, barred: Flags | None = None
    ) -> None:
        self._demand = demand
        self._snapshot = snapshot
        self._table = table
        self._barred = barred

    def best(
        self,
        avoid: frozenset[str] = NOBODY,
        most_milli: int | None = None,
        may: Callable[[Choice], bool] | None = None,
        forbidden: Flags | None = None,
    ) -> tuple[int, Choice] | None:
        """The best node and its devices, or None when no candidate holds the pod now.

        Args:
            avoid: names of nodes to pass over.
            most_milli: pass over nodes where the pod would be charged more; None = no matter.
            may: pass over nodes where the pod would get devices that it may not have.
            forbidden: [nodes] where it may not go because of other pods.
        """
        if not avoid and most_milli is None and may is None and forbidden is None:
            return self._table.best(self._demand, self._barred)
        barred = self._without(avoid)
        if forbidden is not None:
            barred |= forbidden
        found = self._table.best(self._demand, barred)
        while found is not None and not _acceptable(found[1], most_milli, may):
            for choice in self._of_one_sort(found[0]):
                if _acceptable(choice, most_milli, may):
                    return found[0], choice
            barred[self._charged_alike(found[0])] = True
            found = self._table.best(self._demand, barred)
        return found

    def _of_one_sort(self, node: int) -> Iterator[Choice]:
        """What a pod would get of each sort of devices alone, on a node with several sorts."""
        snapshot, cluster = self._snapshot, self._snapshot.cluster
        devices, base = snapshot.kinds[snapshot.kind[node]], cluster.first[node]
        sorts = dict.fromkeys(devices)
        for sort in sorts if len(sorts) > 1 else ():
            others = [base + offset for offset, each in enumerate(devices) if each != sort]
            mark = snapshot.mark()
            snapshot.block(
                node, tuple((0, d, cluster.free_milli[d], cluster.free_mib[d]) for d in others)
            )
            choice = self._demand.chooser.choose(node)
            snapshot.rollback(mark)
            if choice is not None:
                yield choice

    def _without(self, avoid: frozenset[str]) -> Flags:
        snapshot = self._snapshot
        if self._barred is not None:
            barred = self._barred.copy()
        else:
            barred = np.zeros(len(snapshot.kind), dtype=np.bool_)
        for name in avoid:
            node = snapshot.number_of(name)
            if node is not None:
                barred[node] = True
        return barred

    def _charged_alike(self, node: int) -> "npt.NDArray[np.int64] | int":
        """The nodes where the pod is charged as much as on this one, as far as that is sure."""
        snapshot = self._snapshot
        kind = snapshot.kind[node]
        if len(set(snapshot.kinds[kind])) > 1:
            return node
        return np.flatnonzero(np.array(snapshot.kind) == kind)
