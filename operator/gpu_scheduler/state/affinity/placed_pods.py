"""The pods on nodes, ours and others', counted for the rules that somebody has about them.

Pods of a signature (``AffinityInfo``) are counted together, by node. A selector is looked up among
the signatures when it is first asked about, and its count is then kept up to date; looking up much
at once is spread over cycles. Invariant: a count is what counting all pods anew would give.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpu_scheduler.core.affinity.selector_index import SelectorIndex
from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityTerm, PodSelector, Selectors
from gpu_scheduler.core.model.request import PodUID, ProjectName

SIGNATURES_PER_CYCLE = 100_000  # compared with new selectors, a sixth of a second
MOST_TALLIES = 2_000  # kept though nobody asks


class Seat(NamedTuple):
    """Who a pod on a node is."""

    affinity: AffinityInfo
    node: str
    ending: bool


@dataclass(frozen=True, slots=True)
class SeatedPods:
    """What a store answers from, at a moment.

    Attributes:
        seats: the pods on nodes.
        owners: projects of namespaces.
        known: selectors whose pods need not be looked up any more.
    """

    seats: Mapping[PodUID, Seat]
    owners: Mapping[str, ProjectName]
    known: tuple[Selectors, ...]


@dataclass(slots=True, eq=False)
class _Tally:
    """Pods that selectors select, by node: all, and those that are not ending."""

    selectors: Selectors
    pods: dict[str, int] = field(default_factory=dict)
    staying: dict[str, int] = field(default_factory=dict)
    asked: bool = True

    def add(self, node: str, pods: int, staying: int) -> None:
        _add(self.pods, node, pods)
        _add(self.staying, node, staying)


@dataclass(slots=True, eq=False)
class _Signature:
    """Pods alike, by node, and the tallies in which they count."""

    tallies: list[_Tally]
    pods: dict[str, int] = field(default_factory=dict)
    staying: dict[str, int] = field(default_factory=dict)


class PlacedPodStore:
    """See ``core.model.placed_pods.PlacedPods``. What returns a bool says whether anybody asks."""

    def __init__(self, owner: Callable[[str], ProjectName | None]) -> None:
        """Start empty; ``owner``: the project of a namespace."""
        self._owner = owner
        self._seats: dict[PodUID, Seat] = {}
        self._signatures: dict[AffinityInfo, _Signature] = {}
        self._of_namespace: dict[str, dict[AffinityInfo, None]] = {}
        self._tallies: dict[Selectors, _Tally] = {}
        self._index: SelectorIndex[_Tally] = SelectorIndex()
        self._anti_affinity_pods: dict[AffinityTerm, dict[str, int]] = {}
        self._shunned: SelectorIndex[dict[AffinityTerm, None]] = SelectorIndex()
        self._shunning: dict[PodSelector, dict[AffinityTerm, None]] = {}
        self._left = SIGNATURES_PER_CYCLE

    @classmethod
    def of_seated(cls, seated: SeatedPods) -> "PlacedPodStore":
        """One that answers as the store did."""
        found = cls(seated.owners.get)
        for selectors in seated.known:
            found._look_up(selectors)
        for uid, (affinity, node, ending) in seated.seats.items():
            found.put(uid, affinity, node, ending=ending)
        return found

    def seated(self, asking: Collection[AffinityInfo]) -> SeatedPods:
        """What it answers from now; ``asking``: the pods about which it will be asked."""
        rules = [who.rules for who in asking if who.rules is not None]
        terms = (
            *self._anti_affinity_pods,
            *(t for each in rules for t in each.anti_affinity_terms),
        )
        of_terms = (term.owner_namespace for term in terms)
        namespaces = {*self._of_namespace, *of_terms, *(who.namespace for who in asking)}
        found = ((each, self._owner(each)) for each in namespaces)
        owners = {name: owner for name, owner in found if owner is not None}
        return SeatedPods(self._seats.copy(), owners, tuple(self._tallies))

    def __len__(self) -> int:
        """Pods on nodes."""
        return len(self._seats)

    def begin(self) -> None:
        """A new cycle: as much may be looked up as before the first."""
        self._left = SIGNATURES_PER_CYCLE
        if len(self._tallies) > MOST_TALLIES:
            for tally in [t for t in self._tallies.values() if not t.asked]:
                self._forget(tally)
        for tally in self._tallies.values():
            tally.asked = False

    def put(self, uid: PodUID, affinity: AffinityInfo, node: str, *, ending: bool) -> bool:
        """A pod is on a node."""
        seat = Seat(affinity, node, ending)
        old = self._seats.get(uid)
        if old == seat:
            return False
        asked = old is not None and self._count(old, -1)
        self._seats[uid] = seat
        return self._count(seat, +1) or asked

    def drop(self, uid: PodUID) -> bool:
        """A pod is on no node, or has ended."""
        seat = self._seats.pop(uid, None)
        return seat is not None and self._count(seat, -1)

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int] | None:
        """See ``core.model.placed_pods``."""
        tally = self._tallies.get(selectors) or self._look_up(selectors)
        if tally is None:
            return None
        tally.asked = True
        return tally.staying if staying else tally.pods

    def anti_affinity_pods(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """See ``core.model.placed_pods``."""
        return self._anti_affinity_pods

    def about(self, affinity: AffinityInfo) -> Iterable[AffinityTerm]:
        """See ``core.model.placed_pods``."""
        found = (term for terms in self._shunned.matching(affinity) for term in terms)
        return [term for term in found if self.binds(term, affinity)]

    def binds(self, term: AffinityTerm, affinity: AffinityInfo) -> bool:
        """See ``PlacedPods``: no project closes nodes to another one's pods (ADR 0037)."""
        if term.owner_namespace == affinity.namespace:
            return True
        owner = self._owner(affinity.namespace)
        return owner is not None and owner == self._owner(term.owner_namespace)

    def of(self, pod: PodUID) -> AffinityInfo | None:
        """See ``core.model.placed_pods``."""
        seat = self._seats.get(pod)
        return seat.affinity if seat is not None else None

    def _count(self, seat: Seat, sign: int) -> bool:
        affinity, node, staying = seat.affinity, seat.node, 0 if seat.ending else sign
        signature = self._signatures.get(affinity)
        if signature is None:
            signature = self._signatures[affinity] = _Signature(
                list(self._index.matching(affinity))
            )
            self._of_namespace.setdefault(affinity.namespace, {})[affinity] = None
        _add(signature.pods, node, sign)
        _add(signature.staying, node, staying)
        for tally in signature.tallies:
            tally.add(node, sign, staying)
        asked = bool(signature.tallies)
        if affinity.rules is not None:
            for term in affinity.rules.anti_affinity_terms:
                self._note_anti_affinity(term, node, sign)
                asked = True
        if not signature.pods:
            del self._signatures[affinity]
            there = self._of_namespace[affinity.namespace]
            del there[affinity]
            if not there:
                del self._of_namespace[affinity.namespace]
        return asked

    def _note_anti_affinity(self, term: AffinityTerm, node: str, sign: int) -> None:
        pods = self._anti_affinity_pods.get(term)
        if pods is None:
            pods = self._anti_affinity_pods[term] = {}
            same = self._shunning.setdefault(term.pods, {})
            same[term] = None
            self._shunned.add((term.pods,), same)
        _add(pods, node, sign)
        if not pods:
            del self._anti_affinity_pods[term]
            same = self._shunning[term.pods]
            del same[term]
            if not same:
                del self._shunning[term.pods]
                self._shunned.discard((term.pods,))

    def _look_up(self, selectors: Selectors) -> _Tally | None:
        """Count the pods for a new question; None when too much was asked in this cycle."""
        namespaces = _namespaces(selectors)
        if namespaces is None:
            signatures: list[Iterable[AffinityInfo]] = [self._signatures]
            cost = len(self._signatures)
        else:
            signatures = [self._of_namespace.get(each, ()) for each in namespaces]
            cost = sum(len(self._of_namespace.get(each, ())) for each in namespaces)
        if cost > self._left < SIGNATURES_PER_CYCLE:
            return None
        self._left -= cost
        tally = self._tallies[selectors] = _Tally(selectors)
        self._index.add(selectors, tally)
        for each in signatures:
            for affinity in each:
                if affinity.is_one_of(selectors):
                    signature = self._signatures[affinity]
                    signature.tallies.append(tally)
                    for node, pods in signature.pods.items():
                        tally.add(node, pods, signature.staying.get(node, 0))
        return tally

    def _forget(self, tally: _Tally) -> None:
        del self._tallies[tally.selectors]
        self._index.discard(tally.selectors)
        namespaces = _namespaces(tally.selectors)
        for namespace in self._of_namespace if namespaces is None else namespaces:
            for affinity in self._of_namespace.get(namespace, ()):
                signature = self._signatures[affinity]
                if tally in signature.tallies:
                    signature.tallies.remove(tally)


def _namespaces(selectors: Selectors) -> set[str] | None:
    """Where such pods can be; None = anywhere."""
    named = [set(each.namespaces) for each in selectors if each.namespaces is not None]
    return set.intersection(*named) if named else None


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    left = counts.get(key, 0) + amount
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
