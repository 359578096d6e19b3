"""Who owns pods that ask by themselves, as rows: what of them holds GPUs, and what waits.

Nobody writes a status of these: what waits is as the last plan said. A row is made anew where what
it was made of is another object.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from gpu_scheduler.api.states import NEVER
from gpu_scheduler.core.model.decision import Verdict
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.queue import Queued, asked_words, queued
from gpu_scheduler.dashboard.reading.refs import of_group, of_name
from gpu_scheduler.dashboard.reading.works import figures_of
from gpu_scheduler.dashboard.rows import JobRow, QueueRow, WorkRef
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.common.work_name import GPUJOB
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds
from gpu_scheduler.state.pods.pod import Stage

_A_TURN = 100  # groups, and owners
_Group = tuple[GPUJobRecord, WaitingJob | None, Verdict | None]
_UNSAID = "", ""
_NAME = attrgetter("namespace", "kind", "name")  # in which order they come is nobody's to say


@dataclass(slots=True)
class _Owner:
    """What its rows are made of."""

    work: LiveWork | None = None
    advice: str = ""
    waiting: list[_Group] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RowsOfOwner:
    """``queued``: None where none of its pods waits for a place."""

    job: JobRow
    queued: Queued | None


class OwnerRows:
    """Remembers rows from picture to picture."""

    def __init__(
        self, state: ClusterState, plan: LastPlan, idle_seconds: float, ahead: float
    ) -> None:
        """Nothing is read yet; see ``WorkRows``."""
        self._state = state
        self._plan = plan
        self._idle_seconds = idle_seconds
        self._ahead = ahead
        self._known: dict[WorkRef, tuple[_Owner, RowsOfOwner]] = {}

    async def read(
        self, works: Mapping[str, LiveWork], headlines: Mapping[str, str], at: float
    ) -> list[RowsOfOwner]:
        """Of all of them, in pieces; see ``WorkRows.read``. ``at``: epoch seconds."""
        owners = defaultdict[WorkRef, _Owner](_Owner)
        for key, work in works.items():
            if work.name.kind != GPUJOB:
                owner = owners[of_name(work.namespace, work.name)]
                owner.work = work
                owner.advice = headlines.get(key, "")
        verdicts, records = self._plan.verdicts(), self._state.groups.records
        async for part in in_parts(self._state.waiting.keys(), 10 * _A_TURN):
            for key in part:
                group = records.get(key)
                if group is not None:
                    about = group, self._state.waiting_job(key), verdicts.get(key)
                    owners[of_group(self._state, group)].waiting.append(about)
        known: dict[WorkRef, tuple[_Owner, RowsOfOwner]] = {}
        async for some in in_parts(sorted(owners, key=_NAME), _A_TURN):
            for ref in some:
                owner = owners[ref]
                was = self._known.get(ref)
                if was is None or not _same(was[0], owner):
                    waits = queued(_queue_row(ref, owner.waiting))
                    was = owner, RowsOfOwner(self._row(ref, owner, at), waits)
                known[ref] = was
        self._known = known
        return [rows for _, rows in known.values()]

    def _row(self, ref: WorkRef, owner: _Owner, at: float) -> JobRow:
        work, waiting = owner.work, owner.waiting
        figures = figures_of(work, owner.advice, self._idle_seconds, self._ahead)
        pods = [pod for pod, _ in work.pods] if work is not None else []
        running = sum(pod.stage is Stage.RUNNING for pod in pods)
        asked = sum(_milli(job) for _, job, _ in waiting if job is not None)
        began = [
            *(epoch_seconds(pod.created) for pod in pods),
            *(group.created_seconds for group, _, _ in waiting),
        ]
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
            created=min(filter(None, began), default=at),
            ended=None,
            sweep=False,
            **figures._asdict(),
        )


def _same(one: _Owner, other: _Owner) -> bool:
    """Whether the same rows follow."""
    return (
        one.work is other.work
        and one.advice == other.advice
        and len(one.waiting) == len(other.waiting)
        and all(
            a[0] is b[0] and a[1] is b[1] and a[2] == b[2]
            for a, b in zip(one.waiting, other.waiting, strict=True)
        )
    )


def _milli(job: WaitingJob) -> int:
    return sum(pod.pod_shape.nominal_milli for pod in job.pods)


def _queue_row(ref: WorkRef, waiting: list[_Group]) -> QueueRow | None:
    groups = [(group, job, said) for group, job, said in waiting if job is not None and job.pods]
    if not groups:
        return None
    first, job, said = groups[0]
    jobs = [each for _, each, _ in groups]
    reason, message = said or _UNSAID
    return QueueRow(
        ref=ref,
        project=str(job.project),
        type=str(first.spec.type) if first.spec is not None else "",
        priority=str(job.priority),
        position=0,
        each=asked_words(job.pods[0].pod_shape.devices),
        pods=sum(len(each.pods) for each in jobs),
        gpus=sum(map(_milli, jobs)) / DEVICE_MILLI,
        reason=str(reason),
        message=message,
        since=min(pod.since for each in jobs for pod in each.pods),
        mends=reason in NEVER,
    )
