"""Kubernetes' rules about other pods, judged pod by pod and node by node: slow, and nothing kept.

Shares the data types with the planner, and no code. Sources: the documentation of pod affinity and
of topology spread constraints.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.request import NodeFilter


@dataclass(frozen=True)
class Seat:
    """A pod on a node."""

    affinity: AffinityInfo
    node: str
    ending: bool = False


def selects(selector: PodSelector, pod: AffinityInfo) -> bool:
    if selector.labels is None:
        return False
    if selector.namespaces is not None and pod.namespace not in selector.namespaces:
        return False
    labels = dict(pod.labels)
    for each in selector.labels:
        if each.operator == "In":
            good = each.key in labels and labels[each.key] in each.values
        elif each.operator == "NotIn":
            good = each.key not in labels or labels[each.key] not in each.values
        elif each.operator == "Exists":
            good = each.key in labels
        else:
            good = each.key not in labels
        if not good:
            return False
    return True


def may(
    pod: AffinityInfo,
    where: NodeFilter,
    node: NodeInfo,
    nodes: Sequence[NodeInfo],
    seats: list[Seat],
) -> bool:
    """Whether kube-scheduler would let the pod go to the node."""
    by_name = {each.name: each for each in nodes}
    seats = [seat for seat in seats if seat.node in by_name]

    def together(seat: Seat, key: str) -> bool:
        there = by_name[seat.node].labels.get(key)
        return there is not None and there == node.labels.get(key)

    for seat in seats:
        for term in seat.affinity.rules.anti_affinity if seat.affinity.rules else ():
            if selects(term.pods, pod) and together(seat, term.key):
                return False
    if pod.rules is None:
        return True
    for term in pod.rules.anti_affinity:
        if any(selects(term.pods, seat.affinity) and together(seat, term.key) for seat in seats):
            return False
    if pod.rules.affinity and not _near(pod, pod.rules.affinity, node, by_name, seats):
        return False
    return all(
        _level(pod, where, each, pod.rules.spread, node, nodes, seats) for each in pod.rules.spread
    )


def _near(
    pod: AffinityInfo,
    terms: Sequence[AffinityTerm],
    node: NodeInfo,
    by_name: dict[str, NodeInfo],
    seats: list[Seat],
) -> bool:
    if any(term.key not in node.labels for term in terms):
        return False
    targets = [
        seat
        for seat in seats
        if all(selects(term.pods, seat.affinity) for term in terms)
        and any(term.key in by_name[seat.node].labels for term in terms)
    ]
    if not targets:
        return all(selects(term.pods, pod) for term in terms)
    return all(
        any(by_name[seat.node].labels.get(term.key) == node.labels[term.key] for seat in targets)
        for term in terms
    )


def _level(
    pod: AffinityInfo,
    where: NodeFilter,
    constraint: SpreadConstraint,
    constraints: Sequence[SpreadConstraint],
    node: NodeInfo,
    nodes: Sequence[NodeInfo],
    seats: list[Seat],
) -> bool:
    if constraint.key not in node.labels:
        return False
    domains: dict[str, int] = {}
    for each in nodes:
        if any(other.key not in each.labels for other in constraints):
            continue
        if constraint.by_affinity and any(each.labels.get(k) != v for k, v in where.selector):
            continue
        if constraint.by_taints and (each.taints or each.tainted):
            continue  # nothing here tolerates anything
        here = [seat for seat in seats if seat.node == each.name and not seat.ending]
        count = sum(selects(constraint.pods, seat.affinity) for seat in here)
        value = each.labels[constraint.key]
        domains[value] = domains.get(value, 0) + count
    least = min(domains.values(), default=0)
    if len(domains) < constraint.min_domains:
        least = 0
    after = domains.get(node.labels[constraint.key], 0) + selects(constraint.pods, pod)
    return after - least <= constraint.max_skew
