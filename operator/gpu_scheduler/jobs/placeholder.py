"""A holder pod: it sleeps, and requests one GPU from the device plugin of one node.

kube-scheduler, the device plugin and an autoscaler then see that a device of the node is in use. It
goes through kube-scheduler, which alone knows what it promised to others: a holder that does not
fit waits, and takes nothing from anybody. Names follow from node and device, so a device has at
most one holder whatever happens.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from gpu_scheduler.api.names import COMPONENT_HOLDER, LABEL_COMPONENT, LABEL_HOLDS, holder_name
from gpu_scheduler.kube.objects import OwnerReference

DEVICE_RESOURCE = "nvidia.com/gpu"
# In the operator's image, which has no program that only sleeps.
SLEEP = ("/opt/venv/bin/python", "-c", "import signal; signal.sigwait({signal.SIGTERM})")


@dataclass(frozen=True, slots=True)
class PlaceholderSettings:
    """What all holders have in common; ``command`` empty: that of the image."""

    namespace: str
    image: str
    command: tuple[str, ...] = SLEEP
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""


def holder(
    node: str, device: str, settings: PlaceholderSettings, owner: OwnerReference | None
) -> dict[str, Any]:
    """The pod as JSON, ready to be created; ``owner``: the Deployment with which it goes."""
    metadata: dict[str, Any] = {
        "name": holder_name(node, device),
        "namespace": settings.namespace,
        "labels": {LABEL_COMPONENT: COMPONENT_HOLDER, LABEL_HOLDS: device},
        # It keeps no node alive by itself: what runs on the node decides that.
        "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
    }
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": "apps/v1"} | msgspec.to_builtins(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _spec(node, settings),
    }


def _spec(node: str, settings: PlaceholderSettings) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "holder",
        "image": settings.image,
        "resources": {
            "requests": {"cpu": "1m", "memory": "16Mi"},
            "limits": {DEVICE_RESOURCE: "1", "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if settings.command:
        container["command"] = list(settings.command)
    if settings.pull_policy:
        container["imagePullPolicy"] = settings.pull_policy
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    spec: dict[str, Any] = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return spec
