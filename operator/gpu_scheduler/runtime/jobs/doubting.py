"""Jobs come into doubt, and out of it: see ``state.jobs.doubts``.

Into it by whatever keeps their pods from starting: a refused write (``binder``), kube-scheduler or
kubelets (``failed_placements``), Jobs and pods that cannot be made (``reconcile``, ``missing``), or
containers that do not start in time (``starting``); or because they are like one that is. Out of it
when one of their pods has started, or their spec is another.
"""

import asyncio
import hashlib

from gpu_scheduler.api.parts import is_gang, parts
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.levelled import digest, levelled
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import About, FailedStart
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord, Stage


def doubt(state: ClusterState, key: JobKey, failed: FailedStart) -> float:
    """A job's pod could not start for a reason of its own; until when nothing of it is placed.

    In monotonic seconds.
    """
    job = state.workloads.get(key)
    if job is None:
        return failed.at
    doubts, about = state.waiting.doubts, _about(state, job)
    before = doubts.of(key)
    known = before.why if before is not None else ""
    until = doubts.note(key, about, failed)
    after = doubts.of(key)
    if after is not before or (after is not None and after.why != known):
        state.waiting.look_again(job.namespace)  # whoever is like it
        _tell(state, key)
    return until


def cannot_be_made(state: ClusterState, key: JobKey, why: str) -> None:
    """The API server refuses the Job of a pod that has a place, or a change of it."""
    doubt(state, key, FailedStart(asyncio.get_running_loop().time(), why))


def never_began(state: ClusterState, key: JobKey, pod: PodRecord, now: float) -> None:
    """A program could not even be begun; of a job that has begun others that says nothing."""
    if pod.failure is not None and not any(map(_has_started, state.workloads.pods(key))):
        doubt(state, key, FailedStart(now, f"pod {pod.name} failed: {pod.failure.message}"))


def inherit(state: ClusterState, job: GPUJobRecord, now: float) -> bool:
    """Whether a job is like one whose pods could not start; it is in doubt from now on."""
    doubts = state.waiting.doubts
    if job.key in doubts:
        doubts.complete(job.key, _about(state, job), now)
        return False
    if not doubts.any_of(job.namespace):
        return False
    found = doubts.inherit(job.key, _about(state, job), now)
    if found:
        _tell(state, job.key)
    return found


def release(state: ClusterState, key: JobKey) -> None:
    """What kept a job from being tried again has shown that it moves; it stays in doubt."""
    state.waiting.doubts.release(key)
    _tell(state, key)


def observe(state: ClusterState, pod: PodRecord, now: float) -> None:
    """A pod changed: where it has started, its job is in doubt no more; a gang once all have.

    One that asks by itself and waits may be like one that could not start.
    """
    if pod.share is not None and pod.stage is Stage.WAITING:
        group = state.workloads.of(pod)
        if group is not None:
            inherit(state, group, now)
        return
    if pod.stage not in (Stage.RUNNING, Stage.ENDED) or not _has_started(pod):
        return
    job = state.workloads.of(pod)
    known = state.waiting.doubts.of(job.key) if job is not None else None
    if job is None or known is None or pod.uid in known.about.started:
        return
    if job.spec is not None and is_gang(job.spec):  # one of them alone shows nothing
        started = sum(map(_has_started, state.workloads.pods(job.key)))
        if started < job.spec.total_pods:
            return
    for key in state.waiting.doubts.drop(job.key):
        _tell(state, key)


def expire(state: ClusterState, now: float) -> bool:
    """Let nodes be used, and jobs be tried, whose time has come; whether there were any."""
    expired = state.waiting.expire(now)
    for key in expired:
        _tell(state, key)
    return bool(expired)


def _about(state: ClusterState, job: GPUJobRecord) -> About:
    started = frozenset(pod.uid for pod in state.workloads.pods(job.key) if _has_started(pod))
    return About(job.uid, job.generation, started, _alike(job))


def _alike(job: GPUJobRecord) -> str:
    """What is the same of jobs of a namespace whose pods start, or do not, for the same reasons."""
    if job.alike or job.spec is None:
        return job.alike
    found = hashlib.sha256()
    for part in parts(job.spec):
        found.update(digest(levelled(part.spec)))
    return f"{job.namespace}/{found.hexdigest()}"


def _tell(state: ClusterState, key: JobKey) -> None:
    state.waiting.know_better(key)
    state.changes.touch(key)
    state.changes.replan()


def _has_started(pod: PodRecord) -> bool:
    return pod.phase == "Succeeded" or (pod.stage is Stage.RUNNING and not pod.deleting)
