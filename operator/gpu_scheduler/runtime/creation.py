"""Creating what a GPUJob consists of, once: a Job for each role, and a Service for their names.

Creating again what exists is no error, so whoever was killed in between simply begins anew. What
bears the name already and belongs to somebody else is left alone. Called by the reconciler.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.jobs.marks import label_value
from gpu_scheduler.jobs.service import service
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job, Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.state.jobs import GPUJobRecord, job_record
from gpu_scheduler.state.own_jobs import misfit


class StaleJobError(Exception):
    """An object of a deleted GPUJob of the same name is still being removed."""


class NotCreatableError(Exception):
    """A sentence for the user: what is in the way, and what to do about it.

    ``elsewhere``: it may go away without a change of the GPUJob.
    """

    def __init__(self, message: str, *, elsewhere: bool) -> None:
        """See the class."""
        super().__init__(message)
        self.elsewhere = elsewhere


class Named(msgspec.Struct, frozen=True):
    """Any object: all that is looked at is whose it is."""

    metadata: Meta = Meta()


async def create_job(client: Client, job: GPUJobRecord, rendered: Mapping[str, Any]) -> Job:
    """The Job as rendered, or as it exists already; one that lost our label gets it back.

    One that calls itself this GPUJob's and is none that we would make (``state.own_jobs``) is in
    the way like somebody else's.

    Raises:
        StaleJobError: try again soon.
        NotCreatableError: the user has to do something.
        ApiError: the API server could not be asked.
    """
    name = rendered["metadata"]["name"]
    try:
        return await client.create(job_path(job.namespace), rendered, Job)
    except errors.Conflict:
        found = await client.get(job_path(job.namespace, name), Job)
    except errors.Unprocessable as error:
        message = f"spec: the API server refuses its Job: {error.message}"
        raise NotCreatableError(message, elsewhere=False) from error
    except errors.Forbidden as error:
        raise _forbidden("Job", job, error) from error
    _ours("Job", job, name, found)
    record = job_record(found)
    if record is not None and (why := misfit(record, job)):
        raise NotCreatableError(
            f"metadata.name: a Job named {name} exists in namespace {job.namespace} already and "
            f"was changed or made by somebody else: {why}; delete it, and it is made anew",
            elsewhere=True,
        )
    if LABEL_JOB in found.metadata.labels:
        return found
    # Whoever may edit Jobs can take it away, and only Jobs that bear it are watched.
    body = {"metadata": {"uid": found.metadata.uid, "labels": {LABEL_JOB: label_value(job.name)}}}
    return await client.merge_patch(job_path(job.namespace, name), body, Job)


async def create_service(client: Client, job: GPUJobRecord, project: str) -> None:
    """The Service through which the pods find each other, unless it exists already.

    Raises:
        StaleJobError: try again soon.
        NotCreatableError: the user has to do something.
        ApiError: the API server could not be asked.
    """
    body = service(job.name, job.namespace, job.uid, project)
    try:
        await client.create(core("services", job.namespace), body)
    except errors.Conflict:
        found = await client.get(core("services", job.namespace, job.name), Named)
        _ours("Service", job, job.name, found)
    except errors.Unprocessable as error:
        message = f"metadata.name: the API server refuses its Service: {error.message}"
        raise NotCreatableError(message, elsewhere=False) from error
    except errors.Forbidden as error:
        raise _forbidden("Service", job, error) from error


def _forbidden(kind: str, job: GPUJobRecord, error: errors.Forbidden) -> NotCreatableError:
    """A ResourceQuota on such objects that is used up, or a policy: its own words say which."""
    message = f"metadata.namespace: no {kind} may be created in {job.namespace}: {error.message}"
    return NotCreatableError(message, elsewhere=True)


def _ours(kind: str, job: GPUJobRecord, name: str, found: Job | Named) -> None:
    """Nothing, if what exists under the name is this GPUJob's."""
    meta = found.metadata
    if any(owner.uid == job.uid for owner in meta.owner_references):
        return
    owner = next((o for o in meta.owner_references if o.controller and o.kind == "GPUJob"), None)
    if meta.deletion_timestamp or (owner is not None and owner.name == job.name):
        raise StaleJobError(f"{kind} {name} of an earlier GPUJob {job.key} is not gone yet")
    whose = f"is GPUJob {owner.name}'s" if owner is not None else "is not this GPUJob's"
    raise NotCreatableError(
        f"metadata.name: a {kind} named {name} exists in namespace {job.namespace} already and "
        f"{whose}; delete it, or give the GPUJob another name",
        elsewhere=True,
    )
