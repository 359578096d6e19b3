"""Each project's waiting pods, in the order in which they are tried.

Called by ``plan``; ``rounds`` takes pods off ``pending``, the reasons speak of what stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.request import Project, ProjectName, WaitingJob, WaitingPod

Entry = tuple[WaitingJob, WaitingPod]


@dataclass(slots=True)
class Queue:
    """The waiting pods of one project: its jobs in order, the pods of a job in theirs."""

    project: Project
    pending: list[Entry]


def queue_up(
    projects: Mapping[ProjectName, Project], jobs: Sequence[WaitingJob]
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
        queue.pending.extend((job, pod) for pod in job.pods)
    return [queues[name] for name in sorted(queues)], orphans
