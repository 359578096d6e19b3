"""The bind path: one Binding that commits node and devices together.

The API server merges the Binding's annotations into the pod in the same update that sets the node,
and refuses it (409) when uid or resourceVersion differ or the pod is bound, gated or being deleted.
So a Binding that somebody holds back can be made void: by any change of the pod. The label is for
the policy on terms; newer API servers copy it to the pod.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpu_scheduler.api.names import LABEL_PATH
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.annotation import placement
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.objects import Pod


def bind(
    pod: Pod,
    node: str,
    devices: Iterable[DeviceAllocation],
    more: Mapping[str, str] = MappingProxyType({}),
) -> Write:
    """Start ``pod`` on ``node`` with these devices; ``more``: annotations beside the allocation.

    ``pod`` is as the API server last returned it: uid and resourceVersion are preconditions.

    Raises:
        NotPlaceableError: the annotations would be refused (see ``annotation``).
    """
    meta = pod.metadata
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "labels": {LABEL_PATH: WritePath.BIND},
            "annotations": placement(pod, node, devices, more),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Write("POST", paths.pod(meta.namespace, meta.name, "binding"), body)
