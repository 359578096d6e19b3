"""Short ways to rules about other pods, and pods on nodes as the planner hears of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.unit.core.peer_reference import Seat, selects

from gpu_scheduler.core.model.peers import (
    AffinityTerm,
    PodPeers,
    PodRules,
    PodSelector,
    Selectors,
    SpreadConstraint,
)
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.requirement import Requirement

HOST, ZONE = "kubernetes.io/hostname", "zone"


def selector(*namespaces: str, **labels: str) -> PodSelector:
    """Pods of these namespaces, or else of `ns`, with these labels."""
    wanted = tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
    return PodSelector(namespaces or ("ns",), wanted)


def near(key: str = HOST, **labels: str) -> PodRules:
    return PodRules(affinity=(AffinityTerm(key, selector(**labels), field="podAffinity[0]"),))


def apart(key: str = HOST, **labels: str) -> PodRules:
    term = AffinityTerm(key, selector(**labels), field="podAntiAffinity[0]")
    return PodRules(anti_affinity=(term,))


def spread(key: str = HOST, max_skew: int = 1, min_domains: int = 1, **labels: str) -> PodRules:
    field = "topologySpreadConstraints[0]"
    constraint = SpreadConstraint(max_skew, key, selector(**labels), min_domains, field=field)
    return PodRules(spread=(constraint,))


def peers(rules: PodRules | None = None, namespace: str = "ns", **labels: str) -> PodPeers:
    return PodPeers(namespace, tuple(sorted(labels.items())), rules)


@dataclass
class Standing:
    """Pods on nodes, counted anew for every question."""

    seats: list[Seat] = field(default_factory=list)
    by_uid: dict[PodUID, PodPeers] = field(default_factory=dict)

    def on(self, node: str, who: PodPeers, *, ending: bool = False, uid: str = "") -> "Standing":
        self.seats.append(Seat(who, node, ending))
        if uid:
            self.by_uid[PodUID(uid)] = who
        return self

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int]:
        return Counter(
            seat.node
            for seat in self.seats
            if not (staying and seat.ending) and all(selects(s, seat.peers) for s in selectors)
        )

    def bearers(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        found: dict[AffinityTerm, Counter[str]] = {}
        for seat in self.seats:
            for term in seat.peers.rules.anti_affinity if seat.peers.rules else ():
                found.setdefault(term, Counter())[seat.node] += 1
        return found

    def about(self, peers: PodPeers) -> list[AffinityTerm]:
        return [term for term in self.bearers() if selects(term.pods, peers)]

    def binds(self, term: AffinityTerm, peers: PodPeers) -> bool:
        return True

    def of(self, pod: PodUID) -> PodPeers | None:
        return self.by_uid.get(pod)
