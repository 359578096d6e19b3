"""Which nodes a pod accepts: selector, required affinity, taints and tolerations.

The rules are those of Kubernetes' own scheduler and kubelet, which checks affinity once more when
it admits the pod. Only what lasts is judged: a node that is closed for the moment still matches,
so no job becomes unsatisfiable because of it. Called by ``demand`` once per shape and node, and
by the reasons.
"""

import re
from collections.abc import Mapping

from gpu_scheduler.core.cluster import NodeInfo, Taint
from gpu_scheduler.core.request import NodeFilter, Requirement, Term, Toleration

NODE_NAME = "metadata.name"  # the one field that a term may match
_INTEGER = re.compile(r"[+-]?[0-9]+")  # as Kubernetes reads one: "1_000" is none


def matches(where: NodeFilter, node: NodeInfo) -> bool:
    """Whether the pod accepts the node."""
    return (
        selector_holds(where, node)
        and affinity_holds(where, node)
        and (not node.taints or untolerated(where, node) is None)
    )


def selector_holds(where: NodeFilter, node: NodeInfo) -> bool:
    """Whether the node has every label of the node selector."""
    labels = node.labels
    return all(labels.get(key) == value for key, value in where.selector)


def affinity_holds(where: NodeFilter, node: NodeInfo) -> bool:
    """Whether one term of the required node affinity matches, or there is none."""
    return where.terms is None or any(_term_holds(term, node) for term in where.terms)


def untolerated(where: NodeFilter, node: NodeInfo) -> Taint | None:
    """The first taint of the node that the pod does not tolerate."""
    for taint in node.taints:
        if not any(tolerates(toleration, taint) for toleration in where.tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration covers this taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _term_holds(term: Term, node: NodeInfo) -> bool:
    if not term.labels and not term.fields:
        return False  # an empty term matches nothing
    fields = {NODE_NAME: node.name}
    return all(requirement_holds(r, node.labels) for r in term.labels) and all(
        requirement_holds(r, fields) for r in term.fields
    )


def requirement_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy one requirement; NotIn and DoesNotExist accept a missing key."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: Requirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(requirement.values[0])):
        return False
    have, bound = int(value), int(requirement.values[0])
    return have > bound if requirement.operator == "Gt" else have < bound
