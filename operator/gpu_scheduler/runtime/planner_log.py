"""The planner's log: a line for each cycle, and one for each decision with what it was made from.

Off unless ``--log-planner`` is given. Invariant: a cycle has at most ``MOST`` lines of a kind; how
many were left out is said.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from heapq import nsmallest
from typing import TypeVar

from gpu_scheduler.core.model.decision import Assignment, Evict, Plan, Reservation
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.steps import STEPS, step_seconds

MOST = 20
T = TypeVar("T")

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)


def switch_on() -> None:
    """Whatever the level of the rest of the log."""
    log.setLevel(logging.DEBUG)


def write(
    number: int,
    given: PlanInput,
    result: Plan,
    readings: Sequence[float],
    news: Collection[JobKey],
) -> None:
    """One cycle.

    Args:
        number: of the cycle.
        given: what was planned with.
        result: the plan.
        readings: of the clock, see ``step_seconds``.
        news: jobs that wait for another reason than before, or no more.
    """
    if not log.isEnabledFor(logging.DEBUG):
        return
    called = given.cluster.name_of
    jobs = {job.key: job for job in given.jobs}
    kept = {each.pod for each in given.reservations}

    def of(name: ProjectName) -> str:
        project = given.projects.get(name)
        if project is None:
            return f"project {name} does not exist"
        held = gpu_from_milli(given.cluster.allocated_milli.get(name, 0))
        share = gpu_from_milli(result.shares_milli.get(name, 0))
        quota = gpu_from_milli(project.quota_milli)
        limit = "none" if project.limit_milli is None else gpu_from_milli(project.limit_milli)
        return f"project {name} held {held}: quota {quota}, limit {limit}, fair share {share}"

    def start(each: Assignment) -> str:
        held = ", ".join(f"{g.milli} milli, {g.mib} MiB of {g.device}" for g in each.devices)
        job = jobs[each.job]
        waited = given.now - next(pod.since for pod in job.pods if pod.uid == each.pod)
        what = f"start {called(each.job)} pod {each.pod} on {each.node} ({held})"
        return f"{what}: waited {waited:.1f} s, priority {job.priority}, {of(job.project)}"

    def evict(each: Evict) -> str:
        return f"evict pod {each.pod} ({each.reason}): {each.message}"

    def reserve(each: Reservation) -> str:
        held = ", ".join(allocated.device for allocated in each.devices)
        by = f", from {each.start:.3f} on" if each.start is not None else ""
        return f"keep {each.node} ({held}) for {called(each.job)} pod {each.pod}: {each.reason}{by}"

    def wait(key: JobKey) -> str:
        found = result.waits.of(key)
        if found is None:
            return f"{called(key)} waits no more"
        said = f"{called(key)} waits: {found.reason}, number {found.position}: {found.message}"
        return f"{said}; {of(jobs[key].project)}" if key in jobs else said

    seconds = step_seconds(readings)
    took = ", ".join(f"{n} {s * 1e3:.1f}" for n, s in zip(STEPS, seconds, strict=True))
    new = [each for each in result.reservations if each.pod not in kept]
    lines = [
        f"at {given.now:.3f}: {len(jobs)} jobs wait on {len(given.cluster.nodes)} nodes; "
        f"{len(result.assignments)} start, {len(result.evicts)} give way, "
        f"{len(result.reservations)} reservations, {len(result.waits)} wait; "
        f"again at {result.again_at}; {sum(seconds) * 1e3:.1f} ms ({took})",
        *_first("starts", result.assignments, start, len(result.assignments)),
        *_first("evictions", result.evicts, evict, len(result.evicts)),
        *_first("reservations", new, reserve, len(new)),
        *_first("waits", nsmallest(MOST, news), wait, len(news)),
    ]
    for line in lines:
        log.debug("cycle %d: %s", number, line)


def _first(kind: str, those: Sequence[T], line: Callable[[T], str], count: int) -> list[str]:
    more = [f"{count - MOST} more {kind} are left out"] if count > MOST else []
    return [line(each) for each in those[:MOST]] + more
