"""Writes into Jobs that exist, so that they are as their GPUJob wants them.

What somebody else has changed is put back at once. Whoever writes it again and again is not
answered as often: after the third time the delay grows to a minute, and the GPUJob says so, until
the other has let it be for a while. It says so, too, where a Job was edited while it was suspended,
or where a change is refused: the same one is then asked for ever more seldom, whoever looks at the
GPUJob in between.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import NARROWED
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.drift import TemplatedJob, edited, steps
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.counting import parallelism_of

log = logging.getLogger(__name__)

Rendered = Mapping[str, Any]  # a Job as JSON

STAYS = "a Job stays as it is"  # why nothing is planned of a GPUJob: until it is looked at again
_AT_ONCE = 3  # times that something is put back without delay
_AGAIN = Backoff(1.0, 60.0)
_QUIET_SECONDS = 120.0  # without a change by somebody else, and the struggle is over
_REMEMBERED = 10_000  # Jobs, before those that are gone are forgotten
RECHECK_SECONDS = 30.0  # a refused change may be accepted once its namespace changed …
_MOST_CHARS = 1000  # of what the API server says
_MOST_RECHECK_SECONDS = 600.0  # … but that is asked ever more seldom


@dataclass(frozen=True, slots=True)
class _Written:
    value: Any
    at: float  # monotonic seconds
    again: int = 0  # how often the same was written because somebody had changed it

    @property
    def due(self) -> float:
        """When the same may be written again."""
        if self.again < _AT_ONCE:
            return self.at
        return self.at + _AGAIN.delay_seconds(self.again - _AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Stays:
    """A change that a Job cannot have: of which generation of its GPUJob, and why."""

    generation: int
    fields: Mapping[str, Any]
    why: str
    due: float  # monotonic seconds: not tried before
    times: int = 0


class JobWrites:
    """Writes, and remembers what it wrote."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        again: Callable[[JobKey, float], None],
        *,
        recheck_seconds: float = RECHECK_SECONDS,
        clock: Callable[[], float],
    ) -> None:
        """``again``: look at a GPUJob after so many seconds."""
        self._state = state
        self._client = client
        self._recheck = Backoff(recheck_seconds, max(recheck_seconds, _MOST_RECHECK_SECONDS))
        self._again = again
        self._clock = clock
        self._written: dict[str, dict[str, _Written]] = {}  # by uid of the Job, and by field
        self._stays: dict[str, _Stays] = {}  # by uid of the Job

    async def change(
        self, job: JobRecord, fields: Mapping[str, Any], rendered: Callable[[], Awaitable[Rendered]]
    ) -> bool:
        """Write fields of a Job's spec, if any; False where it has to stay, see ``complaint``.

        ``rendered``: the Job as it is to be; asked for only when a suspended one goes on.

        Raises:
            ApiError: the API server could not be asked, or knows another Job by that name.
        """
        before = self._known(job)
        if not fields:
            return True
        if before is not None and before.fields == fields and self._clock() < before.due:
            self._again(job.owner, before.due - self._clock())
            return False
        why = ""
        if fields.get("suspend") is False:
            why = await self._edited(job, await rendered())
        if not why:
            why = await self._refused(job, fields)
        self._stays.pop(job.uid, None)
        if why:
            self._state.decisions.let_be(job.uid)
            same = before is not None and before.fields.keys() == fields.keys()
            times = before.times + 1 if before is not None and same else 0
            delay = self._recheck.delay_seconds(times)
            due = self._clock() + delay
            self._stays = {u: w for u, w in self._stays.items() if u in self._state.jobs.believed}
            self._stays[job.uid] = _Stays(self._generation(job), fields, why, due, times)
            self._again(job.owner, delay)
        return not why

    def stay(self, jobs: Iterable[JobRecord]) -> bool:
        """Whether a change was refused and is not tried again yet: nothing is to be planned."""
        now = self._clock()
        return any(known.due > now for known in map(self._known, jobs) if known is not None)

    async def stop(self, jobs: Iterable[JobRecord], why: str) -> None:
        """Suspend those that have not ended; ``why`` is for the log.

        Raises:
            ApiError: the API server could not be asked, or knows another Job by that name.
        """
        for job in jobs:
            if job.ended or job.suspend:
                continue
            before = self._written.get(job.uid)
            await self.change(job, {"suspend": True}, _nothing)
            if self._written.get(job.uid) is not before:
                log.info("%s: suspended Job %s: %s", job.owner, job.name, why)

    def _generation(self, job: JobRecord) -> int:
        owner = self._state.gpujobs.get(job.owner)
        return 0 if owner is None else owner.generation

    def _known(self, job: JobRecord) -> _Stays | None:
        """Why a Job stays as it is, while that was not judged for another GPUJob or long ago."""
        known = self._stays.get(job.uid)
        if known is None:
            return None
        over = known.due + self._recheck.first_seconds - self._clock()  # by then it is tried again
        if known.generation != self._generation(job) or over <= 0:
            del self._stays[job.uid]
            return None
        return known

    async def _refused(self, job: JobRecord, fields: Mapping[str, Any]) -> str:
        """Write fields of a Job's spec; what the API server says if they are refused for good."""
        try:
            await self._write(job, fields)
        except errors.NotFound:
            raise  # news of its end are on their way
        except errors.Refused as error:
            if errors.another_object(error):
                raise  # news of it are on their way
            return refused_change(job, fields, error)
        return ""

    async def _write(self, job: JobRecord, fields: Mapping[str, Any]) -> None:
        """Write fields of a Job's spec, but for those whose turn comes later."""
        now, known, at = self._clock(), self._struggles(job.uid), job
        later = {f: known[f].due for f, value in fields.items() if self._waits(known, f, value)}
        if later:
            self._again(job.owner, min(later.values()) - now)
        fields = {field: value for field, value in fields.items() if field not in later}
        for spec in steps(job, fields) if fields else ():
            body = {"metadata": {"uid": job.uid} | self._narrows(at, spec), "spec": spec}
            path = job_path(job.namespace, job.name)
            wide = spec.get("parallelism", at.parallelism)
            if not spec.get("suspend", at.suspend) and wide > parallelism_of(at):
                self._state.decisions.widening[job.uid] = wide
            try:
                patched = await self._client.merge_patch(path, body, Job)
                if job.uid not in self._state.jobs.believed:
                    return  # the watch has told its end before the answer
                at = self._state.job_changed(patched) or at
                if "parallelism" in spec:
                    self._state.decisions.let_be(
                        job.uid
                    )  # what is to be done stands on the Job from now on
            finally:
                self._state.decisions.widening.pop(job.uid, None)
        self._note(job.uid, fields)

    def _narrows(self, job: JobRecord, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What the metadata of a write says of a Job that becomes narrower, or wider again.

        Narrower only as it was when that was decided: by then it may have other pods that run.
        """
        wide = spec.get("parallelism", job.parallelism)
        if wide < job.parallelism:
            return {"annotations": {NARROWED: "true"}, "resourceVersion": str(job.version)}
        if job.narrowed and wide > job.parallelism and not self._state.shrinks(job):
            return {"annotations": {NARROWED: None}}
        return {}

    async def _edited(self, job: JobRecord, rendered: Rendered) -> str:
        """What somebody changed in a Job that was suspended; empty if it may go on."""
        found = await self._client.get(job_path(job.namespace, job.name), TemplatedJob)
        fields = edited(found, rendered)
        if not fields:
            return ""
        return (
            f"{', '.join(fields)}: somebody else changed it in Job {job.name} while that was "
            f"suspended, and it stays so. Delete that Job (kubectl delete job {job.name}), and it "
            "is made anew"
        )

    def complaint(self, jobs: Iterable[JobRecord]) -> str:
        """Why these Jobs are not as they should be, because of somebody else; empty if nobody."""
        running = [job for job in jobs if not job.ended]
        if stays := next(filter(None, map(self._known, running)), None):
            self._again(running[0].owner, stays.due + self._recheck.first_seconds - self._clock())
            return stays.why
        for job in running:
            for field, known in self._struggles(job.uid).items():
                if known.again >= _AT_ONCE:
                    self._again(job.owner, known.at + _QUIET_SECONDS - self._clock())
                    value = str(known.value).lower()
                    return (
                        f"spec.{field}: somebody else changes it in Job {job.name} again and "
                        f"again; it was put back to {value} {known.again + 1} times, and is at "
                        f"most once a minute. kubectl get job {job.name} --show-managed-fields -o "
                        "yaml tells who it is; change the GPUJob instead"
                    )
        return ""

    def stays(self, uid: str) -> bool:
        """Whether a Job has to stay as it is."""
        own = self._state.jobs.believed.get(uid)
        return own is not None and self._known(own) is not None

    def _struggles(self, uid: str) -> Mapping[str, _Written]:
        """What was written into a Job of late."""
        now, known = self._clock(), self._written.get(uid, {})
        return {f: each for f, each in known.items() if now - each.at < _QUIET_SECONDS}

    def _waits(self, known: Mapping[str, _Written], field: str, value: Any) -> bool:
        before = known.get(field)
        return before is not None and before.value == value and before.due > self._clock()

    def _note(self, uid: str, fields: Mapping[str, Any]) -> None:
        if not fields:
            return
        now, known = self._clock(), self._struggles(uid)
        added = {}
        for field, value in fields.items():
            before = known.get(field)
            same = before is not None and before.value == value
            added[field] = _Written(value, now, before.again + 1 if before and same else 0)
        self._written[uid] = {**known, **added}
        if len(self._written) > _REMEMBERED:
            believed = self._state.jobs.believed
            self._written = {u: w for u, w in self._written.items() if u in believed}


async def _nothing() -> Rendered:
    return {}


def refused_change(job: JobRecord, differs: Mapping[str, Any], error: errors.ApiError) -> str:
    """What is wrong with a change that the API server, or a policy in it, refuses."""
    fields = " and ".join(f"spec.{name}" for name in differs)
    said = clip(error.message, _MOST_CHARS)
    return f"{fields}: the API server refuses the change of Job {job.name}: {said}"
