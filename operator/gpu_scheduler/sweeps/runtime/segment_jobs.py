"""The Jobs of segments, one at a time: made, changed and stopped."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

from gpu_scheduler.api.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.creation import create_job, found_again
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord

log = logging.getLogger(__name__)


class SegmentJobs:
    """Makes and writes Jobs; which, and how wide, others say."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        acceptance: Acceptance,
        writes: JobWrites,
        *,
        made: Callable[[JobRecord], None],
    ) -> None:
        """``made``: told of each new Job."""
        self._state = state
        self._client = client
        self._acceptance = acceptance
        self._writes = writes
        self._made = made

    def of(self, job: GPUJobRecord) -> list[JobRecord]:
        """Those of a sweep, by their first trials."""
        return sorted(job.own(self._state.workloads.jobs(job.key)), key=lambda own: own.first_trial)

    async def open(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment, parallelism: int
    ) -> None:
        """Make the Job of a segment, of which so many pods run at once."""
        rendered = await self._rendered(job, project, segment)
        body = {**rendered, "spec": rendered["spec"] | {"parallelism": parallelism}}
        made = self._state.job_changed(await create_job(self._client, job, body))
        if made is not None:
            self._made(made)
        log.info("%s: trials %d to %d are open", job.key, segment.first, segment.end - 1)

    async def find_again(self, job: GPUJobRecord, project: ProjectName) -> None:
        """Take in Jobs that the watch shows no more although they exist."""
        for lost in tuple(self._state.jobs.deleted.get(job.key, ())):
            segment = Segment(lost.segment or 0, lost.first_trial, lost.completions)
            rendered = await self._rendered(job, project, segment)
            body = {**rendered, "spec": rendered["spec"] | {"parallelism": lost.parallelism}}
            found = await found_again(self._client, job, body)
            made = self._state.job_changed(found) if found is not None else None
            if made is not None:
                self._made(made)
        self._state.jobs.deleted.pop(job.key, None)

    async def change(
        self, job: GPUJobRecord, project: ProjectName, own: JobRecord, fields: Mapping[str, Any]
    ) -> bool:
        """Write fields of a Job's spec, if any; False where it has to stay as it is."""
        segment = Segment(own.segment or 0, own.first_trial, own.completions)
        return await self._writes.change(
            own, fields, partial(self._rendered, job, project, segment)
        )

    def stay(self, job: GPUJobRecord) -> bool:
        """Whether one has to stay as it is for a while."""
        return self._writes.stay(self.of(job))

    async def stop(self, job: GPUJobRecord) -> None:
        """Suspend those that have not ended."""
        await self._writes.stop(self.of(job), "its sweep is over or suspended")

    def complaint(self, job: GPUJobRecord) -> str:
        """What somebody else has changed in them and cannot be put back; empty if nothing."""
        own = self.of(job)
        for each, size in zip(own, sizes(own), strict=True):
            if each.ended and each.ended_with < size:
                return (
                    f"Job {each.name} ended with {each.ended_with} of its {size} trials, because "
                    "somebody else changed spec.completions: delete that Job, and it is made anew "
                    "for the trials that are missing"
                )
        return self._writes.complaint(own)

    async def _rendered(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment
    ) -> Mapping[str, Any]:
        (accepted,) = await self._acceptance.rendered(job, project, segment)
        return accepted.job


def sizes(existing: list[JobRecord]) -> list[int]:
    """How many trials each Job is to have: up to the next one's first, if that one follows it.

    Behind the last one another Job opens for what it lacks, so its own size is right.
    """
    found = []
    for own, following in zip_longest(existing, existing[1:]):
        adjacent = following is not None and own.segment is not None
        if following is None or not adjacent or following.segment != (own.segment or 0) + 1:
            found.append(own.completions)
        else:
            found.append(min(following.first_trial - own.first_trial, SEGMENT_TRIALS))
    return found
