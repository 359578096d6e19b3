"""Touching a Job so that its controller looks at it now, and not at the end of a back-off.

The Job controller looks at a Job within a second of any change of it, whatever delay it is in.
Called by the runtime when what kept pods from being made is out of the way.
"""

from gpu_scheduler.api.names import TRIED_AGAIN
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.client import MERGE_PATCH


def nudge(namespace: str, name: str, uid: str, now: str) -> Write:
    """Write down on a Job when its pods were allowed again (``now``: RFC 3339)."""
    body = {"metadata": {"uid": uid, "annotations": {TRIED_AGAIN: now}}}
    return Write("PATCH", paths.job(namespace, name), body, MERGE_PATCH)
