"""Who comes first.

Between projects the one that holds the smallest part of its fair share; inside a project
interactive before training, then high priority, then age, then the key. ``project_rank`` is the
one place that says what a fair order between projects is. Called by ``plan``.
"""

import math

from gpu_scheduler.core.request import ProjectName, WaitingJob

JobRank = tuple[bool, int, float, str]
ProjectRank = tuple[float, int, str]


def job_rank(job: WaitingJob) -> JobRank:
    """Sort key of a job among those of its project."""
    return (not job.interactive, -job.priority, job.created, job.key)


def project_rank(name: ProjectName, allocated_milli: int, share_milli: int) -> ProjectRank:
    """Sort key of a project; grows with what the project holds."""
    share = allocated_milli / share_milli if share_milli > 0 else math.inf
    return (share, allocated_milli, name)
