"""GPUs that NVIDIA's device plugin gives to pods that are not ours.

Which ones is known to the kubelet alone, so such a pod closes its node to us. Invariant: only what
a node advertises can be held there. From a pod that names its node the kubelet drops every extended
resource that is missing in ``status.allocatable``, and runs it without; one that is there with
amount 0 (its plugin restarts, or its GPUs are ill) may be held by pods that were there before.
Source: removeMissingExtendedResources in the kubelet's predicate of admission.
"""

import re

from gpu_scheduler.core.model import quantity
from gpu_scheduler.kube.objects import Node, Pod

# Whole GPUs, time slices of them (gpu.shared), MIG slices.
_RESOURCES = re.compile(r"nvidia\.com/(?:gpu(?:\..+)?|mig-.+)")


def served(node: Node) -> frozenset[str]:
    """Resources that the node advertises, be it with amount 0."""
    return frozenset(filter(is_gpu, node.status.allocatable))


def asked(pod: Pod) -> tuple[str, ...]:
    """Resources of which the pod asks for some; those of init containers stay its own too."""
    return tuple(
        sorted(
            {
                resource
                for container in (*pod.spec.containers, *pod.spec.init_containers)
                for amounts in (container.resources.requests, container.resources.limits)
                for resource, amount in amounts.items()
                if is_gpu(resource) and quantity.asked(amount) > 0
            }
        )
    )


def is_gpu(resource: str) -> bool:
    """Whether the device plugin serves it."""
    return resource.startswith("nvidia.com/") and _RESOURCES.fullmatch(resource) is not None
