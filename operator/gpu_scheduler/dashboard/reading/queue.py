"""What waits, as its status says it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter

from gpu_scheduler.api.states import NEVER, STATES, Group
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.core.model.wording import memory
from gpu_scheduler.dashboard.rows import JobRow, QueueRow
from gpu_scheduler.state.jobs.job import GPUJobRecord, changed_seconds

_LAST = 1 << 30
_MIB = 1 << 20
_STUCK = frozenset(each.reason for each in STATES if each.group is Group.STUCK)
_MENDED = frozenset(each.reason for each in STATES if each.group is Group.OWNER) | _STUCK | NEVER


Queued = tuple[tuple[int, float, str, str, str], QueueRow]
"""With its place in the order in which each project's are served; those without one come last."""
_PLACE, _ROW = itemgetter(0), itemgetter(1)


def queued(row: QueueRow | None) -> Queued | None:
    """With its place."""
    if row is None:
        return None
    ref = row.ref
    return (row.position or _LAST, row.since, ref.name, ref.namespace, ref.kind), row


class InOrder:
    """Remembers who was where: few are elsewhere a second later, so most of the work is done."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._known: list[Queued] = []

    def of(self, waiting: Iterable[Queued]) -> tuple[QueueRow, ...]:
        """By their places."""
        now = {id(each): each for each in waiting}
        stay = [each for each in self._known if now.pop(id(each), None) is not None]
        self._known = sorted([*stay, *now.values()], key=_PLACE)
        return tuple(map(_ROW, self._known))


def queue_row(row: JobRow, job: GPUJobRecord) -> QueueRow | None:
    """Of a GPUJob; None: it does not wait."""
    if row.phase not in ("Pending", "Running"):
        return None
    position = job.status.get("queuePosition")
    waits = int((job.status.get("pods") or {}).get("pending") or 0)
    if row.phase == "Running" and not (position and waits):
        return None
    role = next(iter(job.requests.values()), None)
    each = sum(d.count * d.milli for d in role.devices) if role is not None else 0
    pods = waits or (row.pods if row.phase == "Pending" else 0)
    return QueueRow(
        ref=row.ref,
        project=row.project,
        type=row.type,
        priority=str(job.spec.priority) if job.spec is not None else "",
        position=position if isinstance(position, int) else 0,
        each=asked_words(role.devices) if role is not None else "",
        pods=pods,
        gpus=each * pods / DEVICE_MILLI,
        reason=row.reason,
        message=row.message,
        since=changed_seconds(job.status, "False", "Placed") or row.created,
        mends=row.reason in _MENDED,
    )


def asked_words(devices: Iterable[DeviceRequest]) -> str:
    """What a pod asks for: '0.5', '4' whole ones, '2 × 0.5', '8Gi'."""
    return " + ".join(map(_amount, devices))


def _amount(asked: DeviceRequest) -> str:
    if not asked.mib and asked.milli == DEVICE_MILLI:
        return str(asked.count)
    each = memory(asked.mib * _MIB) if asked.mib else gpu_from_milli(asked.milli)
    return f"{asked.count} × {each}" if asked.count > 1 else each


def pending_by_project(
    rows: Collection[QueueRow], holding: Iterable[JobRow]
) -> Mapping[str, tuple[int, float]]:
    """How many of each project wait, and GPUs that those ask for that can start as they are.

    ``holding``: what holds GPUs.
    """
    jobs, gpus = defaultdict[str, int](int), defaultdict[str, float](float)
    stuck = {row.ref for row in rows if row.reason in _STUCK}
    placed = {row.ref for row in holding if row.ref in stuck} if stuck else stuck
    deleting = str(Reason.DELETING)
    for row in rows:
        reason, project = row.reason, row.project
        if reason == deleting or (reason in _STUCK and row.ref in placed):
            continue
        jobs[project] += 1
        if not row.mends:
            gpus[project] += row.gpus
    return {project: (count, gpus.get(project, 0.0)) for project, count in jobs.items()}
