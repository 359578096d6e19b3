"""A table of candidate nodes per shape, so that a node is scored again only when it changed.

The score is best fit: (memory of the devices, for requests in MiB; least left on the devices;
least free GPU left on the node; fixed order of nodes), packed into one integer and kept in a heap.
Entries of changed nodes go stale in place and are dropped when they surface. Invariant: after
``best`` the entry at the top is what a full scan would choose. Called by ``plan`` per pod.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.snapshot import Snapshot

FOREIGN = -2  # not a candidate of this table
FULL = -1  # a candidate that does not hold the pod now
BITS = 24  # milli-GPU of one node need fewer

NOBODY: frozenset[str] = frozenset()


class Candidates:
    """The nodes that may take pods of one shape, best first."""

    __slots__ = ("_current", "_demand", "_heap", "_seen", "_size", "_snapshot")

    def __init__(self, demand: Demand, snapshot: Snapshot, nodes: Iterable[int]) -> None:
        self._demand = demand
        self._snapshot = snapshot
        self._size = len(snapshot.kind)
        self._seen = len(snapshot.changed)
        self._current = [FOREIGN] * self._size
        self._heap = []
        for node in nodes:
            key = self._current[node] = self._score(node)
            if key >= 0:
                self._heap.append(key)
        heapify(self._heap)

    def best(
        self, avoid: frozenset[str] = NOBODY, most_milli: int | None = None
    ) -> tuple[int, Choice] | None:
        """The best node and its devices, or None when no candidate holds the pod now.

        Args:
            avoid: names of nodes to pass over.
            most_milli: pass over nodes where the pod would be charged more; None = no matter.
        """
        self._catch_up()
        if not avoid and most_milli is None:
            return self._top()
        nodes = self._snapshot.cluster.nodes

        def allowed(node: int, choice: Choice) -> bool:
            if nodes[node].name in avoid:
                return False
            return most_milli is None or sum(p[2] for p in choice.picks) <= most_milli

        return self._first(allowed)

    def _top(self) -> tuple[int, Choice] | None:
        heap, current = self._heap, self._current
        while heap:
            node = heap[0] % self._size
            if current[node] == heap[0]:
                choice = self._demand.chooser.choose(node)
                assert choice is not None  # the score is fresh
                return node, choice
            heappop(heap)
        return None

    def _first(self, allowed: Callable[[int, Choice], bool]) -> tuple[int, Choice] | None:
        passed = []
        found = self._top()
        while found is not None and not allowed(*found):
            passed.append(heappop(self._heap))
            found = self._top()
        for key in passed:
            heappush(self._heap, key)
        return found

    def _catch_up(self) -> None:
        changed = self._snapshot.changed
        if self._seen == len(changed):
            return
        current = self._current
        recent = changed[self._seen :]
        self._seen = len(changed)
        for node in recent if len(recent) == 1 else set(recent):
            if current[node] == FOREIGN:
                continue
            key = self._score(node)
            if key != current[node]:
                current[node] = key
                if key >= 0:
                    heappush(self._heap, key)

    def _score(self, node: int) -> int:
        if not self._snapshot.has_room(node, self._demand.shape):
            return FULL
        choice = self._demand.chooser.choose(node)
        if choice is None:
            return FULL
        left = self._snapshot.node_free_milli[node] - sum(p[2] for p in choice.picks)
        return (
            (((choice.size_mib << BITS) | choice.left_milli) << BITS) | left
        ) * self._size + node
