"""One GPUJob from what it says to Jobs that exist: the worker behind the queue of keys.

Level-triggered and idempotent: it looks at the record, never at what happened. A GPUJob whose end
is already in its status is never run again, even if its Job is gone; whether it was we who wrote
that, ``stored_ends`` asks. Errors of the API server put
the key back with a growing delay; what the user must mend goes into the record's ``problem``. How
Jobs are made, and which, ``RoleJobs`` and ``Segments`` know.
"""

import logging
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.bounded import digest
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.jobs import stored_ends
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.claims import ClaimMissingError
from gpu_scheduler.runtime.jobs.creation import (
    NotCreatableError,
    QuotaUsedUpError,
    StaleJobError,
    TemplateRefusedError,
)
from gpu_scheduler.runtime.jobs.doubting import cannot_be_made
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.runtime.jobs.removal import Removal
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, namespace_of
from gpu_scheduler.state.jobs.projects import no_project

log = logging.getLogger(__name__)


class Jobs(Protocol):
    """The Jobs of one kind of GPUJob. All but ``complaint`` raise ApiError: try again."""

    async def ended(self, job: GPUJobRecord) -> bool:
        """Whether the GPUJob is over; then nothing of it runs on."""
        ...

    async def stop(self, job: GPUJobRecord) -> None:
        """Suspend the Jobs that have not ended."""
        ...

    async def follow(self, job: GPUJobRecord, project: ProjectName) -> str:
        """Make those of which pods have places, or adapt them; what is wrong, empty if nothing.

        Raises:
            StaleJobError: try again soon.
            NotCreatableError: the user has to do something.
        """
        ...

    def complaint(self, job: GPUJobRecord) -> str:
        """Why they are not as they should be, because of somebody else; empty if nobody."""
        ...


@dataclass(frozen=True, slots=True)
class AllJobs:
    """The Jobs of all GPUJobs: of those that are sweeps, and of the others."""

    sweeps: Jobs
    roles: Jobs

    def of(self, job: GPUJobRecord) -> Jobs:
        """Those of one of them."""
        return self.sweeps if job.spec is not None and job.spec.sweep is not None else self.roles


class Reconciler:
    """Makes Jobs follow GPUJobs."""

    def __init__(
        self,
        state: ClusterState,
        queue: WorkQueue[JobKey],
        jobs: AllJobs,
        accepting: Accepting,
        refusals: Refusals,
        removal: Removal,
    ) -> None:
        """Nothing is looked at yet."""
        self._accepting = accepting
        self._state = state
        self._queue = queue
        self._jobs = jobs
        self._refusals = refusals
        self._removal = removal
        self._said: dict[JobKey, bytes] = {}  # digests of why it failed, so that it is said once

    async def handle(self, key: JobKey) -> None:
        """Work on one key; for ``WorkQueue.work``."""
        try:
            await self._reconcile(key)
            self._queue.succeeded(key)
            self._said.pop(key, None)
        except errors.NotLeader:
            raise
        except (errors.ApiError, StaleJobError) as error:
            refused, job = _final(error), self._state.gpujobs.get(key)
            delay = self._queue.retry(key, refused=refused)
            if refused and job is not None:
                self._cannot_follow(job, f"the API server refuses what its operator asks: {error}")
            if self._said.get(key) != (said := digest(str(error))):
                self._said[key] = said
                log.info("%s: %s; again in %.1f s, and then ever more seldom", key, error, delay)
        except Exception:  # a mistake of ours must not stop everybody else's jobs
            delay = self._queue.retry(key)
            unexpected("reconcile", f"{key} (again in {delay:.1f} s)")

    async def _reconcile(self, key: JobKey) -> None:
        job = self._state.gpujobs.get(key)
        leaving = namespace_of(key) in self._state.namespaces.terminating
        if leaving or job is None or job.deleting or job.spec is None:
            self._refusals.forget(key)
        if leaving:
            if job is not None and not job.deleting:
                self._refuse(job, going(job.namespace))
            return await self._removal.leave(key)
        await self._removal.let_go(key)
        if job is None or job.deleting:
            return None
        stored_ends.judge(self._state, job)
        jobs = self._jobs.of(job)
        if await jobs.ended(job):
            self._cannot_follow(job, "")
            return await self._removal.expire(job)
        if job.spec is None:
            return self._refuse(job, job.problem)
        project = self._state.projects.owner(job.namespace)
        if project is None or job.unknown or self._state.projects.records[project].problem:
            self._refuse(job, job.unknown or self._not_charged(job, project))
            # To give GPUs back nothing has to be right.
            return await jobs.stop(job) if job.spec.suspend else None
        if self._state.jobs.deleted.get(key) and await self._removal.forget_if_gone(job):
            return None
        about = self._about(job, project)
        untried = job.problem or not job.own(self._state.workloads.jobs(key))
        if untried and not self._refusals.may_try(key, about):
            return None
        reason = Reason.INVALID
        try:
            problem = await jobs.follow(job, project)
        except ClaimMissingError as error:
            reason, problem = Reason.VOLUME_NOT_MOUNTED, str(error)
        except NotCreatableError as error:
            if isinstance(error, QuotaUsedUpError):
                reason = Reason.PODS_REFUSED
            refused = isinstance(error, TemplateRefusedError)
            problem = (
                await self._accepting.explained(job, project, error) if refused else str(error)
            )
            cannot_be_made(self._state, key, problem)
        self._note_verdict(job, project, problem, reason)
        self._cannot_follow(job, jobs.complaint(job))
        return None

    def _not_charged(self, job: GPUJobRecord, project: ProjectName | None) -> str:
        """Why nobody's quota can be charged for the job."""
        if project is None:
            return no_project(job.namespace)
        return (
            f"GPUProject {project} cannot be used: {self._state.projects.records[project].problem}"
        )

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
            self._state.changes.touch(job.key)

    def _about(self, job: GPUJobRecord, project: ProjectName) -> Hashable:
        """What a verdict is about; it says nothing once this is another."""
        return (
            job.uid,
            job.generation,
            job.labels,
            project,
            self._state.projects.records[project].generation,
        )

    def _note_verdict(
        self, job: GPUJobRecord, project: ProjectName, problem: str, reason: Reason
    ) -> None:
        """Tell the API server's verdict; what it refuses is looked at again."""
        same = sorted(problem.split()) == sorted(job.problem.split())
        # Several causes come in any order.
        self._refuse(job, job.problem if same else problem, reason)
        if problem:
            self._refusals.refused(job.key, self._about(job, project))
        else:
            self._refusals.accepted(job.key)

    def _refuse(self, judged: GPUJobRecord, problem: str, reason: Reason = Reason.INVALID) -> None:
        """Note what is wrong, or that nothing is, with the spec that was judged."""
        job = self._judged(judged)
        if job is not None and (job.problem, job.problem_as) != (problem, reason):
            job.problem = problem
            job.problem_as = reason
            self._state.decisions.give_back(job.key)
            self._state.changes.touch(job.key)
            self._state.changes.replan()


def _final(error: Exception) -> bool:
    """Whether it stays so; what is gone, or another one now, is told by the watch."""
    if not isinstance(error, errors.Refused) or isinstance(error, errors.NotFound):
        return False
    return not errors.another_object(error)


def going(namespace: str) -> str:
    """What is wrong with a GPUJob whose namespace is being deleted."""
    return (
        f"metadata.namespace: namespace {namespace} is being deleted: nothing new starts there, "
        f"what runs ends within the grace period of its pods"
    )
