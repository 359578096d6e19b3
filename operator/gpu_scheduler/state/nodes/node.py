"""From a Node object to the planner's ``NodeInfo``.

Capacity is what the kubelet reports as allocatable. A node is closed while it is cordoned or not
Ready, and while what its kubelet says cannot be true; taints stay taints, the pod's tolerations
decide. The names of conditions and taints are Kubernetes' own.
"""

from collections.abc import Callable

from gpu_scheduler.core.model.cluster import NodeInfo, Taint
from gpu_scheduler.core.model.quantity import MOST, MOST_CPU_MILLI, cpu_milli, whole
from gpu_scheduler.core.model.resources import Scalars, scalars_of
from gpu_scheduler.kube.objects import Node
from gpu_scheduler.state.pods.scalars import is_scalar

_MOST_CHARS = 40
_HARD = {"NoSchedule", "NoExecute"}
# Taints that Kubernetes itself sets and lifts; `closed` speaks of the same facts in plain words.
_TRANSIENT = "node.kubernetes.io/"


def unschedulable(node: Node) -> str:
    """Why the node takes no pods at present; empty when it takes them."""
    if node.metadata.deletion_timestamp:
        return "is being deleted"
    if node.spec.unschedulable:
        return "is cordoned"
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status != "True":
        return "is not ready"
    for taint in node.spec.taints:
        if _is_transient(taint):
            return f"has the taint {taint.key}"
    return ""


def _is_transient(taint: Taint) -> bool:
    return taint.effect in _HARD and taint.key.startswith(_TRANSIENT)


def info(node: Node) -> NodeInfo:
    """What the planner knows of a node apart from its devices and pods."""
    cpu, no_cpu = _allocatable(node, "cpu", "0", cpu_milli, MOST_CPU_MILLI)
    memory, no_memory = _allocatable(node, "memory", "0", whole, MOST)
    ephemeral, no_ephemeral = _allocatable(node, "ephemeral-storage", "0", whole, MOST)
    pods, no_pods = _allocatable(node, "pods", "110", whole, MOST)
    scalars, no_scalars = _scalars(node)
    transient = any(_is_transient(t) for t in node.spec.taints)
    return NodeInfo(
        name=node.metadata.name,
        labels=node.metadata.labels,
        taints=tuple(t for t in node.spec.taints if t.effect in _HARD and not _is_transient(t)),
        tainted=transient or node.spec.unschedulable,
        unschedulable=unschedulable(node)
        or no_cpu
        or no_memory
        or no_ephemeral
        or no_pods
        or no_scalars,
        cpu_milli=cpu,
        memory_bytes=memory,
        ephemeral_bytes=ephemeral,
        pods=pods,
        scalars=scalars,
    )


def _scalars(node: Node) -> tuple[Scalars, str]:
    """Its other countable resources but GPUs, and why one of them cannot be true."""
    amounts, wrong = dict[str, int](), ""
    for name in sorted(node.status.allocatable):
        if is_scalar(name):
            amounts[name], why = _allocatable(node, name, "0", whole, MOST)
            wrong = wrong or why
    return scalars_of(amounts), wrong


def _allocatable(
    node: Node, resource: str, absent: str, read: Callable[[str], int], most: int
) -> tuple[int, str]:
    """How much of a resource the node has, and why that cannot be true; empty when it can.

    Always less than ``most``: a pod that asks for so much fits nowhere.
    """
    text = node.status.allocatable.get(resource, absent)
    try:
        amount = read(text)
    except ValueError:
        return 0, f"has status.allocatable.{resource} {_short(text)}, which is no quantity"
    if amount < 0:
        return 0, f"has status.allocatable.{resource} {_short(text)}; it cannot be below 0"
    if amount >= most:
        why = f"has status.allocatable.{resource} {_short(text)}, more than any node has"
        return most - 1, why
    return amount, ""


def _short(text: str) -> str:
    """What somebody wrote, as far as a sentence bears it."""
    return repr(text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…")
