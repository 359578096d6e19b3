"""Which pods the rules about other pods tell apart: all others are alike, whatever their labels.

A pod without rules that no anti-affinity in sight selects may go wherever its like may, and there
are thousands of those, each with its job's name as a label. Kept from cycle to cycle by ``queues``.
"""

import weakref
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from gpu_scheduler.core.affinity.selector_index import SelectorIndex
from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityTerm
from gpu_scheduler.core.model.request import WaitingJob

MOST_KNOWN = 20_000  # pods found without asking the rules


class AffinitySignatures:
    """Pods under some terms of anti-affinity, of pods that are there or may come."""

    def __init__(self, terms: AbstractSet[AffinityTerm] = frozenset()) -> None:
        self.terms = terms
        self._selecting: SelectorIndex[AffinityTerm] = SelectorIndex()
        for term in terms:
            self._selecting.add((term.pods,), term)
        # By id, which is another's once these are gone: whether rules tell them apart.
        self._known: dict[int, tuple[weakref.ref[AffinityInfo], bool]] = {}

    def of(self, affinity: AffinityInfo | None) -> AffinityInfo | None:
        """The same for all pods that no rule tells apart; None: no rule concerns them."""
        if affinity is None or (not self.terms and affinity.rules is None):
            return None
        known = self._known.get(id(affinity))
        if known is None or known[0]() is not affinity:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            selected = any(True for _ in self._selecting.matching(affinity))
            told = selected or affinity.rules is not None
            known = self._known[id(affinity)] = weakref.ref(affinity), told
        return affinity if known[1] else None


def terms_of(jobs: Iterable[WaitingJob]) -> set[AffinityTerm]:
    """The anti-affinity that pods would bear which wait."""
    ruled = {id(pod.affinity): pod.affinity for job in jobs if job.ruled for pod in job.pods}
    rules = (affinity.rules for affinity in ruled.values() if affinity is not None)
    return {term for each in rules if each is not None for term in each.anti_affinity_terms}
