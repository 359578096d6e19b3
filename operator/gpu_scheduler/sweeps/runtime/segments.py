"""The Jobs of a sweep: one for each segment, opened when the one before runs out of trials.

Level-triggered: what should be follows from the table of outcomes, the spec and the Jobs that
exist. A Job whose trials may all run keeps the parallelism it was made with, since its own end
narrows it; only where two segments share the sweep's parallelism the later one is patched. Less is
written before more, so the pods of all segments together never exceed it. A Job that was deleted
and made again runs all its trials again, so what counts is what a Job has left, not what is not
known yet.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_scheduler.api.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.drift import changes
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.doubting import cannot_be_made
from gpu_scheduler.runtime.jobs.job_writes import STAYS
from gpu_scheduler.runtime.jobs.parallelism import narrows, parallelism_of, pods_at_once, told
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.sweeps.core.verdict import SweepPhase
from gpu_scheduler.sweeps.runtime.loading import Loading
from gpu_scheduler.sweeps.runtime.prerequisites import Prerequisites
from gpu_scheduler.sweeps.runtime.record import Sweep
from gpu_scheduler.sweeps.runtime.segment_jobs import SegmentJobs, sizes


class Segments:
    """``Jobs`` of the reconciler, for sweeps."""

    def __init__(
        self,
        state: ClusterState,
        jobs: SegmentJobs,
        accepting: Accepting,
        loading: Loading,
        prerequisites: Prerequisites,
    ) -> None:
        """``jobs`` makes and writes them, ``prerequisites`` knows which sweeps can be run here."""
        self._state = state
        self._jobs = jobs
        self._accepting = accepting
        self._loading = loading
        self._prerequisites = prerequisites

    async def ended(self, job: GPUJobRecord) -> bool:
        """See ``Jobs``."""
        sweep = await self._loading.loaded(job)
        if sweep is None or not (is_over(job, sweep) or self._verdict_ended(sweep)):
            return False
        await self._jobs.stop(job)
        return True

    async def stop(self, job: GPUJobRecord) -> None:
        """See ``Jobs``."""
        await self._jobs.stop(job)

    async def follow(self, job: GPUJobRecord, project: ProjectName) -> str:
        """Open segments and adapt those that run; see ``Jobs``."""
        sweep = await self._loading.loaded(job)
        if sweep is None or job.spec is None:
            return ""
        begun = bool(sweep.table) or bool(self._jobs.of(job))
        if refused := await self._prerequisites.unmet(sweep, begun=begun):
            return refused
        self._state.decisions.set_inadmissible(job.key, STAYS, self._jobs.stay(job))
        if refused := await self._accepting.refused(job, project):
            return refused
        await self._jobs.find_again(job, project)
        existing, nominated = self._jobs.of(job), self._state.decisions.nominated.of(job.key)
        at_once = pods_at_once(self._state, job)
        opens = sweep.may_start and at_once
        wanted = to_open(sweep, existing, job.spec.total_pods, at_once) if opens else []
        shrinking = {o.first_trial: o for o in existing if narrows(self._state, o)}
        fixed = {first: parallelism_of(self._state, own) for first, own in shrinking.items()}
        placed = {own.first_trial: self._state.count(own.uid).placed for own in existing}
        others = [own for own in existing if own.first_trial not in fixed]
        rest = max(0, at_once - sum(fixed.values()))
        shares = fixed | _shares(sweep, others, wanted, rest, job.spec.parallelism, placed)
        for own, fields in _changes(sweep, existing, shares, suspend=job.spec.suspend):
            if own.suspend and own.first_trial in shrinking:
                continue  # its controller has not done with the pods that it had
            changed = await self._jobs.change(job, project, own, fields)
            if not changed:
                self._state.decisions.set_inadmissible(job.key, STAYS, True)
                if nominated:
                    cannot_be_made(self._state, job.key, self.complaint(job))
            if not changed and fields.get("parallelism", own.parallelism) < own.parallelism:
                return ""  # what it does not give up, no other gets
        for segment in wanted:
            await self._jobs.open(job, project, segment, shares[segment.first])
        if not fixed:
            told(nominated, {"": at_once})
        return ""

    def complaint(self, job: GPUJobRecord) -> str:
        """See ``Jobs``."""
        return self._jobs.complaint(job)

    def _verdict_ended(self, sweep: Sweep) -> bool:
        return sweep.verdict(running(self._state, sweep)).phase is not SweepPhase.RUNNING


def is_over(job: GPUJobRecord, sweep: Sweep) -> bool:
    """Whether its status says that it has ended, and no trials were added since.

    That stays true when Jobs and results are gone.
    """
    if not job.finished:
        return False
    trials = int((job.status.get("sweep") or {}).get("trials") or 0)
    return job.status["phase"] == "Failed" or sweep.completions <= trials


def running(state: ClusterState, sweep: Sweep) -> int:
    """Trials that hold GPUs, or are about to."""
    return len(sweep.live) + sum(
        1 for place in state.decisions.assumed.values() if place.job == sweep.key
    )


def _changes(
    sweep: Sweep, existing: list[JobRecord], shares: Mapping[int, int], *, suspend: bool
) -> list[tuple[JobRecord, dict[str, Any]]]:
    """Fields of Jobs that are to change, if any; what becomes narrower goes first."""
    found: list[tuple[int, JobRecord, dict[str, Any]]] = []
    for own, size in zip(existing, sizes(existing), strict=True):
        if not _left(sweep, own):
            continue
        share = shares[own.first_trial]
        wanted = {"completions": size, "parallelism": share, "suspend": suspend}
        found.append((share - own.parallelism, own, changes(own, wanted)))
    return [(own, differs) for _, own, differs in sorted(found, key=lambda each: each[0])]


def _segment(job: JobRecord) -> Segment:
    return Segment(0, job.first_trial, job.completions)


def _shares(
    sweep: Sweep,
    existing: list[JobRecord],
    wanted: list[Segment],
    parallelism: int,
    most: int,
    placed: Mapping[int, int],
) -> dict[int, int]:
    """How wide each Job is to be, by its first trial.

    ``most``: none is ever wider; ``placed``: their pods that have a place.
    """
    open_ = [
        (own.first_trial, own.completions, _left(sweep, own), own.parallelism) for own in existing
    ]
    new = [(segment.first, segment.size, segment.size, 0) for segment in wanted]
    ordered = sorted(open_ + new)
    kept = [placed.get(first, 0) for first, *_ in ordered]
    shares = parallelisms([left for _, _, left, _ in ordered], parallelism, kept)
    return {
        first: max(min(parallelism, size), min(now, most)) if share == left else share
        for (first, size, left, now), share in zip(ordered, shares, strict=True)
    }


def _left(sweep: Sweep, own: JobRecord) -> int:
    """Trials that a Job still runs, once more or for the first time."""
    if own.ended:
        return 0
    uncounted = own.completions - own.succeeded - own.failed_indexes
    return max(sweep.segments.unfinished(_segment(own)), uncounted)


def to_open(sweep: Sweep, existing: list[JobRecord], total: int, parallelism: int) -> list[Segment]:
    """Segments to open now. One whose trials have all ended needs no Job, if somebody deleted it.

    The next one opens when fewer trials are left than may run at once.
    """
    have = {own.first_trial for own in existing}
    known = {s.first: s.size for s in sweep.segments} | {
        own.first_trial: size for own, size in zip(existing, sizes(existing), strict=True)
    }
    wanted: list[Segment] = []
    unfinished, first, number = 0, 0, 0
    while first < total:
        until = min((f for f in known if f > first), default=total)
        segment = Segment(number, first, known.get(first) or min(SEGMENT_TRIALS, until - first))
        left = sweep.segments.unfinished(segment)
        if first not in have and left:
            if first > max(have, default=-1) and unfinished >= parallelism:
                break
            wanted.append(segment)
        unfinished += left
        first, number = segment.end, number + 1
    return wanted


def parallelisms(
    unfinished: Sequence[int], parallelism: int, placed: Sequence[int] = ()
) -> list[int]:
    """How many pods each segment may have, earlier segments first; together ``parallelism``.

    ``placed``: pods of each that have a place, which it keeps before any other gets more.
    """
    kept = []
    for count in placed or [0] * len(unfinished):
        kept.append(min(count, parallelism))
        parallelism -= kept[-1]
    result = []
    for left, least in zip(unfinished, kept, strict=True):
        more = min(max(0, left - least), parallelism)
        result.append(least + more)
        parallelism -= more
    return result
