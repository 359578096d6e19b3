"""How many pods of a signature each node has: those there before the plan, and those it puts there.

Pods for which room is only held are among them where others must keep away from them, and not where
others want to be near them: they may yet not come, or come later.
Made when first asked for; what the plan does is noted and can be rolled back. Invariant: a tally is
what counting all pods anew would give. Used by ``masks``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpu_scheduler.core.affinity.selector_index import PodIndex, SelectorIndex
from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityTerm, PodSelector, Selectors
from gpu_scheduler.core.model.arrays import Ints
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


class AffinityCounts:
    """Pods by node, for the selectors and anti-affinity terms that somebody asked about."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._placed_pods = snapshot.cluster.placed_pods
        self._log: list[
            tuple[AffinityInfo, int, int, bool]
        ] = []  # who, on which node, +1 or -1, held
        self._on: dict[AffinityInfo, Counter[int]] = {}  # what the log comes to, by node
        self._held: dict[AffinityInfo, Counter[int]] = {}  # of that: held
        self._placed = PodIndex()
        self._note_anti_affinity: dict[AffinityTerm, list[AffinityInfo]] = {}
        self._selected: dict[tuple[Selectors, bool, bool], Tally] = {}
        self._index: SelectorIndex[list[Tally]] = SelectorIndex()
        self._of: dict[Selectors, list[Tally]] = {}
        self._anti_affinity_tallies: dict[AffinityTerm, Tally] = {}
        self._touched: dict[int, tuple[AffinityInfo, list[Tally]]] = {}  # where such a pod counts
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
            known = self._placed_pods.count(selectors, staying=staying)
            if known is None:
                return None
            found = self._selected[key] = self._tally(known, firm=firm)
            for affinity in self._placed.matching(selectors):
                held = self._held[affinity]
                for node, count in self._on[affinity].items():
                    found.add(node, count - held[node] if firm else count)
            self._of.setdefault(selectors, []).append(found)
            self._index.add(selectors, self._of[selectors])
            self._touched.clear()
        return found

    def anti_affinity_tally(self, term: AffinityTerm) -> Tally:
        """Pods that bear this term of required anti-affinity."""
        found = self._anti_affinity_tallies.get(term)
        if found is None:
            found = self._anti_affinity_tallies[term] = self._tally(
                self._placed_pods.anti_affinity_pods().get(term, {})
            )
            for affinity in self._note_anti_affinity.get(term, ()):
                for node, count in self._on[affinity].items():
                    found.add(node, count * _terms_of(affinity).count(term))
            self._touched.clear()
        return found

    def new_about(self, affinity: AffinityInfo) -> list[AffinityTerm]:
        """Those of the new terms that select such a pod."""
        binds = self._placed_pods.binds
        found = (term for terms in self._new.matching(affinity) for term in terms)
        return [term for term in found if binds(term, affinity)]

    def add(self, affinity: AffinityInfo, node: int, sign: int = 1, *, held: bool = False) -> None:
        """A pod comes to a node, or (-1) goes; ``held``: it is room for one that does."""
        self._log.append((affinity, node, sign, held))
        if affinity not in self._on:
            self._meet(affinity)
        self._count(affinity, node, sign, held)

    def _meet(self, affinity: AffinityInfo) -> None:
        """Pods of a signature appear in this plan for the first time."""
        self._on[affinity], self._held[affinity] = Counter(), Counter()
        self._placed.add(affinity)
        known = self._placed_pods.anti_affinity_pods()
        for term in dict.fromkeys(_terms_of(affinity)):
            self._note_anti_affinity.setdefault(term, []).append(affinity)
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
            affinity, node, sign, held = self._log.pop()
            self._count(affinity, node, -sign, held)

    def _count(self, affinity: AffinityInfo, node: int, sign: int, held: bool) -> None:
        known = self._touched.get(id(affinity))
        if known is None:
            known = self._touched[id(affinity)] = affinity, self._tallies_of(affinity)
        self._on[affinity][node] += sign
        if held:
            self._held[affinity][node] += sign
        for tally in known[1]:
            if not (held and tally.firm):
                tally.add(node, sign)

    def _tallies_of(self, affinity: AffinityInfo) -> list[Tally]:
        found = [tally for tallies in self._index.matching(affinity) for tally in tallies]
        terms = _terms_of(affinity)
        return found + [
            self._anti_affinity_tallies[term]
            for term in terms
            if term in self._anti_affinity_tallies
        ]

    def _tally(self, by_name: Mapping[str, int], *, firm: bool = False) -> Tally:
        of_node = np.zeros(len(self._snapshot.node_shape), dtype=np.int64)
        for name, count in by_name.items():
            node = self._snapshot.number_of(name)
            if node is not None:
                of_node[node] += count
        return Tally(of_node, firm)


def _terms_of(affinity: AffinityInfo) -> tuple[AffinityTerm, ...]:
    return affinity.rules.anti_affinity_terms if affinity.rules is not None else ()
