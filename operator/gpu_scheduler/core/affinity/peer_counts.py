"""How many pods of a signature each node has: those there before the plan, and those it puts there.

Pods for which room is only held are among them where others must keep away from them, and not where
others want to be near them: they may yet not come, or come later.
Made when first asked for; what the plan does is noted and can be rolled back. Invariant: a tally is
what counting all pods anew would give. Used by ``peer_masks``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpu_scheduler.core.affinity.peer_index import PodIndex, SelectorIndex
from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.model.peers import AffinityTerm, PodPeers, PodSelector, Selectors
from gpu_scheduler.core.model.snapshot import Snapshot


@dataclass(slots=True, eq=False)
class Tally:
    """Pods of a signature: [nodes] how many; ``version`` grows with every change.

    ``firm``: without those for which room is only held.
    """

    of_node: Ints
    firm: bool = False
    version: int = 0

    def add(self, node: int, amount: int) -> None:
        """So many more on a node."""
        self.of_node[node] += amount
        self.version += 1


class PeerCounts:
    """Pods by node, for the selectors and anti-affinity terms that somebody asked about."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._neighbours = snapshot.cluster.neighbours
        self._log: list[tuple[PodPeers, int, int, bool]] = []  # who, on which node, +1 or -1, held
        self._on: dict[PodPeers, Counter[int]] = {}  # what the log comes to, by node
        self._held: dict[PodPeers, Counter[int]] = {}  # of that: held
        self._placed = PodIndex()
        self._bear: dict[AffinityTerm, list[PodPeers]] = {}
        self._selected: dict[tuple[Selectors, bool, bool], Tally] = {}
        self._index: SelectorIndex[list[Tally]] = SelectorIndex()
        self._of: dict[Selectors, list[Tally]] = {}
        self._bearing: dict[AffinityTerm, Tally] = {}
        self._touched: dict[int, tuple[PodPeers, list[Tally]]] = {}  # where such a pod counts
        self.new_terms: dict[AffinityTerm, None] = {}
        """Terms of anti-affinity that only pods of this plan bear; only grows."""
        self._new: SelectorIndex[list[AffinityTerm]] = SelectorIndex()
        self._same: dict[PodSelector, list[AffinityTerm]] = {}

    def pods(self, selectors: Selectors, *, staying: bool, firm: bool = False) -> Tally | None:
        """Pods that all of these select; None: not known in this cycle.

        Args:
            selectors: each of them selects the pod.
            staying: without those that are ending.
            firm: without those for which room is only held.
        """
        key = selectors, staying, firm
        found = self._selected.get(key)
        if found is None:
            known = self._neighbours.count(selectors, staying=staying)
            if known is None:
                return None
            found = self._selected[key] = self._tally(known, firm=firm)
            for peers in self._placed.matching(selectors):
                held = self._held[peers]
                for node, count in self._on[peers].items():
                    found.add(node, count - held[node] if firm else count)
            self._of.setdefault(selectors, []).append(found)
            self._index.add(selectors, self._of[selectors])
            self._touched.clear()
        return found

    def bearing(self, term: AffinityTerm) -> Tally:
        """Pods that bear this term of required anti-affinity."""
        found = self._bearing.get(term)
        if found is None:
            found = self._bearing[term] = self._tally(self._neighbours.bearers().get(term, {}))
            for peers in self._bear.get(term, ()):
                for node, count in self._on[peers].items():
                    found.add(node, count * _terms_of(peers).count(term))
            self._touched.clear()
        return found

    def new_about(self, peers: PodPeers) -> list[AffinityTerm]:
        """Those of the new terms that select such a pod."""
        binds = self._neighbours.binds
        found = (term for terms in self._new.matching(peers) for term in terms)
        return [term for term in found if binds(term, peers)]

    def add(self, peers: PodPeers, node: int, sign: int = 1, *, held: bool = False) -> None:
        """A pod comes to a node, or (-1) goes; ``held``: it is room for one that does."""
        self._log.append((peers, node, sign, held))
        if peers not in self._on:
            self._meet(peers)
        self._count(peers, node, sign, held)

    def _meet(self, peers: PodPeers) -> None:
        """Pods of a signature appear in this plan for the first time."""
        self._on[peers], self._held[peers] = Counter(), Counter()
        self._placed.add(peers)
        known = self._neighbours.bearers()
        for term in dict.fromkeys(_terms_of(peers)):
            self._bear.setdefault(term, []).append(peers)
            if term not in known and term not in self.new_terms:
                self._note(term)

    def _note(self, term: AffinityTerm) -> None:
        self.new_terms[term] = None
        same = self._same.get(term.pods)
        if same is None:
            same = self._same[term.pods] = []
            self._new.add((term.pods,), same)
        same.append(term)

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since ``mark``."""
        while len(self._log) > mark:
            peers, node, sign, held = self._log.pop()
            self._count(peers, node, -sign, held)

    def _count(self, peers: PodPeers, node: int, sign: int, held: bool) -> None:
        known = self._touched.get(id(peers))
        if known is None:
            known = self._touched[id(peers)] = peers, self._tallies_of(peers)
        self._on[peers][node] += sign
        if held:
            self._held[peers][node] += sign
        for tally in known[1]:
            if not (held and tally.firm):
                tally.add(node, sign)

    def _tallies_of(self, peers: PodPeers) -> list[Tally]:
        found = [tally for tallies in self._index.matching(peers) for tally in tallies]
        terms = _terms_of(peers)
        return found + [self._bearing[term] for term in terms if term in self._bearing]

    def _tally(self, by_name: Mapping[str, int], *, firm: bool = False) -> Tally:
        of_node = np.zeros(len(self._snapshot.node_shape), dtype=np.int64)
        for name, count in by_name.items():
            node = self._snapshot.number_of(name)
            if node is not None:
                of_node[node] += count
        return Tally(of_node, firm)


def _terms_of(peers: PodPeers) -> tuple[AffinityTerm, ...]:
    return peers.rules.bears if peers.rules is not None else ()
