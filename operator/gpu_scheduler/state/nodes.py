"""From a Node object to the planner's ``NodeInfo``.

Capacity is what the kubelet reports as allocatable. A node is closed while it is cordoned or not
Ready; taints stay taints, the pod's tolerations decide. The names of conditions and taints are
Kubernetes' own.
"""

from gpu_scheduler.core.cluster import NodeInfo, Taint
from gpu_scheduler.core.quantity import cpu_milli, whole
from gpu_scheduler.kube.objects import Node

_HARD = {"NoSchedule", "NoExecute"}
# Taints that Kubernetes itself sets and lifts; `closed` speaks of the same facts in plain words.
_TRANSIENT = "node.kubernetes.io/"


def closed(node: Node) -> str:
    """Why the node takes no pods at present; empty when it takes them."""
    if node.metadata.deletion_timestamp:
        return "is being deleted"
    if node.spec.unschedulable:
        return "is cordoned"
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status != "True":
        return "is not ready"
    for taint in node.spec.taints:
        if taint.key.startswith(_TRANSIENT) and taint.effect in _HARD:
            return f"has the taint {taint.key}"
    return ""


def info(node: Node) -> NodeInfo:
    """What the planner knows of a node apart from its devices and pods."""
    allocatable = node.status.allocatable
    return NodeInfo(
        name=node.metadata.name,
        labels=node.metadata.labels,
        taints=tuple(
            Taint(t.key, t.value, t.effect)
            for t in node.spec.taints
            if t.effect in _HARD and not t.key.startswith(_TRANSIENT)
        ),
        closed=closed(node),
        cpu_milli=cpu_milli(allocatable.get("cpu", "0")),
        memory_bytes=whole(allocatable.get("memory", "0")),
        ephemeral_bytes=whole(allocatable.get("ephemeral-storage", "0")),
        pods=whole(allocatable.get("pods", "110")),
    )
