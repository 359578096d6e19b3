"""What waits, as its status says it."""

from collections.abc import Iterable, Mapping

from gpu_scheduler.api.states import NEVER, STATES, Group
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.core.model.wording import memory
from gpu_scheduler.dashboard.reading.refs import of_group
from gpu_scheduler.dashboard.rows import JobRow, QueueRow, Ref
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, changed_seconds, job_key

_LAST = 1 << 30
_MIB = 1 << 20
_MENDED = frozenset(
    each.reason for each in STATES if each.group in (Group.OWNER, Group.STUCK) and each.reason
) | frozenset(map(str, NEVER))


class QueueRows:
    """Remembers rows from picture to picture: one whose job's row is the same stays."""

    def __init__(self, state: ClusterState, plan: LastPlan) -> None:
        """Nothing is read yet."""
        self._state = state
        self._plan = plan
        self._known: dict[Ref, tuple[JobRow, QueueRow | None]] = {}

    def read(self, works: Iterable[JobRow]) -> tuple[QueueRow, ...]:
        """In the order in which each project's are served; those without a place come last."""
        known: dict[Ref, tuple[JobRow, QueueRow | None]] = {}
        gpujobs, rows = self._state.gpujobs, []
        for row in works:
            if row.phase not in ("Pending", "Running") or row.ref.kind != "GPUJob":
                continue
            before = self._known.get(row.ref)
            if before is None or before[0] is not row:
                job = gpujobs.get(job_key(row.ref.namespace, row.ref.name))
                before = row, _of_job(row, job) if job is not None else None
            known[row.ref] = before
            if before[1] is not None:
                rows.append(before[1])
        self._known = known
        rows += _groups(self._state, self._plan)
        return tuple(sorted(rows, key=lambda row: (row.position or _LAST, row.since, row.ref.name)))


def _of_job(row: JobRow, job: GPUJobRecord) -> QueueRow | None:
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


def _groups(state: ClusterState, plan: LastPlan) -> list[QueueRow]:
    """Pods that ask by themselves, by who made them."""
    verdicts = plan.verdicts()
    found: dict[Ref, QueueRow] = {}
    for key in state.waiting.keys():
        group = state.groups.records.get(key)
        job = state.waiting_job(key) if group is not None else None
        if group is None or job is None or not job.pods:
            continue
        ref = of_group(state, group)
        before = found.get(ref)
        reason, message = verdicts.get(key, ("", ""))
        milli = sum(pod.pod_shape.nominal_milli for pod in job.pods)
        since = min(pod.since for pod in job.pods)
        found[ref] = QueueRow(
            ref=ref,
            project=str(job.project),
            type=str(group.spec.type) if group.spec is not None else "",
            priority=str(job.priority),
            position=0,
            each=asked_words(job.pods[0].pod_shape.devices),
            pods=len(job.pods) + (before.pods if before is not None else 0),
            gpus=milli / DEVICE_MILLI + (before.gpus if before is not None else 0.0),
            reason=str(reason) if before is None else before.reason,
            message=message if before is None else before.message,
            since=since if before is None else min(since, before.since),
            mends=reason in NEVER,
        )
    return list(found.values())


def asked_words(devices: Iterable[DeviceRequest]) -> str:
    """What a pod asks for: '0.5', '4' whole ones, '2 × 0.5', '8Gi'."""
    return " + ".join(map(_amount, devices))


def _amount(asked: DeviceRequest) -> str:
    if not asked.mib and asked.milli == DEVICE_MILLI:
        return str(asked.count)
    each = memory(asked.mib * _MIB) if asked.mib else gpu_from_milli(asked.milli)
    return f"{asked.count} × {each}" if asked.count > 1 else each


def pending_by_project(rows: Iterable[QueueRow]) -> Mapping[str, tuple[int, float]]:
    """How many of each project wait and could start, and GPUs that they ask for."""
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        if row.reason not in _MENDED:
            jobs, gpus = found.get(row.project, (0, 0.0))
            found[row.project] = jobs + 1, gpus + row.gpus
    return found
