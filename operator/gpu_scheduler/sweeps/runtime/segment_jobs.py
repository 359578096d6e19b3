"""The Jobs of segments, one at a time: made, changed and stopped. Called by ``segments``."""

import logging
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.acceptance import Acceptance, Refused
from gpu_scheduler.runtime.creation import create_job
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord
from gpu_scheduler.sweeps.core.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.sweeps.runtime.loading import own_jobs

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
        wake: Callable[[], None],
    ) -> None:
        """``made``: told of each new Job; ``wake``: the planner may have something to do."""
        self._state, self._client, self._acceptance = state, client, acceptance
        self._writes, self._made, self._wake = writes, made, wake
        self._stay: dict[str, str] = {}  # why Jobs stay suspended, by uid

    def of(self, job: GPUJobRecord) -> list[JobRecord]:
        """Those of a sweep, by their first trials."""
        return sorted(own_jobs(self._state, job), key=lambda own: own.first_trial)

    async def refused(self, job: GPUJobRecord, project: ProjectName) -> str:
        """Why no Job may be made for a GPUJob; empty if one may."""
        judged = await self._acceptance.judge(job, project)
        return judged.message if isinstance(judged, Refused) else ""

    async def open(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment, width: int
    ) -> None:
        """Make the Job of a segment, of which so many pods run at once."""
        (accepted,) = await self._acceptance.rendered(job, project, segment)
        body = dict(accepted.job)
        body["spec"] = body["spec"] | {"parallelism": width}
        made = self._state.job_changed(await create_job(self._client, job, body))
        if made is not None:
            self._made(made)
        log.info("%s: trials %d to %d are open", job.key, segment.first, segment.end - 1)
        self._wake()

    async def change(
        self, job: GPUJobRecord, project: ProjectName, own: JobRecord, fields: Mapping[str, Any]
    ) -> None:
        """Write fields of a Job's spec; one that somebody has edited stays suspended."""
        if fields.get("suspend") is False and await self._edited(job, project, own):
            return
        await self._writes.write(own, fields)

    async def stop(self, job: GPUJobRecord) -> None:
        """Suspend those that have not ended."""
        for own in self.of(job):
            if not (own.suspend or own.complete or own.failure):
                await self._writes.write(own, {"suspend": True})

    def complaint(self, job: GPUJobRecord) -> str:
        """What somebody else has changed in them and cannot be put back; empty if nothing."""
        own = self.of(job)
        for each, size in zip(own, sizes(own), strict=True):
            if (each.complete or each.failure) and each.ended_with < size:
                return (
                    f"Job {each.name} ended with {each.ended_with} of its {size} trials, because "
                    "somebody else changed spec.completions: delete that Job, and it is made anew "
                    "for the trials that are missing"
                )
        stay = {each.uid: self._stay.get(each.uid, "") for each in own if each.suspend}
        self._stay = {uid: why for uid, why in self._stay.items() if uid in self._state.jobs}
        return next(filter(None, stay.values()), "") or self._writes.complaint(own)

    async def _edited(self, job: GPUJobRecord, project: ProjectName, own: JobRecord) -> str:
        """Why a Job stays suspended; empty if it need not."""
        segment = Segment(own.segment or 0, own.first_trial, own.completions)
        (accepted,) = await self._acceptance.rendered(job, project, segment)
        why = await self._writes.edited(own, accepted.job)
        self._stay[own.uid] = why
        return why


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
