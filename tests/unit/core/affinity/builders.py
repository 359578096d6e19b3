"""Short ways to rules about other pods, and pods on nodes as the planner hears of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.unit.core.affinity.reference import Seat, selects

from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityRules,
    AffinityTerm,
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


def near(key: str = HOST, **labels: str) -> AffinityRules:
    return AffinityRules(affinity=(AffinityTerm(key, selector(**labels), field="podAffinity[0]"),))


def apart(key: str = HOST, **labels: str) -> AffinityRules:
    term = AffinityTerm(key, selector(**labels), field="podAntiAffinity[0]")
    return AffinityRules(anti_affinity=(term,))


def spread(
    key: str = HOST, max_skew: int = 1, min_domains: int = 1, **labels: str
) -> AffinityRules:
    field = "topologySpreadConstraints[0]"
    constraint = SpreadConstraint(max_skew, key, selector(**labels), min_domains, field=field)
    return AffinityRules(spread=(constraint,))


def affinity(
    rules: AffinityRules | None = None, namespace: str = "ns", **labels: str
) -> AffinityInfo:
    return AffinityInfo(namespace, tuple(sorted(labels.items())), rules)


@dataclass
class Standing:
    """Pods on nodes, counted anew for every question."""

    seats: list[Seat] = field(default_factory=list)
    by_uid: dict[PodUID, AffinityInfo] = field(default_factory=dict)

    def on(
        self, node: str, who: AffinityInfo, *, ending: bool = False, uid: str = ""
    ) -> "Standing":
        self.seats.append(Seat(who, node, ending))
        if uid:
            self.by_uid[PodUID(uid)] = who
        return self

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int]:
        return Counter(
            seat.node
            for seat in self.seats
            if not (staying and seat.ending) and all(selects(s, seat.affinity) for s in selectors)
        )

    def anti_affinity_pods(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        found: dict[AffinityTerm, Counter[str]] = {}
        for seat in self.seats:
            for term in seat.affinity.rules.anti_affinity if seat.affinity.rules else ():
                found.setdefault(term, Counter())[seat.node] += 1
        return found

    def about(self, affinity: AffinityInfo) -> list[AffinityTerm]:
        return [term for term in self.anti_affinity_pods() if selects(term.pods, affinity)]

    def binds(self, term: AffinityTerm, affinity: AffinityInfo) -> bool:
        return True

    def of(self, pod: PodUID) -> AffinityInfo | None:
        return self.by_uid.get(pod)
