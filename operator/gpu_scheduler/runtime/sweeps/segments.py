"""The Jobs of a sweep: one for each segment, opened when the one before runs out of trials.

Level-triggered: what should be follows from the table of outcomes, the spec and the Jobs that
exist. A Job whose trials may all run keeps the width it was made with, since its own end narrows
it; only where two segments share the sweep's parallelism the later one is patched. Widths shrink
before others grow, so the pods of all segments together never exceed it. A Job that was deleted and
made again runs all its trials again, so what counts is what a Job has left, not what is not known
yet. Called by the reconciler.
"""

import logging
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from gpu_scheduler.adaptive.tpe import TpeMissingError, TpeStudy
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.sweeps.segments import SEGMENT_TRIALS, Segment, widths
from gpu_scheduler.core.sweeps.verdict import Phase
from gpu_scheduler.jobs.drift import changes
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.acceptance import Acceptance, Refused
from gpu_scheduler.runtime.creation import create_job
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.runtime.sweeps.record import Sweep, Sweeps
from gpu_scheduler.runtime.sweeps.results import Results
from gpu_scheduler.runtime.sweeps.salvage import lost, salvage
from gpu_scheduler.runtime.sweeps.trials import Trials
from gpu_scheduler.runtime.width import pods_at_once
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord

log = logging.getLogger(__name__)

_FINISHED = ("Succeeded", "Failed")


class Segments:
    """Makes the Jobs of sweeps follow their GPUJobs."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        acceptance: Acceptance,
        sweeps: Sweeps,
        trials: Trials,
        results: Results,
        writes: JobWrites,
        *,
        wake: Callable[[], None],
    ) -> None:
        """``wake``: the planner may have something to do."""
        self._writes = writes
        self._stay: dict[str, str] = {}  # why Jobs stay suspended, by uid
        self._state, self._client, self._acceptance = state, client, acceptance
        self._sweeps, self._trials, self._results = sweeps, trials, results
        self._wake = wake

    async def ended(self, job: GPUJobRecord) -> bool:
        """Whether the sweep is over; then nothing of it runs on.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        sweep = await self._known(job)
        if sweep is None or not (is_over(job, sweep) or self._verdict_ended(sweep)):
            return False
        for own in self._own(job):
            if not (own.suspend or own.complete or own.failure):
                await self._writes.write(own, {"suspend": True})
        return True

    async def follow(self, job: GPUJobRecord, project: ProjectName) -> str | None:
        """Open segments and adapt those that run; what is wrong, None if nothing.

        Raises:
            ApiError: the API server could not be asked; try again.
            StaleJobError: try again soon.
            NotCreatableError: the user has to do something.
        """
        sweep = await self._known(job)
        if sweep is None or job.spec is None:
            return None
        if refused := self._cannot_search(sweep):
            return refused
        existing = sorted(self._own(job), key=lambda own: own.first_trial)
        unended = [own for own in existing if not (own.complete or own.failure)]
        at_once = pods_at_once(self._state, job, project, unended)
        wanted = _wanted(sweep, existing, job.spec.total_pods, at_once) if sweep.may_start else []
        if wanted and not existing:
            judged = await self._acceptance.judge(job, project)
            if isinstance(judged, Refused):
                return judged.message
        shares = _shares(sweep, existing, wanted, at_once)
        await self._adapt(job, job.spec.suspend, project, sweep, existing, shares)
        for segment in wanted:
            await self._open(job, project, segment, shares[segment.first])
        return None

    def complaint(self, job: GPUJobRecord) -> str:
        """What somebody else has changed in its Jobs and cannot be put back; empty if nothing."""
        own = sorted(self._own(job), key=lambda each: each.first_trial)
        for each, size in zip(own, _sizes(own), strict=True):
            if (each.complete or each.failure) and each.ended_with < size:
                return (
                    f"Job {each.name} ended with {each.ended_with} of its {size} trials, because "
                    "somebody else changed spec.completions: delete that Job, and it is made anew "
                    "for the trials that are missing"
                )
        stay = {each.uid: self._stay.get(each.uid, "") for each in own if each.suspend}
        self._stay = {uid: why for uid, why in self._stay.items() if uid in self._state.jobs}
        return next(filter(None, stay.values()), "") or self._writes.complaint(own)

    async def _known(self, job: GPUJobRecord) -> Sweep | None:
        """The sweep, with what is stored of it."""
        sweep = self._sweeps.of(job.key)
        if sweep is None:
            return None
        for own in self._own(job):
            sweep.know(own)
        if not sweep.loaded:
            await self._results.load(sweep)
            self._trials.loaded(sweep)
            self._results.keep(sweep, salvage(sweep, job, self._trials.reading(sweep)))
            if why := lost(sweep):
                log.warning("%s: %s", job.key, why)
        return sweep

    def _own(self, job: GPUJobRecord) -> list[JobRecord]:
        return [
            j for j in self._state.jobs_of(job.key) if j.owner_uid == job.uid and not j.deleting
        ]

    def _verdict_ended(self, sweep: Sweep) -> bool:
        return sweep.verdict(running(self._state, sweep)).phase is not Phase.RUNNING

    def _cannot_search(self, sweep: Sweep) -> str:
        if sweep.unsearchable:
            return sweep.unsearchable
        if not sweep.search.adaptive or sweep.study is not None or sweep.objective is None:
            return ""
        try:
            TpeStudy(sweep.search.space, sweep.objective, 0)
        except TpeMissingError as error:
            return f"spec.sweep.algorithm: {error}"
        return ""

    async def _adapt(
        self,
        job: GPUJobRecord,
        suspend: bool,
        project: ProjectName,
        sweep: Sweep,
        existing: list[JobRecord],
        shares: Mapping[int, int],
    ) -> None:
        """Patch sizes and suspension; what becomes narrower goes first."""
        patches: list[tuple[int, JobRecord, dict[str, Any]]] = []
        for own, size in zip(existing, _sizes(existing), strict=True):
            if not _left(sweep, own):
                continue
            width = shares[own.first_trial]
            wanted = {"completions": size, "parallelism": width, "suspend": suspend}
            if differs := changes(own, wanted):
                patches.append((width - own.parallelism, own, differs))
        for _, own, differs in sorted(patches, key=lambda each: each[0]):
            if differs.get("suspend") is False and await self._edited(job, project, own):
                continue
            await self._writes.write(own, differs)

    async def _edited(self, job: GPUJobRecord, project: ProjectName, own: JobRecord) -> str:
        """Why a Job stays suspended; empty if it need not."""
        segment = Segment(own.segment or 0, own.first_trial, own.completions)
        (accepted,) = await self._acceptance.rendered(job, project, segment)
        why = await self._writes.edited(own, accepted.job)
        self._stay[own.uid] = why
        return why

    async def _open(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment, width: int
    ) -> None:
        (accepted,) = await self._acceptance.rendered(job, project, segment)
        body = dict(accepted.job)
        body["spec"] = body["spec"] | {"parallelism": width}
        made = self._state.job_changed(await create_job(self._client, job, body))
        if made is not None:
            self._trials.job_changed(made)
        log.info("%s: trials %d to %d are open", job.key, segment.first, segment.end - 1)
        self._wake()


