"""One planning cycle: from a picture of the cluster to decisions.

A pure function: no clock, no randomness, the arguments stay as they are, equal arguments give
equal plans whatever the order of the jobs. Called by the planner loop each cycle and by the
simulator.
"""

from collections.abc import Mapping, Sequence

from gpu_scheduler.core.cluster import Cluster
from gpu_scheduler.core.decision import Plan, Reason, Wait
from gpu_scheduler.core.demand import Demands
from gpu_scheduler.core.queues import Queue, queue_up
from gpu_scheduler.core.quota import room_above_milli, room_inside_milli
from gpu_scheduler.core.reasons import Explainer
from gpu_scheduler.core.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.rounds import Round, Tables
from gpu_scheduler.core.snapshot import Snapshot


def plan(
    cluster: Cluster, projects: Mapping[ProjectName, Project], jobs: Sequence[WaitingJob]
) -> Plan:
    """Decide which waiting pods start now, where, and why the others do not.

    Args:
        cluster: what is free now; not changed.
        projects: quotas by name; a job of a project that is not there is ``Invalid``.
        jobs: jobs with waiting pods, in any order.
    """
    # 1. Copy what will be consumed.
    snapshot = Snapshot(cluster)
    demands = Demands(snapshot)
    tables = Tables(snapshot)

    # 2. Line up the pods of each project.
    queues, orphans = queue_up(projects, jobs)

    # 3. Start pods inside their project's quota.
    inside = Round(snapshot, demands, room_milli=room_inside_milli, candidates=tables.open)
    places = inside.run(queues)

    # 4. Keep borrowers away from the nodes for which such pods still wait.
    tables.claim([blocked for blocked in inside.blocked if blocked[0].least_milli])

    # 5. Let projects with a weight borrow what is left.
    above = Round(snapshot, demands, room_milli=room_above_milli, candidates=tables.unclaimed)
    places += above.run(queues)

    # 6. Say why each other job waits.
    explainer = Explainer(snapshot, demands, tables)
    waits = [wait for queue in queues for wait in _waits(queue, explainer)]
    return Plan(tuple(places), tuple(waits) + _without_project(orphans))


def _waits(queue: Queue, explainer: Explainer) -> list[Wait]:
    """One wait per job: for its first pod that did not start."""
    waits: list[Wait] = []
    last: JobKey | None = None
    for job, pod in queue.pending:
        if job.key != last:
            last = job.key
            reason, message = explainer.explain(pod, queue.project)
            waits.append(Wait(job.key, reason, message, len(waits) + 1))
    return waits


def _without_project(jobs: Sequence[WaitingJob]) -> tuple[Wait, ...]:
    positions: dict[ProjectName, int] = {}
    waits = []
    for job in jobs:
        positions[job.project] = position = positions.get(job.project, 0) + 1
        message = f"project {job.project} does not exist"
        waits.append(Wait(job.key, Reason.INVALID, message, position))
    return tuple(waits)
