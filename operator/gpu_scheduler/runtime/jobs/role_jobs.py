"""The Jobs of GPUJobs that are no sweeps: one, or one for each role.

A Job is made when a pod of it has a place, and is as wide as its pods have places
(``parallelism``).
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_scheduler.api.parts import is_distributed
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.drift import changes
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.creation import (
    create_job,
    create_service,
    found_again,
    kept_by_somebody,
)
from gpu_scheduler.runtime.jobs.doubting import cannot_be_made
from gpu_scheduler.runtime.jobs.job_writes import STAYS, JobWrites
from gpu_scheduler.runtime.jobs.parallelism import sizes_of, told, widest
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord


class RoleJobs:
    """``Jobs`` of the reconciler."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        acceptance: Acceptance,
        accepting: Accepting,
        writes: JobWrites,
    ) -> None:
        """``acceptance`` renders them, ``accepting`` judges, ``writes`` changes those there are."""
        self._state = state
        self._client = client
        self._acceptance = acceptance
        self._accepting = accepting
        self._writes = writes

    async def ended(self, job: GPUJobRecord) -> bool:
        """See ``Jobs``."""
        own = [each for each in self._state.workloads.jobs(job.key) if each.owner_uid == job.uid]
        complete = {each.role for each in own if each.complete}
        over = (
            job.finished
            or any(each.failure for each in own)
            or (bool(own) and complete >= (job.requests.keys() or {""}))
        )
        if over:
            await self.stop(job)
        return over

    async def stop(self, job: GPUJobRecord) -> None:
        """See ``Jobs``."""
        await self._writes.stop(
            job.own(self._state.workloads.jobs(job.key)), "its GPUJob is over or suspended"
        )

    async def follow(self, job: GPUJobRecord, project: ProjectName) -> str:
        """See ``Jobs``."""
        if job.spec is None:
            return ""
        self._state.decisions.set_inadmissible(
            job.key, STAYS, self._writes.stay(job.own(self._state.workloads.jobs(job.key)))
        )
        refused = await self._accepting.refused(job, project)
        await self._find_again(job, project)
        for going in self._state.workloads.jobs(job.key):
            if going.deleting:
                await kept_by_somebody(self._client, job, going.name)
        own = {each.role: each for each in job.own(self._state.workloads.jobs(job.key))}
        missing = {
            r: widest(self._state.decisions.nominated.of_role(job.key, r))
            for r in job.requests.keys() - own.keys()
        }
        if any(missing.values()) and not refused:
            await self._create(job, project, missing)
        for role, each in own.items():
            if role not in job.requests or each.complete:
                continue
            nominated = self._state.decisions.nominated.of_role(job.key, role)
            wanted = sizes_of(self._state, job, each, nominated)
            rendered = partial(self._rendered, job, project, role)
            if await self._writes.change(each, changes(each, wanted), rendered):
                told(nominated, {role: wanted.get("parallelism", 0)})
            else:
                self._state.decisions.set_inadmissible(job.key, STAYS, True)
                if nominated:
                    cannot_be_made(self._state, job.key, self.complaint(job))
        return refused

    async def _find_again(self, job: GPUJobRecord, project: ProjectName) -> None:
        """Take in Jobs that the watch shows no more although they exist."""
        for lost in tuple(self._state.jobs.deleted.get(job.key, ())):
            if lost.role in job.requests:
                rendered = await self._rendered(job, project, lost.role)
                body = {**rendered, "spec": rendered["spec"] | {"parallelism": lost.parallelism}}
                if (found := await found_again(self._client, job, body)) is not None:
                    self._state.job_changed(found)
        self._state.jobs.deleted.pop(job.key, None)

    def complaint(self, job: GPUJobRecord) -> str:
        """See ``Jobs``."""
        return self._writes.complaint(job.own(self._state.workloads.jobs(job.key)))

    async def _create(
        self, job: GPUJobRecord, project: ProjectName, parallelisms: Mapping[str, int]
    ) -> None:
        """Make the Jobs of roles whose pods have places: how many at once, by role."""
        if job.spec is not None and is_distributed(job.spec):
            await create_service(self._client, job, project)
        for accepted in await self._acceptance.rendered(job, project):
            parallelism = parallelisms.get(accepted.role, 0)
            if parallelism:
                nominated = self._state.decisions.nominated.of_role(job.key, accepted.role)
                body = {**accepted.job, "spec": accepted.job["spec"] | {"parallelism": parallelism}}
                self._state.job_changed(await create_job(self._client, job, body))
                told(nominated, {accepted.role: parallelism})

    async def _rendered(
        self, job: GPUJobRecord, project: ProjectName, role: str
    ) -> Mapping[str, Any]:
        rendered = await self._acceptance.rendered(job, project)
        return next(each.job for each in rendered if each.role == role)
