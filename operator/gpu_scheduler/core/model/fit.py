"""Which nodes a pod accepts: selector, required affinity, taints and tolerations.

The rules are those of Kubernetes' own scheduler and kubelet, which checks affinity once more when
it admits the pod. Only what lasts is judged: a node that is closed for the moment still matches, so
no job becomes unsatisfiable because of it.
"""

from gpu_scheduler.core.model.cluster import NodeInfo, Taint
from gpu_scheduler.core.model.request import NodeFilter, NodeSelectorTerm, Toleration
from gpu_scheduler.core.model.requirement import requirement_holds

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
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def _term_holds(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    if not term.labels and not term.fields:
        return False  # an empty term matches nothing
    fields = {NODE_NAME: node.name}
    return all(requirement_holds(r, node.labels) for r in term.labels) and all(
        requirement_holds(r, fields) for r in term.fields
    )
