"""One GPUJob from what it says to Jobs that exist: the worker behind the queue of keys.

Level-triggered and idempotent: it looks at the record, never at what happened. A GPUJob whose end
is already in its status is never run again, even if its Job is gone. Errors of the API server put
the key back with a growing delay; what the user must mend goes into the record's ``problem``.
"""

import logging
import time
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from typing import Any

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.parts import is_distributed
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.window import LEAST_SPARE
from gpu_scheduler.jobs.drift import changes, wanted_sizes
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.acceptance import Acceptance, Refused
from gpu_scheduler.runtime.creation import (
    NotCreatableError,
    StaleJobError,
    create_job,
    create_service,
)
from gpu_scheduler.runtime.custom_resources import GPUJOBS
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.runtime.queue import WorkQueue
from gpu_scheduler.runtime.refusals import Refusals
from gpu_scheduler.runtime.width import AGAIN_SECONDS, pods_at_once
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord, epoch_seconds
from gpu_scheduler.sweeps.runtime.segments import Segments

log = logging.getLogger(__name__)

FINISHED = {"Succeeded", "Failed"}
_RECHECK_SECONDS = 30.0  # a refused change may be accepted once its namespace changed


class Reconciler:
    """Makes Jobs follow GPUJobs."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        acceptance: Acceptance,
        queue: WorkQueue[JobKey],
        writes: JobWrites,
        *,
        wake: Callable[[], None],
        sweeps: Segments | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now``: epoch seconds, to tell when a finished job's time to live is over.

        ``clock`` tells when refused jobs are looked at again.
        """
        self._refusals = Refusals(clock, queue.add_after)
        self._sweeps = sweeps
        self._state, self._client, self._acceptance = state, client, acceptance
        self._queue, self._wake, self._now = queue, wake, now
        self._writes = writes

    async def handle(self, key: JobKey) -> None:
        """Work on one key; for ``WorkQueue.work``."""
        try:
            await self._reconcile(key)
            self._queue.succeeded(key)
        except errors.NotLeader:
            raise
        except (errors.ApiError, StaleJobError) as error:
            delay = self._queue.retry(key)
            log.info("%s: %s; again in %.1f s", key, error, delay)
        except Exception:  # a mistake of ours must not stop everybody else's jobs
            delay = self._queue.retry(key)
            unexpected("reconcile", f"{key} (again in {delay:.1f} s)")

    def namespace_changed(self, namespace: str) -> None:
        """What may refuse the GPUJobs of a namespace is another."""
        self._refusals.changed(namespace)

    async def _reconcile(self, key: JobKey) -> None:
        job = self._state.gpujobs.get(key)
        if key.partition("/")[0] in self._state.terminating:
            return await self._leave(key, job)
        if job is None or job.deleting:
            self._refusals.forget(key)
            return None
        running = list(self._state.jobs_of(key))
        sweeps = self._sweeps if job.spec is not None and job.spec.sweep is not None else None
        if sweeps is not None and await sweeps.ended(job):
            return await self._expire(job, [])
        if sweeps is None and self._finished(job, running):
            self._cannot_follow(job, "")
            await self._end(job, running)
            await self._expire(job, running)
            return
        if job.spec is None:
            self._refusals.forget(key)
            return self._refuse(job, job.problem)
        project = self._state.projects.owner(job.namespace)
        if project is None or job.unknown or self._state.projects.records[project].problem:
            self._refuse(job, job.unknown or self._not_charged(job, project))
            return await self._give_back(job, running)
        own = {j.role: j for j in running if j.owner_uid == job.uid and not j.deleting}
        if not own and not self._refusals.may_try(key, self._about(job, project)):
            return None
        if sweeps is not None:
            return await self._sweep(job, sweeps, project)
        if job.asks.keys() - own.keys():
            await self._give_back(job, running)
            await self._create(job, own.keys(), project)
        else:
            self._refuse(job, "")
            await self._follow(job, own, project)

    async def _leave(self, key: JobKey, job: GPUJobRecord | None) -> None:
        """Delete the Jobs of a namespace that is being deleted: ADR 0040."""
        self._refusals.forget(key)
        if job is not None and not job.deleting:
            self._refuse(job, going(job.namespace))
        for own in self._state.job_book.claims(key):
            if own.deleting:
                continue
            log.info("%s: its namespace is being deleted: deleting Job %s", key, own.name)
            try:
                await self._client.delete(
                    job_path(own.namespace, own.name), uid=own.uid, propagation="Background"
                )
            except (errors.NotFound, errors.Conflict):
                continue

    async def _sweep(self, job: GPUJobRecord, sweeps: Segments, project: ProjectName) -> None:
        try:
            problem = await sweeps.follow(job, project)
        except NotCreatableError as error:
            problem = str(error)
        self._note_verdict(job, project, problem or "")
        self._cannot_follow(job, sweeps.complaint(job))
        if job.spec is not None and job.spec.parallelism > LEAST_SPARE:
            self._queue.add_after(job.key, AGAIN_SECONDS)

    def _finished(self, job: GPUJobRecord, running: list[JobRecord]) -> bool:
        own = [j for j in running if j.owner_uid == job.uid]
        complete = {j.role for j in own if j.complete}
        return (
            any(j.failure for j in own)
            or (bool(own) and complete >= (job.asks.keys() or {""}))
            or job.status.get("phase") in FINISHED
        )

    def _not_charged(self, job: GPUJobRecord, project: ProjectName | None) -> str:
        """Why nobody's quota can be charged for the job."""
        records = self._state.projects.records
        if project is None:
            return no_project(job.namespace)
        return f"GPUProject {project} cannot be used: {records[project].problem}"

    async def _give_back(self, job: GPUJobRecord, running: list[JobRecord]) -> None:
        """Suspend what runs, if its owner says so: for that nothing has to be right."""
        if job.spec is not None and job.spec.suspend:
            await self._stop(job, running, "is suspended")

    async def _end(self, job: GPUJobRecord, running: list[JobRecord]) -> None:
        """Stop the other roles of a job in which one has failed: nobody waits for them."""
        await self._stop(job, running, "has failed")

    async def _stop(self, job: GPUJobRecord, running: list[JobRecord], why: str) -> None:
        for other in running:
            if other.owner_uid != job.uid or other.deleting or other.suspend:
                continue
            if not (other.complete or other.failure):
                log.info("%s %s: stopping Job %s", job.key, why, other.name)
                await self._writes.write(other, {"suspend": True})

    async def _create(
        self, job: GPUJobRecord, existing: Container[str], project: ProjectName
    ) -> None:
        judged = await self._acceptance.judge(job, project)
        if isinstance(judged, Refused):
            return self._note_verdict(job, project, judged.message)
        try:
            if job.spec is not None and is_distributed(job.spec):
                await create_service(self._client, job, project)
            for accepted in judged:
                if accepted.role not in existing:
                    spec = accepted.job["spec"]
                    width = self._width(job, project, spec["parallelism"])
                    body = {**accepted.job, "spec": spec | {"parallelism": width}}
                    made = await create_job(self._client, job, body)
                    self._state.job_changed(made)
        except NotCreatableError as error:
            return self._note_verdict(job, project, str(error))
        self._note_verdict(job, project, "")
        self._cannot_follow(job, "")
        self._wake()

    async def _follow(
        self, job: GPUJobRecord, own: Mapping[str, JobRecord], project: ProjectName
    ) -> None:
        for role, size in wanted_sizes(job.spec).items() if job.spec is not None else ():
            existing = own[role]
            if existing.complete:
                continue
            width = self._width(job, project, size["parallelism"], (existing,))
            differs = changes(existing, size | {"parallelism": width})
            if differs.get("suspend") is False and (
                why := await self._edited(job, existing, project)
            ):
                self._cannot_follow(job, why)
                return self._queue.add_after(job.key, _RECHECK_SECONDS)
            try:
                await self._writes.write(existing, differs)
            except (errors.Forbidden, errors.Unprocessable) as error:
                if any(cause.field == "metadata.uid" for cause in error.details.causes):
                    raise  # another Job of that name: news of it are on their way
                self._cannot_follow(job, refused_change(existing, differs, error))
                return self._queue.add_after(job.key, _RECHECK_SECONDS)
        self._cannot_follow(job, self._writes.complaint(own.values()))

    async def _edited(self, job: GPUJobRecord, own: JobRecord, project: ProjectName) -> str:
        """Why a Job stays suspended; empty if it need not."""
        rendered = await self._acceptance.rendered(job, project)
        return await self._writes.edited(own, {each.role: each.job for each in rendered}[own.role])

    def _width(
        self, job: GPUJobRecord, project: ProjectName, wanted: int, own: Iterable[JobRecord] = ()
    ) -> int:
        """How wide a Job is made (``own``: if it exists): no wider than is of use."""
        width = min(wanted, pods_at_once(self._state, job, project, own))
        if width < wanted:
            self._queue.add_after(job.key, AGAIN_SECONDS)
        return width

    async def _expire(self, job: GPUJobRecord, running: list[JobRecord]) -> None:
        """Delete a finished GPUJob when its time to live is over and its end has been told.

        The status writer brings the job back here when it has told it.
        """
        if job.spec is None or job.spec.ttl_seconds_after_finished is None:
            return
        if job.status.get("phase") not in FINISHED:
            return
        ended = [epoch_seconds(j.finished) for j in running if j.finished] or [
            epoch_seconds(c.get("lastTransitionTime", ""))
            for c in job.status.get("conditions") or ()
            if c.get("type") in ("Complete", "Failed") and c.get("status") == "True"
        ]
        left = max(ended, default=self._now()) + job.spec.ttl_seconds_after_finished - self._now()
        if left > 0:
            self._queue.add_after(job.key, left)
            return
        path = of_group(GROUP, VERSION, GPUJOBS, job.namespace, job.name)
        log.info("%s: finished, and its time to live is over: deleting", job.key)
        try:
            await self._client.delete(path, uid=job.uid, propagation="Background")
        except (errors.NotFound, errors.Conflict):
            return

    def _judged(self, before: GPUJobRecord) -> GPUJobRecord | None:
        """The record as it is now; None where the spec is another: the news are in the queue."""
        job = self._state.gpujobs.get(before.key)
        if job is None or (job.uid, job.generation) != (before.uid, before.generation):
            return None
        return job

    def _cannot_follow(self, judged: GPUJobRecord, why: str) -> None:
        """Note why a Job stays as it is, or that it does not."""
        job = self._judged(judged)
        if job is not None and job.unfollowed != why:
            job.unfollowed = why
            self._state.touch(job.key)

    def _about(self, job: GPUJobRecord, project: ProjectName) -> Hashable:
        """What a verdict is about; it says nothing once this is another."""
        return (job.uid, job.generation, project, self._state.projects.records[project].generation)

    def _note_verdict(self, job: GPUJobRecord, project: ProjectName, problem: str) -> None:
        """Tell the API server's verdict; what it refuses is looked at again."""
        same = sorted(problem.split()) == sorted(job.problem.split())
        self._refuse(job, job.problem if same else problem)  # several causes come in any order
        if problem:
            self._refusals.refused(job.key, self._about(job, project))
        else:
            self._refusals.accepted(job.key)

    def _refuse(self, judged: GPUJobRecord, problem: str) -> None:
        """Note what is wrong, or that nothing is, with the spec that was judged."""
        job = self._judged(judged)
        if job is not None and job.problem != problem:
            job.problem = problem
            self._state.touch(job.key)
            self._state.replan()
            self._wake()


def refused_change(job: JobRecord, differs: Mapping[str, Any], error: errors.ApiError) -> str:
    """What is wrong with a change that the API server, or a policy in it, refuses."""
    fields = " and ".join(f"spec.{name}" for name in differs)
    return f"{fields}: the API server refuses the change of Job {job.name}: {error.message}"


def going(namespace: str) -> str:
    """What is wrong with a GPUJob whose namespace is being deleted."""
    return (
        f"metadata.namespace: namespace {namespace} is being deleted: nothing new starts there, "
        f"what runs ends within the grace period of its pods"
    )


def no_project(namespace: str) -> str:
    """What is wrong with a GPUJob whose namespace no project lists.

    It names no project: whoever reads it may not be one to see them.
    """
    return (
        f"metadata.namespace: namespace {namespace} belongs to no project. An administrator adds "
        f"it to spec.namespaces of a GPUProject (kubectl edit gpuproject NAME) or creates one that "
        f"lists it"
    )
