"""Projects as rows."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.queue import pending_by_project
from gpu_scheduler.dashboard.rows import JobRow, NodeRow, ProjectRow, QueueRow
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.figures import GpuState, held_parts


def project_rows(
    state: ClusterState,
    plan: LastPlan,
    nodes: Iterable[NodeRow],
    works: Iterable[JobRow],
    queue: Iterable[QueueRow],
    borrowed_since: Callable[[str], float | None],
) -> tuple[ProjectRow, ...]:
    """By name; ``borrowed_since``: since when a project borrows without a break."""
    held = state.snapshot().allocated_milli
    milli_in: defaultdict[str, Counter[GpuState]] = defaultdict(Counter)
    for share in (s for node in nodes for device in node.devices for s in device.shares):
        used = None if share.busy is None else round(share.busy * DEVICE_MILLI)
        taken = round(share.gpus * DEVICE_MILLI)
        for each, part in held_parts(taken, used, idle=share.idle_since is not None):
            milli_in[share.project][each] += part
    running = Counter(row.project for row in works if row.held > 0)
    pending = pending_by_project(queue)
    found = []
    for name, record in sorted(state.projects.records.items()):
        project, milli = record.project, held.get(name, 0)
        over = max(0, milli - project.quota_milli)
        waiting, gpus = pending.get(str(name), (0, 0.0))
        limit, there = project.limit_milli, milli_in[str(name)]
        found.append(
            ProjectRow(
                name=str(name),
                quota=project.quota_milli / DEVICE_MILLI,
                limit=None if limit is None else limit / DEVICE_MILLI,
                fair_share=plan.shares_milli.get(name, 0) / DEVICE_MILLI,
                held=milli / DEVICE_MILLI,
                borrowed=over / DEVICE_MILLI,
                borrowed_since=borrowed_since(str(name)) if over else None,
                busy=None if there[GpuState.UNKNOWN] else there[GpuState.BUSY] / DEVICE_MILLI,
                idle=there[GpuState.IDLE] / DEVICE_MILLI,
                pending=round(gpus, 3),
                waiting=waiting,
                running=running[str(name)],
                namespaces=tuple(
                    each for each in record.namespaces if state.projects.owner(each) == name
                ),
                problem=record.problem,
            )
        )
    return tuple(found)
