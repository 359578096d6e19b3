"""The gate path: one patch that annotates, pins and releases a gated pod.

kube-scheduler then binds the pod to the one node that is left. A strategic merge patch costs the
API server a third of what a JSON merge patch does. Either replaces the list of terms, so the
required node affinity is written whole, with every term of the user's as it was; terms are OR-ed,
so the pin goes into each of them. A term without requirements matches no node and the API server
lets nobody add to it: it stays empty. After this patch there is no way back but eviction.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gpu_scheduler.api.names import GATE, LABEL_PATH
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.jobs.annotation import placement
from gpu_scheduler.jobs.write import NotPlaceableError, Write
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH
from gpu_scheduler.kube.objects import Pod, SelectorTerm

HOSTNAME_LABEL = "kubernetes.io/hostname"

# One empty entry makes the API server forget which client set which field of the pod, and not
# follow it any more: merging that costs more than the rest of this patch (ADR 0021).
_UNTRACKED: list[dict[str, Any]] = [{}]


def gated(pod: Pod) -> bool:
    """Whether our gate holds the pod back."""
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def foreign_gates(pod: Pod) -> tuple[str, ...]:
    """Gates of others: the pod stays where it is until they are gone."""
    return tuple(gate.name for gate in pod.spec.scheduling_gates if gate.name != GATE)


def ungate(
    pod: Pod,
    node: str,
    devices: Iterable[DeviceAllocation],
    *,
    hostname: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Write:
    """Release ``pod`` to ``node`` with these devices.

    Args:
        pod: as the API server last returned it; its uid and resourceVersion are preconditions.
        node: the node's name.
        devices: what the pod gets there.
        hostname: value of the node's label ``kubernetes.io/hostname``. When given, the pin is a
            node selector instead of ``matchFields``, which Karpenter rejects.
        more: annotations that the same write sets beside the allocation.

    Raises:
        NotPlaceableError: a gate of somebody else is left, or the annotations would be refused.
    """
    if foreign := foreign_gates(pod):
        raise NotPlaceableError(f"spec.schedulingGates: {', '.join(foreign)} still holds the pod")
    meta = pod.metadata
    pin = _select(hostname) if hostname else _pin(pod, node)
    body = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "labels": {LABEL_PATH: WritePath.GATE},
            "annotations": placement(pod, node, devices, more),
            "managedFields": _UNTRACKED,
        },
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}], **pin},
    }
    return Write("PATCH", paths.pod(meta.namespace, meta.name), body, STRATEGIC_MERGE_PATCH)


def _select(hostname: str) -> dict[str, Any]:
    return {"nodeSelector": {HOSTNAME_LABEL: hostname}}


def _pin(pod: Pod, node: str) -> dict[str, Any]:
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    asked = pod.spec.required_nodes
    given = asked.node_selector_terms if asked else ()
    terms = [_pinned(term, pin) for term in given] or [{"matchFields": [pin]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def _pinned(term: SelectorTerm, pin: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if term.match_expressions:
        result["matchExpressions"] = [_requirement(r) for r in term.match_expressions]
    if fields := [_requirement(r) for r in term.match_fields]:
        result["matchFields"] = fields
    if result:
        result["matchFields"] = [*fields, pin]
    return result


def _requirement(requirement: Requirement) -> dict[str, Any]:
    result: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        result["values"] = list(requirement.values)
    return result
