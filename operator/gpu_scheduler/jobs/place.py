"""Both write paths behind one function: the pod itself says which one it is on.

``obstacle`` is what the state asks before it counts a pod as waiting; ``place`` asks again before
it makes the write, because a decision may be a planning cycle old.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from gpu_scheduler.api.names import SCHEDULER_NAME
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.binding import bind
from gpu_scheduler.jobs.gate import foreign_gates, gated, ungate
from gpu_scheduler.jobs.write import NotPlaceableError, Write
from gpu_scheduler.kube.objects import Pod

_ENDED = frozenset({"Succeeded", "Failed"})


class Pin(StrEnum):
    """How a pod on the gate path is tied to its node."""

    AFFINITY = "affinity"  # matchFields metadata.name: one node evaluation for kube-scheduler
    HOSTNAME = "hostname"  # nodeSelector kubernetes.io/hostname: for clusters with Karpenter


def obstacle(pod: Pod) -> str:
    """What keeps this pod from being placed now, as a sentence; empty when nothing does."""
    if pod.metadata.deletion_timestamp:
        return "the pod is being deleted"  # a gate can still be removed then: nobody else checks
    if pod.status.phase in _ENDED:
        return f"the pod has ended ({pod.status.phase})"
    if pod.spec.node_name:
        return f"the pod is already on node {pod.spec.node_name}"
    if foreign := foreign_gates(pod):
        return f"scheduling gate {', '.join(foreign)} still holds the pod"
    if not gated(pod) and pod.spec.scheduler_name != SCHEDULER_NAME:
        return f"the pod belongs to scheduler {pod.spec.scheduler_name}"
    return ""


def place(
    pod: Pod,
    node: str,
    devices: Iterable[DeviceAllocation],
    *,
    pin: Pin = Pin.AFFINITY,
    hostname: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Write:
    """The one write that starts ``pod`` on ``node`` with these devices.

    Args:
        pod: as the API server last returned it.
        node: the node's name.
        devices: what the pod gets there.
        pin: how a gated pod is tied to the node.
        hostname: value of the node's label ``kubernetes.io/hostname``, for ``Pin.HOSTNAME``.
        more: annotations that the same write sets beside the allocation.

    Raises:
        NotPlaceableError: there is an obstacle, or the write would be refused.
    """
    if reason := obstacle(pod):
        raise NotPlaceableError(f"{pod.metadata.namespace}/{pod.metadata.name}: {reason}")
    if not gated(pod):
        return bind(pod, node, devices, more)
    if pin is Pin.HOSTNAME and not hostname:
        raise NotPlaceableError(f"node {node} has no label kubernetes.io/hostname to pin a pod by")
    pinned_by = hostname if pin is Pin.HOSTNAME else ""
    return ungate(pod, node, devices, hostname=pinned_by, more=more)
