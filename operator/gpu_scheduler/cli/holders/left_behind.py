"""Pods that hold GPUs and are no GPUJob's any more: they are ending, or run on as nobody's.

A program that does not end when it is told to keeps its share for as long as its grace period
lets it, or for ever where its node does not answer. A pod whose GPUJob was orphaned runs on: the
operator says so in its condition ``Owned``. Nothing else that is listed says either.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gpu_scheduler.api.names import GROUP, LABEL_JOB
from gpu_scheduler.api.unstructured import Body, labels_of, listed, name_of, text
from gpu_scheduler.cli.finding import gpujob_path
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.command_client import CommandClient

_OWNED = f"{GROUP}/Owned"  # a condition
_OWNER_GONE = "OwnerGone"
_MOST_JOBS = 20  # that are asked for; of more nothing is said


@dataclass(frozen=True, slots=True)
class OutlivingPod:
    """One of them.

    Attributes:
        pod: as the API server has it.
        job: name of its GPUJob.
        node: where it is.
        milli: milli-GPU that it holds.
        since: when it was told to end, RFC 3339; empty: not known, or it was not.
        orphaned: what the operator says of one that runs on as nobody's; empty: it is ending.
    """

    pod: Body
    job: str
    node: str
    milli: int
    since: str
    orphaned: str = ""

    @property
    def reason(self) -> str:
        """Why it has a line of its own, in one word."""
        return _OWNER_GONE if self.orphaned else "JobDeleted"

    @property
    def namespace(self) -> str:
        """Where it is."""
        return text(self.pod, "metadata", "namespace")

    def __str__(self) -> str:
        if self.orphaned:
            return f"pod {self.namespace}/{name_of(self.pod)}: {self.orphaned}"
        since = f" since {self.since}" if self.since else ""
        return (
            f"pod {self.namespace}/{name_of(self.pod)} holds {gpu_from_milli(self.milli)} GPU on "
            f"{self.node} and is terminating{since}: its GPUJob {self.job} is deleted, and the "
            "share is free when its containers have ended"
        )

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "namespace": self.namespace,
            "pod": name_of(self.pod),
            "job": self.job,
            "node": self.node,
            "milliGPU": self.milli,
            "terminatingSince": self.since or None,
            "reason": self.reason,
        }


def left_behind(client: CommandClient, pods: Iterable[Body]) -> list[OutlivingPod]:
    """Those among pods; GPUJobs are asked for where a pod is ending, and only then.

    A GPUJob that is called so now says nothing of an orphan: it may be a later one, or the same,
    whose Job somebody took away.
    """
    from gpu_scheduler.api.allocation import of_pod

    found: list[OutlivingPod] = []
    created: dict[tuple[str, str], str | None] = {}
    for pod in pods:
        job, namespace = labels_of(pod).get(LABEL_JOB), text(pod, "metadata", "namespace")
        ends, orphaned = bool(text(pod, "metadata", "deletionTimestamp")), _orphaned(pod)
        has = of_pod(pod) if job and (ends or orphaned) else None
        if has is None or not job or text(pod, "status", "phase") in ("Succeeded", "Failed"):
            continue
        milli = sum(allocated.milli for allocated in has.devices)
        if not ends:
            found.append(OutlivingPod(pod, job, has.node, milli, "", orphaned))
            continue
        if (namespace, job) not in created:
            if len(created) == _MOST_JOBS:
                continue
            created[namespace, job] = _created(client, namespace, job)
        at = created[namespace, job]
        if at is None or (at and at <= text(pod, "metadata", "creationTimestamp")):
            continue  # it is there: what is said of it says what its pods do
        found.append(OutlivingPod(pod, job, has.node, milli, _since(pod)))
    return found


def _orphaned(pod: Body) -> str:
    """What the operator says of a pod that is nobody's any more; empty: it does not."""
    for each in listed(pod, "status", "conditions"):
        if isinstance(each, dict) and each.get("type") == _OWNED and each.get("status") == "False":
            return str(each.get("message") or _OWNER_GONE)
    return ""


def _created(client: CommandClient, namespace: str, job: str) -> str | None:
    """When the GPUJob was made that is called so now; empty: there is none, None: not known."""
    try:
        return text(client.get(gpujob_path(namespace, job)), "metadata", "creationTimestamp")
    except errors.NotFound:
        return ""
    except errors.ApiError:
        return None


def _since(pod: Body) -> str:
    """When it was told to end: its deletionTimestamp is that and its grace period."""
    meta = pod.get("metadata") or {}
    try:
        at = datetime.fromisoformat(str(meta.get("deletionTimestamp")))
        grace = timedelta(seconds=int(meta.get("deletionGracePeriodSeconds") or 0))
        return (at - grace).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, TypeError):
        return ""
