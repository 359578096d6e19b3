"""How many pods of a sort each node has: those there before the plan, and those it puts there.

Arrays over the nodes, made when first asked for; what the plan does is noted and can be rolled
back. ``grown`` says when an array changed. Invariant: an array is what counting all pods anew
would give. Used by ``peer_masks``.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.peer_index import SelectorIndex
from gpu_scheduler.core.peers import AffinityTerm, PodPeers, Selectors
from gpu_scheduler.core.snapshot import Snapshot

Ints = npt.NDArray[np.int64]


class PeerCounts:
    """Pods by node, for the selectors and anti-affinity terms that somebody asked about."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._neighbours = snapshot, snapshot.cluster.neighbours
        self._log: list[tuple[PodPeers, int, int]] = []  # who, on which node, +1 or -1
        self._selected: dict[tuple[Selectors, bool], Ints] = {}
        self._index: SelectorIndex[list[Ints]] = SelectorIndex()
        self._of: dict[Selectors, list[Ints]] = {}
        self._bearing: dict[AffinityTerm, Ints] = {}
        self.new_terms: dict[AffinityTerm, None] = {}
        """Terms of anti-affinity that only pods of this plan bear; only grows."""
        self._touched: dict[PodPeers, list[Ints]] = {}  # arrays in which such a pod counts
        self.grown = 0
        """Grows with every change of an array."""

    def pods(self, selectors: Selectors, *, staying: bool) -> Ints | None:
        """[nodes] Pods that all of these select; None: not known in this cycle."""
        key = selectors, staying
        found = self._selected.get(key)
        if found is None:
            known = self._neighbours.count(selectors, staying=staying)
            if known is None:
                return None
            found = self._selected[key] = self._array(known)
            for peers, node, sign in self._log:
                if peers.is_one_of(selectors):
                    found[node] += sign
            self._of.setdefault(selectors, []).append(found)
            self._index.add(selectors, self._of[selectors])
            self._touched.clear()
        return found

    def bearing(self, term: AffinityTerm) -> Ints:
        """[nodes] Pods that bear this term of required anti-affinity."""
        found = self._bearing.get(term)
        if found is None:
            found = self._bearing[term] = self._array(self._neighbours.bearers().get(term, {}))
            for peers, node, sign in self._log:
                found[node] += sign * (peers.rules.bears.count(term) if peers.rules else 0)
            self._touched.clear()
        return found

    def add(self, peers: PodPeers, node: int, sign: int = 1) -> None:
        """A pod comes to a node, or (-1) goes."""
        self._log.append((peers, node, sign))
        self._count(peers, node, sign)
        if peers.rules is not None and sign > 0:
            known = self._neighbours.bearers()
            new = (term for term in peers.rules.bears if term not in known)
            self.new_terms |= dict.fromkeys(new)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since ``mark``."""
        while len(self._log) > mark:
            peers, node, sign = self._log.pop()
            self._count(peers, node, -sign)

    def _count(self, peers: PodPeers, node: int, sign: int) -> None:
        arrays = self._touched.get(peers)
        if arrays is None:
            arrays = self._touched[peers] = self._arrays_of(peers)
        for array in arrays:
            array[node] += sign
        self.grown += bool(arrays)

    def _arrays_of(self, peers: PodPeers) -> list[Ints]:
        found = [array for arrays in self._index.matching(peers) for array in arrays]
        terms = peers.rules.bears if peers.rules else ()
        return found + [self._bearing[term] for term in terms if term in self._bearing]

    def _array(self, by_name: Mapping[str, int]) -> Ints:
        array = np.zeros(len(self._snapshot.kind), dtype=np.int64)
        for name, count in by_name.items():
            node = self._snapshot.number_of(name)
            if node is not None:
                array[node] += count
        return array
