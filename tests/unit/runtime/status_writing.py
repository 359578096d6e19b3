"""The writer of statuses of a test, as the operator puts it together."""

from collections.abc import Callable, Iterable
from typing import Any

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.runtime.status.class_status import ClassStatuses
from gpu_scheduler.runtime.status.job_statuses import JobLinks, JobStatuses
from gpu_scheduler.runtime.status.project_status import ProjectStatuses
from gpu_scheduler.runtime.status.protection import Watched
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.status.status_writer import StatusWriter
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord


def status_writer(
    state: ClusterState,
    client: Any,
    plan: Any,
    events: Any,
    preemption: Any,
    *,
    finished: Callable[[JobKey], None],
    numbers: Callable[[int], Iterable[JobKey]] = lambda most: (),
    seconds: float,
    clock: Callable[[], float],
    now: Callable[[], str] = utc_now,
    hurried: Callable[[], bool] = lambda: False,
) -> StatusWriter:
    watched = Watched(state.nodes.agents.reports, state.nodes.sick_devices)

    def known(job: GPUJobRecord) -> JobContext:
        return JobContext(
            wait=plan.waits.get(job.key),
            preempted=preemption.of(job.key),
            assumed=state.decisions.assumed,
            quarantine=plan.quarantine.job(job.key),
            reservations=plan.reservations_of(job.key),
            watched=watched,
        )

    links = JobLinks(known, finished, numbers)
    jobs = JobStatuses(state, events, preemption, links, now=now)
    kinds = (jobs, ProjectStatuses(state, plan, now=now), ClassStatuses(state, now=now))
    return StatusWriter(client, kinds, seconds=seconds, clock=clock, hurried=hurried)
