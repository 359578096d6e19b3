"""The writer of Jobs as the reconciler and the segments of a test need it."""

from collections.abc import Callable
from typing import Any

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.job_writes import JobWrites
from gpu_scheduler.state.cluster_state import ClusterState


def job_writes(
    state: ClusterState,
    client: Any,
    again: Callable[[JobKey, float], None] = lambda key, seconds: None,
    *,
    wake: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> JobWrites:
    return JobWrites(state, client, wake=wake, again=again, clock=clock)
