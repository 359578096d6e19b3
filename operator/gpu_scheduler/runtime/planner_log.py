"""The planner's log: a line for each cycle, and one for each decision with what it was made from.

Off unless ``--log-planner`` is given. Invariant: a cycle has at most ``MOST`` lines of a kind; how
many were left out is said.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from heapq import nsmallest
from itertools import islice
from typing import TypeVar

from gpu_scheduler.core.model.decision import Assignment, Evict, Plan, Reservation
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.steps import STEPS

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
    seconds: Sequence[float],
    news: Collection[JobKey],
) -> None:
    """One cycle.

    Args:
        number: of the cycle.
        given: what was planned with.
        result: the plan.
        seconds: what each step took.
        news: jobs that wait for another reason than before, or no more.
    """
    if log.isEnabledFor(logging.DEBUG):
        _Cycle(number, given, result).write(seconds, news)


class _Cycle:
    def __init__(self, number: int, given: PlanInput, result: Plan) -> None:
        self._number = number
        self._given = given
        self._result = result
        self._called = given.cluster.name_of

    def write(self, seconds: Sequence[float], news: Collection[JobKey]) -> None:
        given, plan = self._given, self._result
        took = ", ".join(f"{n} {s * 1e3:.1f}" for n, s in zip(STEPS, seconds, strict=True))
        self._say(
            f"at {given.now:.3f}: {len(given.jobs)} jobs wait on {len(given.cluster.nodes)} nodes; "
            f"{len(plan.assignments)} start, {len(plan.evicts)} give way, {len(plan.reservations)} "
            f"reservations, {len(plan.waits)} wait; again at {plan.again_at}; "
            f"{sum(seconds) * 1e3:.1f} ms ({took})"
        )
        jobs = {job.key: job for job in given.jobs} if plan.assignments or news else {}
        kept = {each.pod for each in given.reservations}

        def start(place: Assignment) -> str:
            held = ", ".join(f"{g.milli} milli, {g.mib} MiB of {g.device}" for g in place.grants)
            job = jobs[place.job]
            since = next(pod.since for pod in job.pods if pod.uid == place.pod)
            return (
                f"start {self._called(place.job)} pod {place.pod} on {place.node} ({held}): waited "
                f"{given.now - since:.1f} s, priority {job.priority}, {self._project(job.project)}"
            )

        def wait(key: JobKey) -> str:
            found = plan.waits.of(key)
            if found is None:
                return f"{self._called(key)} waits no more"
            said = f"{self._called(key)} waits: {found.reason}, number {found.position}: "
            return f"{said}{found.message}; {self._project(jobs[key].project)}"

        def evict(each: Evict) -> str:
            return f"evict pod {each.pod} ({each.reason}): {each.message}"

        def reserve(each: Reservation) -> str:
            held = ", ".join(grant.device for grant in each.grants)
            by = f", from {each.start:.3f} on" if each.start is not None else ""
            named = self._called(each.job)
            return f"keep {each.node} ({held}) for {named} pod {each.pod}: {each.reason}{by}"

        self._lines("starts", plan.assignments, start)
        self._lines("evictions", plan.evicts, evict)
        self._lines("reservations", [r for r in plan.reservations if r.pod not in kept], reserve)
        self._lines("waits", nsmallest(MOST, news), wait, len(news))

    def _lines(
        self, kind: str, those: Sequence[T], line: Callable[[T], str], count: int | None = None
    ) -> None:
        for each in islice(those, MOST):
            self._say(line(each))
        if (left := (len(those) if count is None else count) - MOST) > 0:
            self._say(f"{left} more {kind} are left out")

    def _project(self, name: ProjectName) -> str:
        project = self._given.projects.get(name)
        if project is None:
            return f"project {name} does not exist"
        held = gpu_from_milli(self._given.cluster.allocated_milli.get(name, 0))
        share = gpu_from_milli(self._result.shares_milli.get(name, 0))
        quota = gpu_from_milli(project.quota_milli)
        limit = "none" if project.limit_milli is None else gpu_from_milli(project.limit_milli)
        return f"project {name} held {held}: quota {quota}, limit {limit}, fair share {share}"

    def _say(self, text: str) -> None:
        log.debug("cycle %d: %s", self._number, text)