def is_over(job: GPUJobRecord, sweep: Sweep) -> bool:
    """Whether its status says that it has ended, and no trials were added since.

    That stays true when Jobs and results are gone.
    """
    phase = job.status.get("phase")
    if phase not in _FINISHED:
        return False
    trials = int((job.status.get("sweep") or {}).get("trials") or 0)
    return phase == "Failed" or sweep.completions <= trials


def running(state: ClusterState, sweep: Sweep) -> int:
    """Trials that hold GPUs, or are about to."""
    return len(sweep.live) + sum(1 for place in state.assumed.values() if place.job == sweep.key)


def _sizes(existing: list[JobRecord]) -> list[int]:
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


def _segment(job: JobRecord) -> Segment:
    return Segment(0, job.first_trial, job.completions)


def _shares(
    sweep: Sweep, existing: list[JobRecord], wanted: list[Segment], parallelism: int
) -> dict[int, int]:
    """How wide each Job is to be, by its first trial."""
    open_ = [(own.first_trial, own.completions, _left(sweep, own)) for own in existing]
    ordered = sorted(open_ + [(segment.first, segment.size, segment.size) for segment in wanted])
    shares = widths([left for _, _, left in ordered], parallelism)
    return {
        first: min(parallelism, size) if share == left else share
        for (first, size, left), share in zip(ordered, shares, strict=True)
    }


def _left(sweep: Sweep, own: JobRecord) -> int:
    """Trials that a Job still runs, once more or for the first time."""
    if own.complete or own.failure:
        return 0
    uncounted = own.completions - own.succeeded - own.failed_indexes
    return max(sweep.unfinished(_segment(own)), uncounted)


def _wanted(sweep: Sweep, existing: list[JobRecord], total: int, parallelism: int) -> list[Segment]:
    """Segments to open now. One whose trials have all ended needs no Job, if somebody deleted it.

    The next one opens when fewer trials are left than may run at once.
    """
    have = {own.first_trial for own in existing}
    sizes = {s.first: s.size for s in sweep.segments} | {
        own.first_trial: size for own, size in zip(existing, _sizes(existing), strict=True)
    }
    wanted: list[Segment] = []
    unfinished, first, number = 0, 0, 0
    while first < total:
        until = min((f for f in sizes if f > first), default=total)
        segment = Segment(number, first, sizes.get(first) or min(SEGMENT_TRIALS, until - first))
        left = sweep.unfinished(segment)
        if first not in have and left:
            if first > max(have, default=-1) and unfinished >= parallelism:
                break
            wanted.append(segment)
        unfinished += left
        first, number = segment.end, number + 1
    return wanted
