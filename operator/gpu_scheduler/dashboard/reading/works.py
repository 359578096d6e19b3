"""Workloads as rows: from the status that everybody can read, and from what their GPUs do now.

A row is made anew where its status or its figures are another one; of ten thousand jobs few are.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.refs import of_group, of_job, ref_of
from gpu_scheduler.dashboard.rows import JobRow, Phase, Ref
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.common.work_name import GPUJOB
from gpu_scheduler.runtime.usage.works import LiveWork, requested_gpus
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, changed_seconds, epoch_seconds
from gpu_scheduler.state.pods.pod import Stage

_PHASES: Mapping[str, Phase] = {
    "Pending": "Pending",
    "Running": "Running",
    "Suspended": "Suspended",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}


class _Figures(NamedTuple):
    """What of a row its GPUs say."""

    held: float = 0.0
    busy: float | None = None
    memory_mib: float | None = None
    idle_since: float | None = None
    advice: str = ""


_NOTHING = _Figures()


class WorkRows:
    """Remembers rows from picture to picture."""

    def __init__(self, state: ClusterState, idle_seconds: float) -> None:
        """``idle_seconds``: without a kernel after which work is idle."""
        self._state = state
        self._idle_seconds = idle_seconds
        self._rows: dict[str, tuple[object, object, JobRow]] = {}  # by uid

    async def read(
        self, works: Mapping[str, LiveWork], headlines: Mapping[str, str], at: float
    ) -> tuple[JobRow, ...]:
        """All of them, the newest first.

        Args:
            works: what holds GPUs, by key.
            headlines: the rule of the first advice of work, by key.
            at: epoch seconds.
        """
        rows: dict[str, tuple[object, object, JobRow]] = {}
        async for job in in_pieces(tuple(self._state.gpujobs.values())):
            work = works.get(job.uid)
            figures = self._figures(work, headlines, at)
            known = self._rows.get(job.uid)
            if known is None or known[0] is not job.status or known[1] != figures:
                try:
                    known = job.status, figures, self._row(job, figures)
                except Exception:  # a status is what somebody wrote
                    unexpected("dashboard", job.key)
                    continue
            rows[job.uid] = known
        self._rows = rows
        found = [row for _, _, row in rows.values()]
        found += self._owners(works, headlines, at)
        return tuple(sorted(found, key=lambda row: -row.created))

    def _figures(self, work: LiveWork | None, headlines: Mapping[str, str], at: float) -> _Figures:
        if work is None:
            return _NOTHING
        idle, busy = work.idle_seconds(), work.busy()
        since = None
        if idle is not None and idle >= self._idle_seconds:
            since = round(at - idle, -1)  # agents look each ten seconds
        return _Figures(
            work.milli / DEVICE_MILLI,
            busy if busy is None else round(busy, 3),
            work.summed("memory_mib"),
            since,
            headlines.get(work.name.key, ""),
        )

    def _row(self, job: GPUJobRecord, figures: _Figures) -> JobRow:
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

    def _owners(
        self, works: Mapping[str, LiveWork], headlines: Mapping[str, str], at: float
    ) -> list[JobRow]:
        """Who owns pods that ask by themselves: what of them holds GPUs, and what waits."""
        waiting: dict[Ref, list[GPUJobRecord]] = {}
        for key in self._state.waiting.keys():
            group = self._state.groups.records.get(key)
            if group is not None:
                waiting.setdefault(of_group(self._state, group), []).append(group)
        holding = {
            ref_of(work.name, work.job): work for work in works.values() if work.name.kind != GPUJOB
        }
        return [
            self._owner(ref, holding.get(ref), waiting.get(ref, []), headlines, at)
            for ref in dict.fromkeys((*holding, *waiting))
        ]

    def _owner(
        self,
        ref: Ref,
        work: LiveWork | None,
        waiting: list[GPUJobRecord],
        headlines: Mapping[str, str],
        at: float,
    ) -> JobRow:
        figures = self._figures(work, headlines, at)
        pods = [pod for pod, _ in work.pods] if work is not None else []
        running = sum(pod.stage is Stage.RUNNING for pod in pods)
        asked = sum(
            pod.pod_shape.nominal_milli
            for group in waiting
            if (job := self._state.waiting_job(group.key)) is not None
            for pod in job.pods
        )
        created = min(
            (each for each in (*(epoch_seconds(p.created) for p in pods),
                               *(g.created_seconds for g in waiting)) if each),
            default=at,
        )  # fmt: skip
        nodes = list(dict.fromkeys(pod.node for pod in pods))
        more = f" +{len(nodes) - 1} more" if len(nodes) > 1 else ""
        return JobRow(
            ref=ref,
            project=str(self._state.projects.owner(ref.namespace) or ""),
            type=str(work.type) if work is not None else "",
            phase="Running" if running else "Pending",
            reason="",
            message="",
            asked=figures.held + asked / DEVICE_MILLI,
            running=running,
            succeeded=0,
            pods=len(pods) + len(waiting),
            node=f"{nodes[0]}{more}" if nodes else "",
            created=created,
            ended=None,
            sweep=False,
            **figures._asdict(),
        )
