"""GPUJobs and their batch/v1 Jobs as last seen.

A GPUJob's request (devices per container, models) is parsed once per generation. Which pods belong
to it follows from controller references alone: pod -> Job (uid) -> GPUJob (uid); labels are for
people.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.core.request import DeviceRequest, JobKey
from gpu_scheduler.kube.objects import Job


def job_key(namespace: str, name: str) -> JobKey:
    """The key of a GPUJob: 'namespace/name'."""
    return JobKey(f"{namespace}/{name}")


def epoch_seconds(timestamp: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; 0 when there is none."""
    if not timestamp:
        return 0.0
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


@dataclass(slots=True)
class GPUJobRecord:
    """A GPUJob. ``spec`` is None when it cannot be parsed; ``problem`` says why."""

    key: JobKey
    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    deleting: bool
    spec: GPUJobSpec | None
    requests: tuple[DeviceRequest, ...] = ()
    min_compute: tuple[int, int] = (0, 0)
    problem: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)  # as the API server last showed it

    @property
    def created_seconds(self) -> float:
        """Creation time, epoch seconds."""
        return epoch_seconds(self.created)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A batch/v1 Job that a GPUJob owns."""

    uid: str
    namespace: str
    name: str
    owner_uid: str  # of the GPUJob
    owner: JobKey
    version: int
    deleting: bool
    parallelism: int
    completions: int
    suspend: bool
    succeeded: int
    failed: int
    failed_indexes: int  # that are not tried again
    complete: bool
    failure: str  # message of the Failed condition; empty = not failed
    finished: str  # time of the terminal condition
    annotations: Mapping[str, str] = field(default_factory=dict)


def _count(indexes: str) -> int:
    """How many indexes a text such as '1,3-5' names."""
    ranges = [part.partition("-") for part in indexes.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def job_record(job: Job) -> JobRecord | None:
    """The record of a Job, or None when no GPUJob controls it."""
    meta, status = job.metadata, job.status
    owner = next((o for o in meta.owner_references if o.controller and o.kind == "GPUJob"), None)
    if owner is None:
        return None
    ended = {c.type: c for c in status.conditions if c.status == "True"}
    failed, complete = ended.get("Failed"), ended.get("Complete")
    terminal = complete or failed
    return JobRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        owner_uid=owner.uid,
        owner=job_key(meta.namespace, owner.name),
        version=int(meta.resource_version or 0),
        deleting=bool(meta.deletion_timestamp),
        parallelism=job.spec.parallelism or 0,
        completions=job.spec.completions or 0,
        suspend=job.spec.suspend,
        succeeded=status.succeeded,
        failed=status.failed,
        failed_indexes=_count(status.failed_indexes),
        complete=complete is not None,
        failure=(failed.message or failed.reason or "failed") if failed else "",
        finished=terminal.last_transition_time if terminal else "",
        annotations=meta.annotations,
    )
