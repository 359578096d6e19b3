"""Who holds what a job waits for. Called by ``explanation``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.core.explain import occupied_by
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.simulate.planned import Planned

Json = dict[str, Any]

_ON_DEVICES = (Reason.WAITING_FOR_GPU, Reason.FRAGMENTED, Reason.WAITING_FOR_GANG)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits.

    Attributes:
        key: the job.
        room: the plan as if nothing were kept for it.
        group: its pods that start next.
        reason: why the plan does not start them; None: it does.
        before: how many jobs are before it.
    """

    key: JobKey
    room: Planned
    group: PodGroup
    reason: Reason | None
    before: int


def holding(waiting: Waiting) -> list[RunningPod]:
    """The pods that hold what is waited for."""
    group, running = waiting.group, waiting.room.running_pods
    if waiting.reason is Reason.WAITING_FOR_QUOTA:
        return [pod for pod in running.of(group.project.name) if pod.grants]
    if waiting.reason not in _ON_DEVICES:
        return []
    pod, demand = group.members[0]
    snapshot = waiting.room.session.snapshot
    return occupied_by.pods_on(demand.usable, demand, pod.avoid, snapshot, running)


def holders(planned: Planned, pods: Iterable[RunningPod]) -> list[Json]:
    """Their jobs, those first that end soonest, then those that hold most."""
    jobs: dict[JobKey, list[RunningPod]] = {}
    for pod in pods:
        jobs.setdefault(pod.job, []).append(pod)
    ranked = sorted(jobs.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return [_holder(planned, key, each) for key, each in ranked]


def _rank(pods: Sequence[RunningPod]) -> tuple[bool, float, int]:
    ends = min((pod.ends for pod in pods if pod.ends is not None), default=occupied_by.NEVER)
    return not any(pod.leaving for pod in pods), ends, -sum(pod.milli for pod in pods)


def _holder(planned: Planned, key: JobKey, pods: Sequence[RunningPod]) -> Json:
    ends = [pod.ends for pod in pods if pod.ends is not None]
    return {
        "job": planned.name_of(key),
        "project": str(pods[0].project),
        "gpu": gpu_from_milli(sum(pod.milli for pod in pods)),
        "pods": len(pods),
        "nodes": sorted({pod.node for pod in pods}),
        "priority": pods[0].priority,
        "endsBy": wording.at(min(ends)) if ends else None,
        "ending": any(pod.leaving for pod in pods),
    }
