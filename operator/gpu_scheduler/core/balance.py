"""Who holds more than its fair share and who less, as of now and with what is decided so far.

Pods that are about to go count no longer; room that is kept for a pod counts already. A project
is never taken below its fair share nor below its quota. Called by ``reclaim``.
"""

from collections.abc import Iterable, Mapping

from gpu_scheduler.core import quota
from gpu_scheduler.core.demand import Demands
from gpu_scheduler.core.departures import Departures
from gpu_scheduler.core.fairshare import fair_shares
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.queues import Queue
from gpu_scheduler.core.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.snapshot import Snapshot


def shares_now(
    snapshot: Snapshot,
    demands: Demands,
    projects: Mapping[ProjectName, Project],
    queues: Iterable[Queue],
    gangs: Gangs,
) -> dict[ProjectName, int]:
    """Fair shares at the start of a cycle: what is held and waited for, of what there is.

    Pods that no node can ever hold ask for nothing, nor do gangs that can never start.
    """
    held = {name: snapshot.allocated_milli(name) for name in projects}
    free = sum(snapshot.node_free_milli) - sum(
        snapshot.node_free_milli[n] for n, node in enumerate(snapshot.cluster.nodes) if node.closed
    )
    asked = dict(held)
    for queue in queues:
        name = queue.project.name
        asked[name] += _waiting_milli(queue, demands, gangs)
    return fair_shares(free + sum(held.values()), projects, asked)


def _waiting_milli(queue: Queue, demands: Demands, gangs: Gangs) -> int:
    total, shape, milli = 0, None, 0
    last: JobKey | None = None
    for job, pod in queue.pending:
        if job.gang is not None:
            if job.key != last:
                last = job.key
                total += _gang_milli(job, queue.project, gangs)
            continue
        if pod.shape is not shape:
            shape = pod.shape
            demand = demands.of(shape)
            milli = demand.least_milli if demand.could else 0
        total += milli
    return total


def _gang_milli(job: WaitingJob, project: Project, gangs: Gangs) -> int:
    request = gangs.of(job)
    never = request.least_milli > quota.ceiling_milli(project) or gangs.refusal(request)
    return 0 if never else request.least_milli


class Balance:
    """Held against fair share, project by project."""

    def __init__(
        self,
        snapshot: Snapshot,
        departures: Departures,
        projects: Mapping[ProjectName, Project],
        shares_milli: Mapping[ProjectName, int],
    ) -> None:
        self._snapshot, self._departures = snapshot, departures
        self._projects, self.shares_milli = projects, shares_milli

    def held_milli(self, name: ProjectName) -> int:
        """What a project will hold once those that leave are gone."""
        return self._snapshot.allocated_milli(name) - self._departures.milli[name]

    def missing_milli(self, name: ProjectName) -> int:
        """How far a project is below its fair share; not negative."""
        return max(0, self.shares_milli[name] - self.held_milli(name))

    def spare_milli(self, name: ProjectName) -> int:
        """How much can be taken from a project; not negative."""
        floor = max(self.shares_milli[name], self._projects[name].quota_milli)
        return max(0, self.held_milli(name) - floor)

    def most_over(self) -> list[ProjectName]:
        """Projects from which something can be taken, most over their fair share first."""
        over = [name for name in self._projects if self.spare_milli(name) > 0]
        return sorted(over, key=lambda n: (-self._times(n), -self.held_milli(n), n))

    def growth_milli(self, project: Project) -> int:
        """What a pod may cost beyond what it takes from others of its project; may be negative."""
        held = self.held_milli(project.name)
        bound = max(project.quota_milli, held, self.shares_milli[project.name])
        return min(quota.ceiling_milli(project), bound) - held

    def _times(self, name: ProjectName) -> float:
        share = self.shares_milli[name]
        return self.held_milli(name) / share if share else float("inf")
