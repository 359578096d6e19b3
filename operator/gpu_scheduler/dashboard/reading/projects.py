"""Projects as rows."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.queue import pending_by_project
from gpu_scheduler.dashboard.rows import JobRow, ProjectRow, QueueRow
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.figures import GpuState

_DOES = GpuState.UNKNOWN, GpuState.BUSY, GpuState.IDLE


def project_rows(
    state: ClusterState,
    plan: LastPlan,
    milli: Mapping[tuple[str, GpuState], int],
    holding: Iterable[JobRow],
    queue: Collection[QueueRow],
    borrowed_since: Callable[[str], float | None],
) -> tuple[ProjectRow, ...]:
    """By name.

    Args:
        state: the cluster.
        plan: what the last plan said of them.
        milli: what each holds, by what it does.
        holding: the work that holds GPUs.
        queue: what waits.
        borrowed_since: since when a project borrows without a break.
    """
    owned = state.projects.holdings(state.ledger.held_milli)
    works = tuple(holding)
    running = Counter(row.project for row in works)
    pending = pending_by_project(queue, works)
    found = []
    for name, record in sorted(state.projects.records.items()):
        project, held = record.project, owned.get(name, 0)
        over = max(0, held - project.quota_milli)
        waiting, gpus = pending.get(str(name), (0, 0.0))
        limit = project.limit_milli
        unknown, busy, idle = (milli.get((str(name), each), 0) for each in _DOES)
        found.append(
            ProjectRow(
                name=str(name),
                quota=project.quota_milli / DEVICE_MILLI,
                limit=None if limit is None else limit / DEVICE_MILLI,
                fair_share=plan.shares_milli.get(name, 0) / DEVICE_MILLI,
                held=held / DEVICE_MILLI,
                borrowed=over / DEVICE_MILLI,
                borrowed_since=borrowed_since(str(name)) if over else None,
                busy=None if unknown else busy / DEVICE_MILLI,
                idle=idle / DEVICE_MILLI,
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
