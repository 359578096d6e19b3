"""One GPUJob from what it says to a Job that exists: the worker behind the queue of keys.

Level-triggered and idempotent: it looks at the record, never at what happened. A GPUJob whose end
is already in its status is never run again, even if its Job is gone. Errors of the API server put
the key back with a growing delay; what the user must mend goes into the record's ``problem``.
"""

import logging
import time
from collections.abc import Callable, Iterable

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.core.request import JobKey, ProjectName
from gpu_scheduler.jobs.drift import mutable_patch
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job, JobSpec
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.runtime.acceptance import Acceptance, Refused
from gpu_scheduler.runtime.intake import GPUJOBS
from gpu_scheduler.runtime.queue import WorkQueue
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord, epoch_seconds
from gpu_scheduler.state.world import World

log = logging.getLogger(__name__)

FINISHED = {"Succeeded", "Failed"}
_RECHECK_SECONDS = 30.0  # a refused pod template may be accepted once its namespace changed


class StaleJobError(Exception):
    """A Job of a deleted GPUJob of the same name is still being removed."""


class Reconciler:
    """Makes Jobs follow GPUJobs."""

    def __init__(
        self,
        world: World,
        client: Client,
        acceptance: Acceptance,
        queue: WorkQueue[JobKey],
        *,
        wake: Callable[[], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        """``now``: epoch seconds, to tell when a finished job's time to live is over."""
        self._world, self._client, self._acceptance = world, client, acceptance
        self._queue, self._wake, self._now = queue, wake, now

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
            log.exception("%s: unexpected; again in %.1f s", key, delay)

    async def _reconcile(self, key: JobKey) -> None:
        job = self._world.gpujobs.get(key)
        if job is None or job.deleting:
            return
        running = list(self._world.jobs_of(key))
        if self._finished(job, running):
            await self._expire(job, running)
            return
        if job.spec is None:
            return self._refuse(job, job.problem)
        if job.unknown:
            return self._refuse(job, job.unknown)
        project = self._world.projects.owner(job.namespace)
        if project is None:
            return self._refuse(job, no_project(job.namespace, self._world.projects.records))
        problem = self._world.projects.records[project].problem
        if problem:
            return self._refuse(job, f"GPUProject {project} cannot be used: {problem}")
        own = next((j for j in running if j.owner_uid == job.uid and not j.deleting), None)
        if own is None:
            await self._create(job, project)
        else:
            self._refuse(job, "")
            await self._follow(job, own, project)

    def _finished(self, job: GPUJobRecord, running: list[JobRecord]) -> bool:
        ended = any((j.complete or j.failure) and j.owner_uid == job.uid for j in running)
        return ended or job.status.get("phase") in FINISHED

    async def _create(self, job: GPUJobRecord, project: ProjectName) -> None:
        judged = await self._acceptance.judge(job, project)
        if isinstance(judged, Refused):
            self._refuse(job, judged.message)
            self._queue.add_after(job.key, _RECHECK_SECONDS)
            return
        try:
            made = await self._client.create(job_path(job.namespace), judged.job, Job)
        except errors.Conflict:
            made = await self._client.get(job_path(job.namespace, job.name), Job)
            if not any(o.uid == job.uid for o in made.metadata.owner_references):
                return self._name_taken(job, made)
        except errors.Unprocessable as error:
            return self._refuse(job, f"spec: the API server refuses its Job: {error.message}")
        self._refuse(job, "")
        self._world.job_changed(made)
        self._wake()

    def _name_taken(self, job: GPUJobRecord, other: Job) -> None:
        owner = next((o for o in other.metadata.owner_references if o.controller), None)
        if other.metadata.deletion_timestamp or (owner is not None and owner.kind == "GPUJob"):
            raise StaleJobError(f"Job {job.key} of an earlier GPUJob is not gone yet")
        self._refuse(
            job,
            f"metadata.name: a Job named {job.name} exists in namespace {job.namespace} already "
            "and is not this GPUJob's; delete it, or give the GPUJob another name",
        )
        self._queue.add_after(job.key, _RECHECK_SECONDS)

    async def _follow(self, job: GPUJobRecord, own: JobRecord, project: ProjectName) -> None:
        wanted = await self._acceptance.rendered(job, project)
        existing = Job(
            spec=JobSpec(
                parallelism=own.parallelism, completions=own.completions, suspend=own.suspend
            )
        )
        patch = mutable_patch(existing, wanted.job)
        if patch is None:
            return
        patch["metadata"] = {"uid": own.uid}
        changed = await self._client.merge_patch(job_path(own.namespace, own.name), patch, Job)
        self._world.job_changed(changed)
        self._wake()

    async def _expire(self, job: GPUJobRecord, running: list[JobRecord]) -> None:
        """Delete a finished GPUJob when its time to live is over."""
        if job.spec is None or job.spec.ttl_seconds_after_finished is None:
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

    def _refuse(self, judged: GPUJobRecord, problem: str) -> None:
        """Note what is wrong, or that nothing is, with the spec that was judged."""
        job = self._world.gpujobs.get(judged.key)
        if job is None or (job.uid, job.generation) != (judged.uid, judged.generation):
            return  # the news about it are in the queue
        if job.problem != problem:
            job.problem = problem
            self._world.touched.add(job.key)
            self._world.version += 1
            self._wake()


def no_project(namespace: str, projects: Iterable[ProjectName]) -> str:
    """What is wrong with a GPUJob whose namespace no project lists; ``projects``: all there are."""
    claimed = sorted(projects)
    known = f"; there are {', '.join(claimed[:5])}" if claimed else ""
    return (
        f"metadata.namespace: namespace {namespace} belongs to no project{known}. An "
        f"administrator adds it to spec.namespaces of a GPUProject (kubectl edit gpuproject "
        f"NAME) or creates one that lists it"
    )
