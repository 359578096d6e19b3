"""The bind path: one Binding that commits node and devices together.

The API server merges the Binding's annotations into the pod in the same update that sets the
node, and refuses it (409) when the uid differs or the pod is bound, gated or being deleted. The
uid alone is the precondition: a label that somebody changes meanwhile is no reason to plan again.
Called by ``place``.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpu_scheduler.core.decision import Grant
from gpu_scheduler.jobs.annotation import placement
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.objects import Pod


def bind(
    pod: Pod, node: str, grants: Iterable[Grant], more: Mapping[str, str] = MappingProxyType({})
) -> Write:
    """Start ``pod`` on ``node`` with these devices; ``more``: annotations beside the allocation.

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
            "annotations": placement(pod, node, grants, more),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    return Write("POST", paths.pod(meta.namespace, meta.name, "binding"), body)
