"""The reconciler of a test, and the writer of Jobs, as the operator puts them together."""

import time
from collections.abc import Callable
from typing import Any

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.runtime.jobs.reconcile import AllJobs, Reconciler
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.runtime.jobs.removal import Removal
from gpu_scheduler.runtime.jobs.role_jobs import RoleJobs
from gpu_scheduler.state.cluster_state import ClusterState

NO_LIBRARY = Installation(None, Isolation.FRAMEWORK, runtime_class="")
"""An installation that puts nothing into pods."""


def job_writes(
    state: ClusterState,
    client: Any,
    again: Callable[[JobKey, float], None] = lambda key, seconds: None,
    *,
    clock: Callable[[], float] = lambda: 0.0,
) -> JobWrites:
    return JobWrites(state, client, again, clock=clock)


def reconciler(
    state: ClusterState,
    client: Any,
    acceptance: Any,
    queue: WorkQueue[JobKey],
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> Reconciler:
    """One that knows no sweeps."""
    accepting, writes = (
        Accepting(state, acceptance, clock=clock),
        job_writes(state, client, queue.add_after, clock=clock),
    )
    roles = RoleJobs(state, client, acceptance, accepting, writes)
    refusals = Refusals(clock, queue.add_after)
    removal = Removal(state, client, queue.add_after, now)
    return Reconciler(state, queue, AllJobs(roles, roles), accepting, refusals, removal)


def place_prospective(state: ClusterState, node: str = "a") -> list[JobKey]:
    """Give each pod that is planned and does not exist a place, as the planner would; of whom."""
    found = [(j.key, p.uid) for j in state.waiting_jobs() for p in j.pods]
    prospective = [each for each in found if state.waiting.prospective(each[1]) is not None]
    for key, uid in prospective:
        state.decisions.assume(Assignment(key, uid, node, ()))
    return [key for key, _ in prospective]
