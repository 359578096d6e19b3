"""Where a waiting job stands: what is before it, by what that is decided, and its project.

The order is the planner's (``core.queue.order``): between projects the one that holds the smallest
part of its fair share; inside one interactive before training, then priority, then age.
"""

from collections.abc import Sequence
from typing import Any

from gpu_scheduler.core.explain.group_words import cost
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.decision import Wait
from gpu_scheduler.core.model.request import JobKey, ProjectName, WaitingJob
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.model.wording import at
from gpu_scheduler.core.queue.order import project_rank
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.simulate.planned import Planned

Json = dict[str, Any]


def projects(planned: Planned, own: ProjectName) -> list[Json]:
    """The numbers of all projects of which something waits, that whose turn is next first.

    ``own``: a project that is among them in any case.
    """
    held, shares = planned.before.allocated_milli, planned.plan.shares_milli
    waiting: dict[ProjectName, list[WaitingJob]] = {own: []}
    for job in planned.jobs.values():
        if job.project in planned.projects:
            waiting.setdefault(job.project, []).append(job)
    ranked = sorted(
        waiting, key=lambda name: project_rank(name, held.get(name, 0), shares.get(name, 0))
    )
    return [_numbers(planned, name, waiting[name]) for name in ranked]


def _numbers(planned: Planned, name: ProjectName, jobs: Sequence[WaitingJob]) -> Json:
    project = planned.projects[name]
    held = planned.before.allocated_milli.get(name, 0)
    pending = sum(pod.pod_shape.nominal_milli for job in jobs for pod in job.pods)
    limit = project.limit_milli
    return {
        "name": str(name),
        "quota": gpu_from_milli(project.quota_milli),
        "limit": None if limit is None else gpu_from_milli(limit),
        "weight": project.weight,
        "allocated": gpu_from_milli(held),
        "borrowed": gpu_from_milli(max(0, held - project.quota_milli)),
        "fairShare": gpu_from_milli(planned.plan.shares_milli.get(name, 0)),
        "pending": gpu_from_milli(pending),
        "waiting": len(jobs),
    }


def before(planned: Planned, key: JobKey) -> list[Json]:
    """The jobs that are before one in the queue of its project, the first first."""
    mine, found = planned.plan.waits.of(key), list[Json]()
    if mine is None:
        return found
    project = planned.jobs[key].project
    for wait in planned.plan.waits:
        job = planned.jobs.get(wait.job)
        if job is not None and job.project == project and wait.position < mine.position:
            found.append(_before(planned, wait, job))
    return found


def _before(planned: Planned, wait: Wait, job: WaitingJob) -> Json:
    group = planned.group_of(wait.job)
    return {
        "position": wait.position,
        "job": planned.name_of(wait.job),
        "asks": cost(group) if group is not None else "",
        "pods": len(job.pods),
        **_rank(job),
        "reason": str(wait.reason),
    }


def place(planned: Planned, key: JobKey, group: PodGroup) -> Json:
    """What decides when the turn of a job comes."""
    job, project = group.job, group.project
    mine = planned.plan.waits.of(key)
    held = planned.before.allocated_milli.get(project.name, 0)
    least = group.needs.least_milli
    return {
        "position": mine.position if mine is not None else None,
        "asks": cost(group),
        "pods": len(job.pods),
        **_rank(job),
        "waitsSince": at(group.since),
        "gang": None if job.gang is None else job.gang.size,
        "insideQuota": least <= quota.nominal_milli(project) - held,
    }


def _rank(job: WaitingJob) -> Json:
    return {
        "type": "interactive" if job.interactive else "training",
        "priority": job.priority,
        "created": at(job.created),
    }
