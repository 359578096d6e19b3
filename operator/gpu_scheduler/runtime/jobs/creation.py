"""Creating what a GPUJob consists of, once: a Job for each role, and a Service for their names.

Creating again what exists is no error, so whoever was killed in between simply begins anew. What
bears the name already and belongs to somebody else is left alone.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpu_scheduler.api.names import FIRST_TRIAL, GROUP
from gpu_scheduler.jobs.drift import changes, steps
from gpu_scheduler.jobs.service import service
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import OF_THE_COLLECTOR, Job, Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.runtime.jobs.refused.quota_words import of_quota
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_record
from gpu_scheduler.state.jobs.own_jobs import misfit

_MOST_CHARS = 200


class StaleJobError(Exception):
    """An object of a deleted GPUJob of the same name is still being removed."""


class NotCreatableError(Exception):
    """A sentence for the user: what is in the way, and what to do about it."""


class QuotaUsedUpError(NotCreatableError):
    """A ResourceQuota of the namespace has no room for one more."""


class TemplateRefusedError(NotCreatableError):
    """The API server finds the pods' template wrong."""


class FoundMeta(Meta, frozen=True):
    """metadata, with who keeps the object from going."""

    finalizers: tuple[str, ...] = ()


class FoundJob(Job, frozen=True):
    """A Job that exists already."""

    metadata: FoundMeta = FoundMeta()


class Named(msgspec.Struct, frozen=True):
    """Any object: all that is looked at is whose it is."""

    metadata: Meta = Meta()


async def create_job(client: Client, job: GPUJobRecord, rendered: Mapping[str, Any]) -> Job:
    """The Job as rendered, or as it exists already; what somebody changed of it is put back.

    One that calls itself this GPUJob's and cannot be made as it should be is in the way like
    somebody else's.

    Raises:
        StaleJobError: try again soon.
        NotCreatableError: the user has to do something.
        ApiError: the API server could not be asked.
    """
    name = rendered["metadata"]["name"]
    try:
        return await client.create(job_path(job.namespace), rendered, Job)
    except errors.Conflict:
        found = await client.get(job_path(job.namespace, name), FoundJob)
    except (errors.Forbidden, errors.NotFound) as error:
        raise _not_here("Job", job, error) from error
    except errors.Refused as error:
        message = f"spec: the API server refuses its Job: {error.message}"
        raise TemplateRefusedError(_with_labels(message, error)) from error
    return await _put_right(client, job, rendered, found)


async def kept_by_somebody(client: Client, job: GPUJobRecord, name: str) -> None:
    """Nothing, where a Job that is being deleted will soon be gone.

    Raises:
        NotCreatableError: somebody's finalizer keeps it.
        ApiError: the API server could not be asked.
    """
    try:
        found = await client.get(job_path(job.namespace, name), FoundJob)
    except errors.NotFound:
        return
    if found.metadata.deletion_timestamp:
        why = _kept(name, found)
        if isinstance(why, NotCreatableError):
            raise why


async def found_again(client: Client, job: GPUJobRecord, rendered: Mapping[str, Any]) -> Job | None:
    """A Job that the watch shows no more: None where it is gone, else as it should be.

    Somebody may have taken the label off by which it is watched, and its pods run on. Raises what
    ``create_job`` does.
    """
    path = job_path(job.namespace, rendered["metadata"]["name"])
    try:
        found = await client.get(path, FoundJob)
    except errors.NotFound:
        return None
    if found.metadata.deletion_timestamp or not _controls(job, found):
        return None
    return await _put_right(client, job, rendered, found)


async def _put_right(
    client: Client, job: GPUJobRecord, rendered: Mapping[str, Any], found: FoundJob
) -> Job:
    name = rendered["metadata"]["name"]
    _ours("Job", job, name, found)
    if found.metadata.deletion_timestamp:
        raise _kept(name, found)
    most = max((ask.at_once for ask in job.requests.values()), default=0)
    for body in _differs(found, rendered, most):
        path, meta = job_path(job.namespace, name), body.get("metadata", {})
        uid = {"uid": found.metadata.uid}
        try:
            found = await client.merge_patch(path, {**body, "metadata": meta | uid}, FoundJob)
        except errors.NotFound as error:
            raise StaleJobError(f"Job {name} has gone") from error
        except errors.Refused as error:
            raise _foreign(name, job, str(error)) from error
    record = job_record(found)
    if record is not None and (why := misfit(record, job)):
        raise _foreign(name, job, why)
    first, wanted = (m.get(FIRST_TRIAL) for m in (found.metadata.annotations, _notes(rendered)))
    if first != wanted:
        raise _foreign(name, job, f"its first trial is {first}, and should be {wanted}")
    return found


