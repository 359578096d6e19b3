"""Who holds what a job waits for."""

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

    def holding(self) -> list[RunningPod]:
        """The pods that hold what is waited for."""
        if self.reason is None:
            return []
        room = self.room
        snapshot = room.session.snapshot
        return occupied_by.holding(self.reason, self.group, snapshot, room.running_pods)


def holders(planned: Planned, pods: Iterable[RunningPod]) -> list[Json]:
    """Their jobs, those first that end soonest, then those that hold most."""
    jobs: dict[JobKey, list[RunningPod]] = {}
    for pod in pods:
        jobs.setdefault(pod.job, []).append(pod)
    ranked = sorted(jobs.items(), key=lambda item: (*_rank(item[1]), item[0]))
    return [_holder(planned, key, each) for key, each in ranked]


def _rank(pods: Sequence[RunningPod]) -> tuple[bool, float, int]:
    milli = sum(pod.milli for pod in pods)
    return not any(pod.leaving for pod in pods), occupied_by.first_end(pods), -milli


def _holder(planned: Planned, key: JobKey, pods: Sequence[RunningPod]) -> Json:
    end = occupied_by.first_end(pods)
    return {
        "job": planned.name_of(key),
        "project": str(pods[0].project),
        "gpu": gpu_from_milli(sum(pod.milli for pod in pods)),
        "pods": len(pods),
        "nodes": sorted({pod.node for pod in pods}),
        "priority": pods[0].priority,
        "endsBy": None if end == occupied_by.NEVER else wording.at(end),
        "ending": any(pod.leaving for pod in pods),
    }
