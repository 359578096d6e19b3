"""A change that means nothing, so that a placing write that is still under way can land no more.

Placing writes name the resourceVersion that they were made for; after this one the pod has
another. The answer is the pod as it is then: placed, if that write was faster. Sent by the binder
when nobody knows what became of a placing write, before the pod's devices go to somebody else.
"""

from gpu_scheduler.api.names import TOUCHED
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import MERGE_PATCH
from gpu_scheduler.kube.objects import Meta


def touch(pod: Meta, mark: str) -> Write:
    """Change ``pod``, of this uid alone; ``mark``: a value that no touch of it had before."""
    body = {"metadata": {"uid": pod.uid, "annotations": {TOUCHED: mark}}}
    return Write("PATCH", paths.pod(pod.namespace, pod.name), body, MERGE_PATCH)
