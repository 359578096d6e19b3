"""Which nodes a pod accepts: selector, required affinity, taints and tolerations.

The rules are those of Kubernetes' own scheduler and kubelet, which checks affinity once more when
it admits the pod. Only what lasts is judged: a node that is closed for the moment still matches, so
no job becomes unsatisfiable because of it.
"""

import re

from gpu_scheduler.core.model.cluster import NodeInfo, Taint
from gpu_scheduler.core.model.request import NodeFilter, NodeSelectorTerm, Toleration
from gpu_scheduler.core.model.requirement import requirement_holds

_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}")
_MOST_INT64 = (1 << 63) - 1
NODE_NAME = "metadata.name"  # the one field that a term may match


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
    if toleration.operator in ("Lt", "Gt"):
        bound, value = _int64(toleration.value), _int64(taint.value)
        if bound is None or value is None:
            return False
        return value < bound if toleration.operator == "Lt" else value > bound
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _int64(text: str) -> int | None:
    """What the API server takes for a number there: no leading zero, no plus sign."""
    number = int(text) if _DECIMAL.fullmatch(text) else _MOST_INT64 + 1
    return number if -_MOST_INT64 <= number <= _MOST_INT64 else None


def _term_holds(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    if not term.labels and not term.fields:
        return False  # an empty term matches nothing
    fields = {NODE_NAME: node.name}
    return all(requirement_holds(r, node.labels) for r in term.labels) and all(
        requirement_holds(r, fields) for r in term.fields
    )
