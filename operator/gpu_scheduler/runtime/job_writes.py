"""Writes into Jobs that exist, so that they are as their GPUJob wants them.

What somebody else has changed is put back at once. Whoever writes it again and again is not
answered as often: after the third time the delay grows to a minute, and the GPUJob says so, until
the other has let it be for a while. Shared by the reconciler and the segments of sweeps.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.drift import TemplatedJob, edited, steps
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import JobRecord

_AT_ONCE = 3  # times that something is put back without delay
_AGAIN = Backoff(1.0, 60.0)
_QUIET_SECONDS = 120.0  # without a change by somebody else, and the struggle is over
_REMEMBERED = 10_000  # Jobs, before those that are gone are forgotten


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
        *,
        wake: Callable[[], None],
        again: Callable[[JobKey, float], None],
        clock: Callable[[], float],
    ) -> None:
        """``wake``: plan again; ``again``: look at a GPUJob after so many seconds."""
        self._state, self._client, self._wake = state, client, wake
        self._again, self._clock = again, clock
        self._written: dict[str, dict[str, _Written]] = {}  # by uid of the Job, and by field

    async def write(self, job: JobRecord, fields: Mapping[str, Any]) -> None:
        """Write fields of a Job's spec, but for those whose turn comes later.

        Raises:
            ApiError: it was refused, or the API server could not be asked.
        """
        now, known = self._clock(), self._struggles(job.uid)
        later = {f: known[f].due for f, value in fields.items() if self._waits(known, f, value)}
        if later:
            self._again(job.owner, min(later.values()) - now)
        fields = {field: value for field, value in fields.items() if field not in later}
        for spec in steps(job, fields) if fields else ():
            body = {"metadata": {"uid": job.uid}, "spec": spec}
            path = job_path(job.namespace, job.name)
            patched = await self._client.merge_patch(path, body, Job)
            if job.uid not in self._state.jobs:
                return  # the watch has told its end before the answer
            self._state.job_changed(patched)
            self._wake()
        self._note(job.uid, fields)

    async def edited(self, job: JobRecord, rendered: Mapping[str, Any]) -> str:
        """What somebody changed in a Job that was suspended; empty if it may go on.

        Raises:
            ApiError: the API server could not be asked.
        """
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
        """What somebody else changes in these Jobs again and again; empty if nobody does."""
        for job in jobs:
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
