"""How wide Jobs are to be: as many pods at once as have a place, or had one when they were made.

A Job grows by the pods that are awaited, and becomes narrower only where pods of it wait for their
place (``narrowing``) or are refused: a pod that ends is followed by the next without a write of
ours. Pure; called by the Jobs of roles and of sweeps.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_scheduler.state.awaited import AwaitedPod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord
from gpu_scheduler.state.pods import Stage
from gpu_scheduler.state.unmade import owed


def sizes_of(
    job: GPUJobRecord, own: JobRecord, awaited: Iterable[AwaitedPod], narrowed: Mapping[str, int]
) -> dict[str, Any]:
    """Fields of the spec of a role's Job as they are to be.

    Args:
        job: the GPUJob.
        own: the Job as it is.
        awaited: pods of the role that have a place and do not exist.
        narrowed: Jobs by uid that become as narrow as this.
    """
    assert job.spec is not None
    ask, width = job.asks[own.role], 0 if own.suspend else own.parallelism
    width = min(width, narrowed.get(own.uid, width))
    asked = widest(awaited)
    width = max(width, asked)
    fields: dict[str, Any] = {"completions": ask.pods, "parallelism": min(width, ask.at_once)}
    if job.spec.suspend:
        return {"completions": ask.pods, "suspend": True}
    if own.suspend and not asked:
        return {"completions": ask.pods}  # it goes on once a pod of it has a place
    return {**fields, "suspend": False}


def pods_at_once(state: ClusterState, job: GPUJobRecord) -> int:
    """Pods that all Jobs of a sweep are to have at once, together."""
    if job.spec is None:
        return 0
    return min(job.spec.parallelism, max(now(state, job), widest(state.awaited.of(job.key))))


def now(state: ClusterState, job: GPUJobRecord) -> int:
    """Pods of a GPUJob that exist and stay, or that its Jobs make without being told."""
    live: dict[str, int] = {}
    for pod in state.records(job.key):
        if pod.stage is not Stage.ENDED:
            live[pod.job_uid] = live.get(pod.job_uid, 0) + 1
    mine = job.own(state.jobs_of(job.key))
    return sum(state.narrowed.get(own.uid, owed(own, live.get(own.uid, 0))) for own in mine)


def widest(awaited: Iterable[AwaitedPod]) -> int:
    """How wide Jobs have to be for pods of which they were not told yet; 0 = there are none."""
    return max((each.width for each in awaited if not each.asked), default=0)


def told(awaited: Iterable[AwaitedPod], widths: Mapping[str, int]) -> None:
    """Jobs are as wide as this, by role: what they make then is awaited from them."""
    for each in awaited:
        if each.width <= widths.get(each.role, 0):
            each.asked = True
