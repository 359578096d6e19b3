"""What objects of each kind say of themselves, and what writes it."""

from collections.abc import Callable

from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.eviction.preemption import Preemptor
from gpu_scheduler.runtime.status.class_status import ClassStatuses
from gpu_scheduler.runtime.status.job_statuses import JobLinks, JobStatuses
from gpu_scheduler.runtime.status.pod_advice import PodAdvice
from gpu_scheduler.runtime.status.pod_conditions import PodConditions
from gpu_scheduler.runtime.status.pod_warnings import PodWarnings
from gpu_scheduler.runtime.status.project_status import ProjectStatuses
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.status.status_writer import StatusWriter
from gpu_scheduler.state.jobs.job import GPUJobRecord


def build(
    common: CommonParts,
    preemption: Preemptor,
    context: Callable[[GPUJobRecord], JobContext],
    hurried: Callable[[], bool],
    pod_advice: PodAdvice,
    namespaces_known: Callable[[], bool],
) -> StatusWriter:
    """Make it.

    Args:
        common: what is shared.
        preemption: knows who gave way to whom.
        context: what the parts know of a job that no object says.
        hurried: whether placements are on their way, which come first.
        pod_advice: what to change about pods that ask by themselves.
        namespaces_known: whether all namespaces have been told.
    """
    state, events, plan = common.state, common.events, common.plan
    clock, stamp = common.clock.monotonic, common.clock.stamp
    statuses = (
        JobStatuses(
            state,
            events,
            preemption,
            JobLinks(context, common.queue.ask, plan.numbers),
            now=stamp,
        ),
        PodConditions(state, events, lambda: plan.waits, clock=clock, now=stamp),
        PodWarnings(state, events, now=stamp),
        pod_advice,
        ProjectStatuses(state, plan, namespaces_known=namespaces_known, now=stamp),
        ClassStatuses(state, now=stamp),
    )
    return StatusWriter(
        common.client,
        statuses,
        seconds=common.settings.status_seconds,
        clock=clock,
        hurried=hurried,
    )
