"""The Jobs of GPUJobs that are no sweeps: one, or one for each role. Called by the reconciler."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_scheduler.api.parts import is_distributed
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.drift import changes, wanted_sizes
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.acceptance import Acceptance, Refused
from gpu_scheduler.runtime.creation import create_job, create_service
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord


class RoleJobs:
    """``Jobs`` of the reconciler."""

    def __init__(
        self, state: ClusterState, client: Client, acceptance: Acceptance, writes: JobWrites
    ) -> None:
        """``acceptance`` judges and renders them, ``writes`` changes those that exist."""
        self._state, self._client = state, client
        self._acceptance, self._writes = acceptance, writes

    async def ended(self, job: GPUJobRecord) -> bool:
        """See ``Jobs``."""
        own = [each for each in self._state.jobs_of(job.key) if each.owner_uid == job.uid]
        complete = {each.role for each in own if each.complete}
        over = (
            job.finished
            or any(each.failure for each in own)
            or (bool(own) and complete >= (job.asks.keys() or {""}))
        )
        if over:
            await self.stop(job)
        return over

    async def stop(self, job: GPUJobRecord) -> None:
        """See ``Jobs``."""
        await self._writes.stop(
            job.own(self._state.jobs_of(job.key)), "its GPUJob is over or suspended"
        )

    async def follow(self, job: GPUJobRecord, project: ProjectName, at_once: int) -> str:
        """See ``Jobs``."""
        own = {each.role: each for each in job.own(self._state.jobs_of(job.key))}
        if job.spec is None:
            return ""
        if job.asks.keys() - own.keys():
            if job.spec.suspend:
                await self.stop(job)
            return await self._create(job, project, at_once, own)
        for role, size in wanted_sizes(job.spec).items():
            width = {"parallelism": min(size["parallelism"], at_once)}
            if not own[role].complete:
                fields = changes(own[role], size | width)
                rendered = partial(self._rendered, job, project, role)
                await self._writes.change(own[role], fields, rendered)
        return ""

    def complaint(self, job: GPUJobRecord) -> str:
        """See ``Jobs``."""
        return self._writes.complaint(job.own(self._state.jobs_of(job.key)))

    async def _create(
        self, job: GPUJobRecord, project: ProjectName, at_once: int, own: Mapping[str, Any]
    ) -> str:
        judged = await self._acceptance.judge(job, project)
        if isinstance(judged, Refused):
            return judged.message
        if job.spec is not None and is_distributed(job.spec):
            await create_service(self._client, job, project)
        for accepted in judged:
            if accepted.role not in own:
                spec = accepted.job["spec"]
                width = {"parallelism": min(spec["parallelism"], at_once)}
                body = {**accepted.job, "spec": spec | width}
                self._state.job_changed(await create_job(self._client, job, body))
        return ""

    async def _rendered(
        self, job: GPUJobRecord, project: ProjectName, role: str
    ) -> Mapping[str, Any]:
        rendered = await self._acceptance.rendered(job, project)
        return next(each.job for each in rendered if each.role == role)
