"""How wide Jobs are to be: as many pods at once as have a place, or had one when they were made.

A Job grows by the pods that are nominated. It becomes narrower only where pods of it wait for their
place (``narrowing``) or are refused (``missing``), never below its pods with places, and only while
its controller knows that these run (ADR 0054): a pod that ends is followed by the next without a
write of ours.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.pods.counting import knows_what_runs
from gpu_scheduler.state.pods.pod import Stage
from gpu_scheduler.state.queue.nominated import NominatedPod
from gpu_scheduler.state.queue.prospective import expected_pods


def sizes_of(
    state: ClusterState, job: GPUJobRecord, own: JobRecord, nominated: Iterable[NominatedPod]
) -> dict[str, Any]:
    """Fields of the spec of a role's Job as they are to be.

    ``nominated``: pods of the role that have a place and do not exist.
    """
    assert job.spec is not None
    request, asked = job.requests[own.role], widest(nominated)
    if job.spec.suspend:
        return {"completions": request.pods, "suspend": True}
    if state.shrinks(own):
        asked = 0
    if own.suspend and not asked:
        return {"completions": request.pods}  # it goes on once a pod of it has a place
    parallelism = min(max(parallelism_of(state, own), asked), request.at_once)
    return {"completions": request.pods, "parallelism": parallelism, "suspend": False}


def parallelism_of(state: ClusterState, own: JobRecord) -> int:
    """How wide a Job is to be for the pods that it has."""
    count, parallelism = state.count(own.uid), 0 if own.suspend else own.parallelism
    least = state.decisions.narrowed.get(
        own.uid, count.placed if state.shrinks(own) else parallelism
    )
    if least < parallelism and knows_what_runs(own, count):
        parallelism = least
    return max(parallelism, count.placed)


def narrows(state: ClusterState, own: JobRecord) -> bool:
    """Whether a Job is to become narrower, or its controller has not done with that."""
    return own.uid in state.decisions.narrowed or state.shrinks(own)


def pods_at_once(state: ClusterState, job: GPUJobRecord) -> int:
    """Pods that all Jobs of a sweep are to have at once, together."""
    if job.spec is None:
        return 0
    return min(
        job.spec.parallelism, max(now(state, job), widest(state.decisions.nominated.of(job.key)))
    )


def now(state: ClusterState, job: GPUJobRecord) -> int:
    """Pods of a GPUJob that exist and stay, or that its Jobs make without being told."""
    live: dict[str, int] = {}
    for pod in state.workloads.pods(job.key):
        if pod.stage is not Stage.ENDED:
            live[pod.job_uid] = live.get(pod.job_uid, 0) + 1
    return sum(
        parallelism_of(state, own)
        if narrows(state, own)
        else expected_pods(own, live.get(own.uid, 0))
        for own in job.own(state.workloads.jobs(job.key))
    )


def widest(nominated: Iterable[NominatedPod]) -> int:
    """How wide Jobs have to be for pods of which they were not told yet; 0 = there are none."""
    return max((each.parallelism for each in nominated if not each.asked), default=0)


def told(nominated: Iterable[NominatedPod], parallelisms: Mapping[str, int]) -> None:
    """Jobs are as wide as this, by role: what they make then is expected from them."""
    for each in nominated:
        if each.parallelism <= parallelisms.get(each.role, 0):
            each.asked = True
