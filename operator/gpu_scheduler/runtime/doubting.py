"""Jobs come into doubt, and out of it: see ``state.doubts``.

Into it by a refused write (``binder``), by kube-scheduler or kubelets (``failed_placements``), or
because containers did not start in time (``starting``); out of it when one of their pods has
started, or their spec is another.
"""

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.doubts import About, Delays
from gpu_scheduler.state.pods import PodRecord, Stage


def doubt(
    state: ClusterState,
    key: JobKey,
    reason: Reason,
    why: str,
    now: float,
    delays: Delays,
    *,
    explained: bool = True,
) -> float:
    """A job's pod could not start for a reason of its own; until when nothing of it is placed.

    Args:
        state: what is known.
        key: of the job.
        reason: one of ``DOUBTFUL``.
        why: what was said.
        now: monotonic seconds.
        delays: see ``Doubts``.
        explained: whether ``why`` names the cause.
    """
    job = state.work(key)
    if job is None:
        return now
    started = frozenset(pod.uid for pod in state.records(key) if _has_started(pod))
    about = About(job.uid, job.generation, started)
    until = state.waiting.doubts.note(key, about, reason, why, now, delays, explained=explained)
    _tell(state, key)
    return until


def observe(state: ClusterState, pod: PodRecord) -> None:
    """A pod changed: where it has started, its job is in doubt no more; a gang once all have."""
    if pod.stage not in (Stage.RUNNING, Stage.ENDED) or not _has_started(pod):
        return
    job = state.work_of(pod)
    known = state.waiting.doubts.of(job.key) if job is not None else None
    if job is None or known is None or pod.uid in known.about.started:
        return
    if job.spec is not None and is_gang(job.spec):  # one of them alone shows nothing
        started = sum(map(_has_started, state.records(job.key)))
        if started < job.spec.total_pods:
            return
    state.waiting.doubts.drop(job.key)
    _tell(state, job.key)


def expire(state: ClusterState, now: float) -> bool:
    """Let nodes be used, and jobs be tried, whose time has come; whether there were any."""
    expired = state.waiting.expire(now)
    for key in expired:
        _tell(state, key)
    return bool(expired)


def _tell(state: ClusterState, key: JobKey) -> None:
    state.waiting.know_better(key)
    state.touch(key)
    state.replan()


def _has_started(pod: PodRecord) -> bool:
    return pod.phase == "Succeeded" or (pod.stage is Stage.RUNNING and not pod.deleting)
