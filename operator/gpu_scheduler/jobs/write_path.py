"""Which of the two write paths a job takes, judged from its pod template.

Bind is cheaper; gate is for pods that need what only kube-scheduler does: provisioning volumes or
following them to their nodes, host ports, resource claims (extended resources that a DeviceClass
serves among them), and the few rules about other pods that
the planner does not understand (``jobs.affinity_rules``); on either path it judges the others
itself. The runtime looks up the ``claims`` of the template and asks ``choose`` once, when the job
is rendered.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from gpu_scheduler.jobs.affinity_rules import REQUIRED, beyond_the_planner

# Inline volumes that kube-scheduler keeps from being used twice at once.
_EXCLUSIVE = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
_ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


class WritePath(StrEnum):
    """How a pod gets from its decision to its node."""

    BIND = "bind"
    GATE = "gate"


def claim_need(claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> str:
    """What of a claim, or of the volume it is bound to, is for kube-scheduler; empty: nothing.

    A claim that is being deleted counts as unbound: only kube-scheduler knows when it is back.

    Args:
        claim: a PersistentVolumeClaim as JSON.
        volume: the PersistentVolume that its ``spec.volumeName`` names; None: there is none.
    """
    name = claim["metadata"]["name"]
    if volume is None or not is_bound(claim, volume):
        return f"claim {name} is not bound yet"
    labels = volume["metadata"].get("labels") or {}
    tied = bool((volume.get("spec") or {}).get("nodeAffinity"))
    if tied or any(zone in labels for zone in _ZONE_LABELS):
        return f"the volume of claim {name} is tied to certain nodes"
    if "ReadWriteOncePod" in ((claim.get("spec") or {}).get("accessModes") or ()):
        return f"claim {name} may be used by one pod at a time"
    return ""


def is_bound(claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> bool:
    """Whether a claim has its volume, and keeps it; ``volume``: see ``claim_need``."""
    phase = (claim.get("status") or {}).get("phase")
    going = claim["metadata"].get("deletionTimestamp")
    return volume is not None and phase == "Bound" and not going


def claims(template_pod_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the claims that the pod mounts, in order, each once."""
    names = (
        (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in template_pod_spec.get("volumes") or ()
    )
    return tuple(dict.fromkeys(name for name in names if name and isinstance(name, str)))


def choose(
    template_pod_spec: Mapping[str, Any],
    claim_needs: Mapping[str, str],
    class_of: Callable[[str], str] = lambda resource: "",
) -> tuple[WritePath, str]:
    """The path for ``placement: auto``, and why.

    Args:
        template_pod_spec: ``spec`` of the pod template, as JSON.
        claim_needs: ``claim_need`` of each of ``claims``; one that is missing does not exist.
        class_of: the DeviceClass that serves an extended resource; empty: none does.

    Returns:
        The path, and for GATE the first thing in the template that asks for it.
    """
    served = _served(template_pod_spec, class_of)
    for need in (*_needs(template_pod_spec, claim_needs), *served):
        return WritePath.GATE, need
    return WritePath.BIND, ""


def of_share(pod_spec: Mapping[str, Any], *, controlled: bool) -> WritePath:
    """The path of a pod that asks by itself, judged where nothing but the pod is known.

    So every claim and every required rule about other pods counts as kube-scheduler's. The kubelet
    may turn away a pod that nobody else has looked at: without a controller nobody replaces it.
    """
    affinity = pod_spec.get("affinity") or {}
    ruled = pod_spec.get("topologySpreadConstraints") or any(
        (affinity.get(kind) or {}).get(REQUIRED) for kind in ("podAffinity", "podAntiAffinity")
    )
    gated = not controlled or ruled or any(_needs(pod_spec, {}))
    return WritePath.GATE if gated else WritePath.BIND


def _needs(spec: Mapping[str, Any], claim_needs: Mapping[str, str]) -> Iterator[str]:
    for name in claims(spec):
        if need := claim_needs.get(name, f"claim {name} does not exist yet"):
            yield need
    for volume in spec.get("volumes") or ():
        if volume.get("ephemeral"):
            yield f"volume {volume.get('name')} is provisioned for each pod"
        elif any(volume.get(kind) for kind in _EXCLUSIVE):
            yield f"volume {volume.get('name')} may be attached once"
    yield from beyond_the_planner(spec)
    if spec.get("resourceClaims"):
        yield "resourceClaims are allocated by kube-scheduler"
    yield from _port_needs(spec)


def _served(spec: Mapping[str, Any], class_of: Callable[[str], str]) -> Iterator[str]:
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        for resource in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}:
            if name := class_of(resource):
                yield f"{resource} is served by DeviceClass {name}, by claims of kube-scheduler"


def _port_needs(spec: Mapping[str, Any]) -> Iterator[str]:
    host_network = bool(spec.get("hostNetwork"))  # every containerPort is then a host port
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if host_network or port.get("hostPort"):
                number = port.get("hostPort") or port.get("containerPort")
                yield f"container {container.get('name')} takes host port {number}"
