"""Makes the picture: when somebody looks, at most once a second, in pieces, and one for all.

What of the cluster has not changed since the last one is not read anew.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from operator import attrgetter

from gpu_scheduler.api.gpuusage import Workload
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.dashboard.picture import DeviceDetail, JobDetail, Picture, SweepDetail
from gpu_scheduler.dashboard.reading.chart import chart_of
from gpu_scheduler.dashboard.reading.device import device_detail
from gpu_scheduler.dashboard.reading.job import job_detail
from gpu_scheduler.dashboard.reading.nodes import NodeRows
from gpu_scheduler.dashboard.reading.owners import OwnerRows
from gpu_scheduler.dashboard.reading.projects import project_rows
from gpu_scheduler.dashboard.reading.queue import InOrder
from gpu_scheduler.dashboard.reading.refs import of_group
from gpu_scheduler.dashboard.reading.sweeps import sweep_detail
from gpu_scheduler.dashboard.reading.works import WorkRows
from gpu_scheduler.dashboard.rows import AdviceRow, IdleRow, JobRow, WorkRef
from gpu_scheduler.dashboard.views import ChartView
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.runtime.usage.held import NodeHeld
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds, job_key
from gpu_scheduler.usage.giving_back import give_back

SECONDS = 1.0  # that a picture may be old
_SECONDS_OF_EACH = 70e-6  # the same, where there is so much that a twentieth of a core made it
_CLOCK_SET_SECONDS = 1.0  # that the wall clock is off by more than since the rows were made
_HOUR = 3600
_CREATED = attrgetter("created")


@dataclass(frozen=True, slots=True)
class _Readers:
    """What remembers rows, as long as these two stay: they are a part of each row.

    Attributes:
        owners: whose namespaces are.
        ahead: epoch seconds at monotonic 0.
    """

    owners: object
    ahead: float
    jobs: WorkRows
    others: OwnerRows
    nodes: NodeRows

    @classmethod
    def new(cls, leader: Operator, ahead: float) -> "_Readers":
        state, idle = leader.state, leader.common.settings.idle_seconds
        return cls(
            state.projects.owners,
            ahead,
            WorkRows(state, idle, ahead),
            OwnerRows(state, leader.common.plan, idle, ahead),
            NodeRows(state, idle, ahead),
        )


class PictureMaker:
    """``await look()`` is how it is now. Is also the ``Details`` of its pictures."""

    def __init__(self, leader: Operator) -> None:
        """Of this leader; nothing is read yet."""
        self._leader = leader
        self._readers = _Readers.new(leader, inf)
        self._queue = InOrder()
        self._works: Mapping[str, LiveWork] = {}
        self._nodes: Mapping[str, NodeHeld] = {}
        self.look = SharedLook(self._look, self._seconds, leader.common.clock.monotonic)

    def _seconds(self) -> float:
        """From one picture to the next."""
        state = self._leader.state
        return max(SECONDS, _SECONDS_OF_EACH * (len(state.gpujobs) + len(state.ledger.charges)))

    def _current(self, ahead: float) -> _Readers:
        readers = self._readers
        stays = readers.owners is self._leader.state.projects.owners
        if not (stays and abs(readers.ahead - ahead) < _CLOCK_SET_SECONDS):
            readers = self._readers = _Readers.new(self._leader, ahead)
        return readers

    async def _look(self) -> Picture:
        leader, usage, clock = self._leader, self._leader.usage, self._leader.common.clock
        state, charts, headlines = leader.state, usage.charts, usage.minute.headlines
        at = clock.now()
        readers = self._current(at - clock.monotonic())
        holders, where = await usage.cluster.holders(), await usage.cluster.gpus()
        self._works = holders.works
        self._nodes = holders.nodes
        nodes = await readers.nodes.read(holders.nodes.values())
        jobs = await readers.jobs.read(holders.works, headlines)
        others = await readers.others.read(holders.works, headlines, at)
        works = [*(each.job for each in jobs), *(each.job for each in others)]
        works.sort(key=_CREATED, reverse=True)
        await asyncio.sleep(0)
        queued = [each.queued for each in jobs if each.queued is not None]
        queued += [each.queued for each in others if each.queued is not None]
        queue = self._queue.of(queued)
        await asyncio.sleep(0)
        sweeps = [each.sweep for each in jobs if each.sweep is not None]
        holding = [row for row in works if row.held]
        return Picture(
            at=at,
            idle_seconds=round(leader.common.settings.idle_seconds),
            followed=usage.asker is not None,
            silent_agents=usage.seen.silent_agents(),
            parts=where.by_state,
            nodes=nodes,
            projects=project_rows(
                state,
                leader.common.plan,
                where.milli,
                holding,
                queue,
                lambda name: charts.borrowed_since(name, at),
            ),
            works=tuple(works),
            queue=queue,
            sweeps=tuple(sorted(sweeps, key=_CREATED, reverse=True)),
            idle=idle_rows(holding, at),
            advice=self._advice(holding),
            details=self,
        )

    def _advice(self, rows: Iterable[JobRow]) -> tuple[AdviceRow, ...]:
        """Most GPUs first."""
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

    def _kept(self, ref: WorkRef) -> Workload | None:
        return self._leader.usage.minute.objects.kept(ref.namespace, self._key(ref))

    def _key(self, ref: WorkRef) -> str:
        """Of a workload; see ``WorkName``."""
        job = self._job(ref)
        return job.uid if job is not None else f"{ref.namespace}/{ref.kind.lower()} {ref.name}"

    def _job(self, ref: WorkRef) -> GPUJobRecord | None:
        if ref.kind == "GPUJob":
            return self._leader.state.gpujobs.get(job_key(ref.namespace, ref.name))
        return None

    def job(self, ref: WorkRef) -> JobDetail | None:
        """Of a workload."""
        work, job = self._works.get(self._key(ref)), self._job(ref)
        if job is None and ref.kind != "GPUJob":
            job = work.job if work is not None else self._waiting(ref)
        if job is None:
            return None
        ranks = self._leader.usage.minute.objects.ranks(ref.namespace, self._key(ref))
        return job_detail(self._leader.state, job, work, self._kept(ref), ranks)

    def _waiting(self, ref: WorkRef) -> GPUJobRecord | None:
        state = self._leader.state
        groups: dict[JobKey, GPUJobRecord] = dict(state.groups.records)
        return next((g for g in groups.values() if of_group(state, g) == ref), None)

    def sweep(self, ref: WorkRef) -> SweepDetail | None:
        """Of a search."""
        job = self._job(ref)
        return sweep_detail(job, self._leader.common.clock.now()) if job is not None else None

    def device(self, node: str, index: int) -> DeviceDetail | None:
        """Of a GPU."""
        held = self._nodes.get(node)
        earlier = self._leader.usage.earlier
        return device_detail(held, index, earlier) if held is not None else None

    def chart(self, project: str, span: str) -> ChartView | None:
        """GPUs over time."""
        return chart_of(
            self._leader.usage.charts.charts, project, span, self._leader.common.clock.now()
        )


def idle_rows(holding: Iterable[JobRow], at: float) -> tuple[IdleRow, ...]:
    """Who of those does not use what it holds, most GPU-hours first."""
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
        for row in holding
        if row.idle_since is not None
    ]
    return tuple(sorted(found, key=lambda row: -row.gpu_hours))