def _notes(rendered: Mapping[str, Any]) -> Mapping[str, str]:
    return rendered["metadata"].get("annotations") or {}


def _differs(found: Job, rendered: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """The patches that bring back its labels and annotations, and its size unless it has ended.

    ``most``: so wide it may be at most.
    """
    meta = {}
    for kind, there in (
        ("labels", found.metadata.labels),
        ("annotations", found.metadata.annotations),
    ):
        wanted = rendered["metadata"].get(kind) or {}
        if lost := {
            k: v for k, v in wanted.items() if k.startswith(f"{GROUP}/") and k not in there
        }:
            meta[kind] = lost
    patches: list[dict[str, Any]] = [{"metadata": meta}] if meta else []
    ends = [c for c in found.status.conditions if c.type in ("Complete", "Failed")]
    ended = any(condition.status == "True" for condition in ends)
    # Nobody knows here which of its pods run: below what it may have, ``parallelism`` alone goes.
    wide = max(min(found.spec.parallelism or 0, most), rendered["spec"].get("parallelism", 0))
    if not ended and (fields := changes(found.spec, {**rendered["spec"], "parallelism": wide})):
        patches += [{"spec": spec} for spec in steps(found.spec, fields)]
    return patches


def _foreign(name: str, job: GPUJobRecord, why: str) -> NotCreatableError:
    return NotCreatableError(
        f"metadata.name: a Job named {name} exists in namespace {job.namespace} already and was "
        f"changed or made by somebody else: {why}; delete it, and it is made anew",
    )


def _kept(name: str, found: "FoundJob") -> Exception:
    """Why a Job that is being deleted is still there."""
    others = [each for each in found.metadata.finalizers if each not in OF_THE_COLLECTOR]
    if not others:
        return StaleJobError(f"Job {name} is being deleted and is not gone yet")
    return NotCreatableError(
        f"metadata.name: Job {name} is being deleted, and is kept by the finalizer "
        f"{', '.join(others)[:_MOST_CHARS]}; it is made anew once whoever set that has removed it",
    )


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
    except (errors.Forbidden, errors.NotFound) as error:
        raise _not_here("Service", job, error) from error
    except errors.Refused as error:
        message = f"metadata.name: the API server refuses its Service: {error.message}"
        raise NotCreatableError(message) from error


def _not_here(kind: str, job: GPUJobRecord, error: errors.Refused) -> NotCreatableError:
    """A ResourceQuota that is used up, a policy, no such namespace: its own words say which."""
    message = f"metadata.namespace: no {kind} may be created in {job.namespace}: {error.message}"
    if of_quota(error):
        return QuotaUsedUpError(message)
    return NotCreatableError(_with_labels(message, error) if kind == "Job" else message)


def _with_labels(message: str, error: errors.Refused) -> str:
    """Where a Job gets the label that a policy wants, if that is it."""
    if "label" not in error.message or not errors.by_policy(error):
        return message
    return f"{message}; labels of the GPUJob and those in template.metadata.labels are on its Job"


def _controls(job: GPUJobRecord, found: Job | Named) -> bool:
    """Whether the GPUJob of this uid is its controller, and no earlier one of the same name."""
    return any(each.controller and each.uid == job.uid for each in found.metadata.owner_references)


def _ours(kind: str, job: GPUJobRecord, name: str, found: Job | Named) -> None:
    """Nothing, if what exists under the name is this GPUJob's."""
    if _controls(job, found):
        return
    meta = found.metadata
    owner = next((o for o in meta.owner_references if o.controller and o.kind == "GPUJob"), None)
    if meta.deletion_timestamp or (owner is not None and owner.name == job.name):
        raise StaleJobError(f"{kind} {name} of an earlier GPUJob {job.key} is not gone yet")
    whose = f"is GPUJob {owner.name}'s" if owner is not None else "is not this GPUJob's"
    raise NotCreatableError(
        f"metadata.name: a {kind} named {name} exists in namespace {job.namespace} already and "
        f"{whose}; delete it, or give the GPUJob another name",
    )
