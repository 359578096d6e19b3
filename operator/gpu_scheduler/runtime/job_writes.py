"""Writes into Jobs that exist, so that they are as their GPUJob wants them.

What somebody else has changed is put back at once. Whoever writes it again and again is not
answered as often: after the third time the delay grows to a minute, and the GPUJob says so, until
the other has let it be for a while. It says so, too, where a Job was edited while it was suspended,
or where a change is refused. Shared by the Jobs of roles and the segments of sweeps.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import NARROWED
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.drift import TemplatedJob, edited, steps
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import JobRecord

log = logging.getLogger(__name__)

Rendered = Mapping[str, Any]  # a Job as JSON

STAYS = "a Job stays as it is"  # why nothing is planned of a GPUJob: until it is looked at again
_AT_ONCE = 3  # times that something is put back without delay
_AGAIN = Backoff(1.0, 60.0)
_QUIET_SECONDS = 120.0  # without a change by somebody else, and the struggle is over
_REMEMBERED = 10_000  # Jobs, before those that are gone are forgotten
RECHECK_SECONDS = 30.0  # a refused change may be accepted once its namespace changed


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
        self._state, self._client = state, client
        self._recheck_seconds = recheck_seconds
        self._again, self._clock = again, clock
        self._written: dict[str, dict[str, _Written]] = {}  # by uid of the Job, and by field
        self._stays: dict[str, str] = {}  # by uid of the Job: why it stays as it is

    async def change(
        self, job: JobRecord, fields: Mapping[str, Any], rendered: Callable[[], Awaitable[Rendered]]
    ) -> bool:
        """Write fields of a Job's spec, if any; False where it has to stay, see ``complaint``.

        ``rendered``: the Job as it is to be; asked for only when a suspended one goes on.

        Raises:
            ApiError: the API server could not be asked, or knows another Job by that name.
        """
        why = ""
        if fields.get("suspend") is False:
            why = await self._edited(job, await rendered())
        if fields and not why:
            try:
                await self._write(job, fields)
            except (errors.Forbidden, errors.Unprocessable) as error:
                if any(cause.field == "metadata.uid" for cause in error.details.causes):
                    raise  # another Job of that name: news of it are on their way
                why = refused_change(job, fields, error)
                self._state.let_be(job.uid)
        self._stays.pop(job.uid, None)
        if why:
            self._stays = {u: w for u, w in self._stays.items() if u in self._state.jobs}
            self._stays[job.uid] = why
            self._again(job.owner, self._recheck_seconds)
        return not why

    async def stop(self, jobs: Iterable[JobRecord], why: str) -> None:
        """Suspend those that have not ended; ``why`` is for the log.

        Raises:
            ApiError: it was refused, or the API server could not be asked.
        """
        for job in jobs:
            if not (job.ended or job.suspend):
                log.info("%s: suspending Job %s: %s", job.owner, job.name, why)
                await self._write(job, {"suspend": True})

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
            if not spec.get("suspend"):
                self._state.widening[job.uid] = spec.get("parallelism", 0)
            try:
                patched = await self._client.merge_patch(path, body, Job)
                if job.uid not in self._state.jobs:
                    return  # the watch has told its end before the answer
                at = self._state.job_changed(patched) or at
            finally:
                self._state.widening.pop(job.uid, None)
        self._note(job.uid, fields)

    def _narrows(self, job: JobRecord, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What the metadata of a write says of a Job that becomes narrower, or wider again.

        Narrower only as it was when that was decided: by then it may have other pods that run.
        """
        width = spec.get("parallelism", job.parallelism)
        if width < job.parallelism:
            return {"annotations": {NARROWED: "true"}, "resourceVersion": str(job.version)}
        if job.narrowed and width > job.parallelism and not self._state.shrinks(job):
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
        if stays := next(filter(None, (self._stays.get(job.uid) for job in running)), ""):
            return stays
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
        return uid in self._stays

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
            self._written = {u: w for u, w in self._written.items() if u in self._state.jobs}


def refused_change(job: JobRecord, differs: Mapping[str, Any], error: errors.ApiError) -> str:
    """What is wrong with a change that the API server, or a policy in it, refuses."""
    fields = " and ".join(f"spec.{name}" for name in differs)
    return f"{fields}: the API server refuses the change of Job {job.name}: {error.message}"
