"""Taking a pod off its node, and marking why a pod failed so that the Job counts it rightly.

An eviction (unlike a deletion) and a pod marked DisruptionTarget consume no retry; a pod marked
with our time-limit condition, or as pruned, ends its index without another try. All rest on the
rules of the Job's podFailurePolicy (``render``), which the Job controller applies about a second
after a pod failed: mark at once, in case no policy has (ADR 0073). A pod that has to move is marked
on its Job before it is evicted.
"""

from collections.abc import Iterable
from datetime import datetime

from gpu_scheduler.api import moved
from gpu_scheduler.api.names import CONDITION_DISRUPTION, CONDITION_PRUNED, CONDITION_TIME_LIMIT
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.times import timestamp


def evict(pod: Meta, *, grace_seconds: int | None = None) -> Write:
    """Evict exactly this pod (409 if the name now means another one).

    Args:
        pod: the pod's metadata.
        grace_seconds: time to end in, instead of the pod's own.
    """
    options: dict[str, object] = {"preconditions": {"uid": pod.uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    return Write("POST", paths.pod(pod.namespace, pod.name, "eviction"), body)


def remove(pod: Meta, *, grace_seconds: int | None = None) -> Write:
    """Delete exactly this pod, whatever disruption budgets say; of one that goes, hurry it.

    Unlike an eviction that charges a retry, unless the pod was marked before (``mark_disrupted``).

    Args:
        pod: the pod's metadata.
        grace_seconds: time to end in, if that is less than it has; never 0, which would give its
            devices away while it still runs.
    """
    options: dict[str, object] = {"preconditions": {"uid": pod.uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = max(1, grace_seconds)
    return Write("DELETE", paths.pod(pod.namespace, pod.name), options)


def mark_disrupted(pod: Meta, reason: str, message: str, now: datetime) -> Write:
    """Say that this pod's failure is not its program's: no retry is charged.

    Args:
        pod: the pod's metadata.
        reason: one CamelCase word, such as the kubelet's ``OutOfcpu``.
        message: a sentence for people.
        now: current time, with a time zone.
    """
    return _mark(pod, CONDITION_DISRUPTION, reason, message, now)


def mark_time_limit(pod: Meta, message: str, now: datetime) -> Write:
    """Say that this pod used up ``timeLimitSeconds``: its index fails without a retry."""
    return _mark(pod, CONDITION_TIME_LIMIT, "TimeLimitExceeded", message, now)


def mark_pruned(pod: Meta, message: str, now: datetime) -> Write:
    """Say that this trial was told to stop: however it ends, it is not tried again."""
    return _mark(pod, CONDITION_PRUNED, "EarlyStopping", message, now)


def mark_moved(job: Meta, index: int, pod: PodUID, now: datetime, old: Iterable[int]) -> Write:
    """Say on a Job that the pod of an index has to move.

    Args:
        job: the Job's metadata.
        index: of the pod.
        pod: which one has to go.
        now: current time, with a time zone.
        old: indexes whose marks no longer matter and are taken away.
    """
    marks: dict[str, str | None] = {moved.annotation(i): None for i in old}
    marks[moved.annotation(index)] = moved.text(timestamp(now), pod)
    body = {"metadata": {"uid": job.uid, "annotations": marks}}
    return Write("PATCH", paths.job(job.namespace, job.name), body, MERGE_PATCH)


def _mark(pod: Meta, condition: str, reason: str, message: str, now: datetime) -> Write:
    entry = {
        "type": condition,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }
    # Conditions merge by type in a strategic merge patch: the kubelet's own stay as they are.
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [entry]}}
    return Write("PATCH", paths.pod(pod.namespace, pod.name, "status"), body, STRATEGIC_MERGE_PATCH)
