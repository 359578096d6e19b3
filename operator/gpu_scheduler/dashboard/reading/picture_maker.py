"""Makes the picture: when somebody looks, at most once a second, in pieces, and one for all."""

from gpu_scheduler.api.gpuusage import Workload
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.dashboard.picture import JobDetail, Picture, SweepDetail
from gpu_scheduler.dashboard.reading.chart import chart_of
from gpu_scheduler.dashboard.reading.job import job_detail
from gpu_scheduler.dashboard.reading.nodes import NodeRows
from gpu_scheduler.dashboard.reading.projects import project_rows
from gpu_scheduler.dashboard.reading.queue import QueueRows
from gpu_scheduler.dashboard.reading.refs import of_group, ref_of
from gpu_scheduler.dashboard.reading.sweeps import sweep_detail, sweep_rows
from gpu_scheduler.dashboard.reading.works import WorkRows
from gpu_scheduler.dashboard.rows import AdviceRow, IdleRow, JobRow, Ref
from gpu_scheduler.dashboard.views import Chart
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds, job_key
from gpu_scheduler.usage.giving_back import give_back

SECONDS = 1.0  # that a picture may be old
_HOUR = 3600


class PictureMaker:
    """``await look()`` is how it is now. Is also the ``Details`` of its pictures."""

    def __init__(self, leader: Operator) -> None:
        """Of this leader; nothing is read yet."""
        self._leader = leader
        self._rows = WorkRows(leader.state, leader.common.settings.idle_seconds)
        self._nodes = NodeRows(leader.state, leader.usage.seen, leader.common.settings.idle_seconds)
        self._queue = QueueRows(leader.state, leader.common.plan)
        self._works: dict[str, LiveWork] = {}
        self.look = SharedLook(self._look, SECONDS, leader.common.clock.monotonic)

    async def _look(self) -> Picture:
        leader, usage = self._leader, self._leader.usage
        common, state = leader.common, leader.state
        settings = common.settings
        now, at = common.clock.monotonic(), common.clock.now()
        self._works = works = await usage.cluster.works()
        rows = await self._rows.read(works, usage.minute.headlines, at)
        nodes = await self._nodes.read(now, at)
        queue = self._queue.read(rows)
        charts = usage.charts
        return Picture(
            at=at,
            idle_seconds=round(settings.idle_seconds),
            followed=usage.asker is not None,
            silent_agents=usage.seen.silent_agents(),
            parts=await usage.cluster.gpus(),
            nodes=nodes,
            projects=project_rows(
                state, common.plan, nodes, rows, queue, lambda name: charts.borrowed_since(name, at)
            ),
            works=rows,
            queue=queue,
            sweeps=sweep_rows(state, rows),
            idle=idle_rows(rows, at),
            advice=self._advice(rows),
            details=self,
        )

    def _advice(self, rows: tuple[JobRow, ...]) -> tuple[AdviceRow, ...]:
        """Of what holds GPUs, most GPUs first."""
        advised = sorted((row for row in rows if row.advice), key=lambda row: -row.held)
        return tuple(
            AdviceRow(
                ref=row.ref,
                project=row.project,
                rule=each.rule,
                since=epoch_seconds(each.since or "") or None,
                message=each.message,
                command=each.command,
            )
            for row in advised
            if (kept := self._kept(row.ref)) is not None
            for each in kept.advice
        )

    def _kept(self, ref: Ref) -> Workload | None:
        job = self._job(ref)
        key = job.uid if ref.kind == "GPUJob" and job is not None else _text(ref)
        return self._leader.usage.minute.objects.kept(ref.namespace, key)

    def _job(self, ref: Ref) -> GPUJobRecord | None:
        if ref.kind == "GPUJob":
            return self._leader.state.gpujobs.get(job_key(ref.namespace, ref.name))
        return None

    def _live(self, ref: Ref) -> LiveWork | None:
        found = (work for work in self._works.values() if ref_of(work.name, work.job) == ref)
        return next(found, None)

    def job(self, ref: Ref) -> JobDetail | None:
        """Of a workload."""
        work, job = self._live(ref), self._job(ref)
        if job is None and ref.kind != "GPUJob":
            job = work.job if work is not None else self._waiting(ref)
        if job is None:
            return None
        return job_detail(self._leader.state, job, work, self._kept(ref))

    def _waiting(self, ref: Ref) -> GPUJobRecord | None:
        state = self._leader.state
        groups: dict[JobKey, GPUJobRecord] = dict(state.groups.records)
        return next((g for g in groups.values() if of_group(state, g) == ref), None)

    def sweep(self, ref: Ref) -> SweepDetail | None:
        """Of a search."""
        job = self._job(ref)
        return sweep_detail(job, self._leader.common.clock.now()) if job is not None else None

    def chart(self, project: str, span: str) -> Chart | None:
        """GPUs over time."""
        return chart_of(
            self._leader.usage.charts.charts, project, span, self._leader.common.clock.now()
        )


def _text(ref: Ref) -> str:
    """The key of who owns pods that ask by themselves; see ``WorkName``."""
    return f"{ref.namespace}/{ref.kind.lower()} {ref.name}"


def idle_rows(rows: tuple[JobRow, ...], at: float) -> tuple[IdleRow, ...]:
    """Who holds GPUs and does not use them, most GPU-hours first."""
    found = [
        IdleRow(
            ref=row.ref,
            project=row.project,
            type=row.type,
            gpus=row.held,
            idle_since=row.idle_since,
            gpu_hours=row.held * (at - row.idle_since) / _HOUR,
            command=give_back(row.ref.kind, row.ref.namespace, row.ref.name),
        )
        for row in rows
        if row.held > 0 and row.idle_since is not None
    ]
    return tuple(sorted(found, key=lambda row: -row.gpu_hours))
