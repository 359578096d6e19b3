"""The reconciler of a test, and the writer of Jobs, as the operator puts them together."""

import time
from collections.abc import Callable
from typing import Any

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.runtime.queue import WorkQueue
from gpu_scheduler.runtime.reconcile import Reconciler
from gpu_scheduler.runtime.refusals import Refusals
from gpu_scheduler.runtime.removal import Removal
from gpu_scheduler.runtime.role_jobs import RoleJobs
from gpu_scheduler.state.cluster_state import ClusterState


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
    roles = RoleJobs(
        state, client, acceptance, job_writes(state, client, queue.add_after, clock=clock)
    )
    refusals = Refusals(clock, queue.add_after)
    return Reconciler(
        state, queue, roles, roles, refusals, Removal(state, client, queue.add_after, now)
    )
