"""Each project's waiting groups of pods, in the order in which they are tried.

Called by ``plan``; what starts is taken off ``pending``, the reasons speak of what stays.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core.model.request import Project, ProjectName, WaitingJob
from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.pod_group import PodGroup, PodGroups, Position


@dataclass(slots=True)
class Queue:
    """What waits of one project: its jobs in order, the groups of a job in theirs."""

    project: Project
    pending: list[PodGroup]
    later: list[PodGroup] = field(default_factory=list)  # those whose turn comes later

    def hold_back(self, position: Position) -> None:
        """The groups from a position on have their turn later."""
        at = bisect_left(self.pending, position, key=lambda group: group.position)
        self.pending, self.later = self.pending[:at], self.pending[at:]

    def let_in(self) -> None:
        """Those have their turn now."""
        self.pending += self.later
        self.later = []


def queue_up(
    projects: Mapping[ProjectName, Project], jobs: Sequence[WaitingJob], groups: PodGroups
) -> tuple[list[Queue], list[WaitingJob]]:
    """Queues by project name, and the jobs whose project does not exist."""
    queues: dict[ProjectName, Queue] = {}
    orphans = []
    for job in sorted(jobs, key=job_rank):
        project = projects.get(job.project)
        if project is None:
            orphans.append(job)
            continue
        queue = queues.get(job.project)
        if queue is None:
            queue = queues[job.project] = Queue(project, [])
        queue.pending += groups.of(job, project)
    return [queues[name] for name in sorted(queues)], orphans
