"""GPUJobs as rows: from the status that everybody can read, and from what their GPUs do now.

The rows of a job are made anew where what they were made of is another object; of ten thousand jobs
few are.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.queue import Queued, queue_row, queued
from gpu_scheduler.dashboard.reading.refs import of_job
from gpu_scheduler.dashboard.reading.sweeps import sweep_row
from gpu_scheduler.dashboard.rows import JobRow, Phase, SweepRow
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.usage.works import LiveWork, requested_gpus
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, changed_seconds

_A_TURN = 100  # jobs
_PHASES: Mapping[str, Phase] = {
    "Pending": "Pending",
    "Running": "Running",
    "Suspended": "Suspended",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}


class Figures(NamedTuple):
    """What of a row its GPUs say."""

    held: float = 0.0
    busy: float | None = None
    memory_mib: float | None = None
    idle_since: float | None = None
    advice: str = ""


def figures_of(work: LiveWork | None, advice: str, idle_seconds: float, ahead: float) -> Figures:
    """Of work that holds GPUs, or does not; for ``ahead`` see ``WorkRows``."""
    if work is None:
        return Figures()
    idle, busy, since = work.idle_seconds(), work.busy(), None
    if idle is not None and idle >= idle_seconds:
        since = round(ahead + work.idle_since(), -1)  # agents look each ten seconds
    return Figures(
        work.milli / DEVICE_MILLI,
        busy if busy is None else round(busy, 3),
        work.summed("memory_mib"),
        since,
        advice,
    )


class RowsOfJob(msgspec.Struct, frozen=True, gc=False):
    """All rows of one; None: it has none of that list."""

    job: JobRow
    queued: Queued | None
    sweep: SweepRow | None


class _CachedRows(msgspec.Struct, frozen=True, gc=False):
    """Rows, and what they were made of; None: it could not be made."""

    uid: str
    status: object
    spec: object
    work: LiveWork | None
    advice: str
    rows: RowsOfJob | None


class WorkRows:
    """Remembers rows from picture to picture."""

    def __init__(self, state: ClusterState, idle_seconds: float, ahead: float) -> None:
        """Nothing is read yet.

        Args:
            state: the cluster; whose namespaces are does not change in the life of this.
            idle_seconds: without a kernel after which work is idle.
            ahead: epoch seconds at monotonic 0.
        """
        self._state = state
        self._idle_seconds = idle_seconds
        self._ahead = ahead
        self._known: list[
            _CachedRows
        ] = []  # in the order of the state, where those that stay keep it

    async def read(
        self, works: Mapping[str, LiveWork], headlines: Mapping[str, str]
    ) -> list[RowsOfJob]:
        """Of all GPUJobs, in pieces.

        Args:
            works: what holds GPUs, by key.
            headlines: the rule of the first advice of work, by key.
        """
        old, known = iter(self._known), list[_CachedRows]()
        was = next(old, None)
        async for part in in_parts(self._state.gpujobs.values(), _A_TURN):
            for job in part:
                uid = job.uid
                work = works.get(uid)
                advice = headlines.get(uid, "") if work is not None else ""
                while was is not None and was.uid != uid:
                    was = next(old, None)  # it is gone
                if was is None or was.status is not job.status or was.spec is not job.spec:
                    now = self._made(job, work, advice)
                elif was.work is not work or was.advice != advice:
                    now = self._with_figures(was, work, advice)
                else:
                    now = was
                known.append(now)
        self._known = known
        return [each.rows for each in known if each.rows is not None]

    def _made(self, job: GPUJobRecord, work: LiveWork | None, advice: str) -> _CachedRows:
        rows = None
        try:
            row = self._row(job, self._figures(work, advice))
            rows = RowsOfJob(row, queued(queue_row(row, job)), sweep_row(row, job))
        except Exception:  # a status is what somebody wrote
            unexpected("dashboard", job.key)
        return _CachedRows(job.uid, job.status, job.spec, work, advice, rows)

    def _with_figures(self, was: _CachedRows, work: LiveWork | None, advice: str) -> _CachedRows:
        """Only what its GPUs say is another."""
        rows = was.rows
        if rows is not None:
            row = replace(rows.job, **self._figures(work, advice)._asdict())
            rows = RowsOfJob(row, rows.queued, rows.sweep)
        return _CachedRows(was.uid, was.status, was.spec, work, advice, rows)

    def _figures(self, work: LiveWork | None, advice: str) -> Figures:
        return figures_of(work, advice, self._idle_seconds, self._ahead)

    def _row(self, job: GPUJobRecord, figures: Figures) -> JobRow:
        status, spec = job.status, job.spec
        pods = status.get("pods") or {}
        phase = _PHASES.get(str(status.get("phase")), "Pending")
        over = phase in ("Succeeded", "Failed")
        ended = changed_seconds(status, "True", "Complete", "Failed") if over else 0.0
        return JobRow(
            ref=of_job(job),
            project=str(self._state.projects.owner(job.namespace) or ""),
            type=str(spec.type) if spec is not None else "",
            phase=phase,
            reason=str(status.get("reason") or ""),
            message=str(status.get("message") or ""),
            asked=requested_gpus(job) or 0.0,
            running=int(pods.get("running") or 0),
            succeeded=int(pods.get("succeeded") or 0),
            pods=spec.total_pods if spec is not None else 0,
            node=str(status.get("node") or ""),
            created=job.created_seconds,
            ended=ended or None,
            sweep=spec is not None and spec.sweep is not None,
            **figures._asdict(),
        )
