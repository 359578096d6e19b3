"""What evictions for others cost: how often pods of a job gave way, and the work that was lost.

An eviction counts when it is decided, what it lost when the pod has gone: a program may save its
work when it is told to stop, or go on until it is killed. Who saved then has lost nothing, and
neither has who ended well; of others that is lost which they did since they last saved. An eviction
that is given up counts as none. Pods that are on their way out are remembered here alone: after a
change of leader the loss of such an eviction is not known, and is left out. Told by ``preemption``
and by the pods' reflector; read by status and metrics.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds
from gpu_scheduler.state.pods.containers import finished_at
from gpu_scheduler.state.pods.pod import PodRecord, Stage

# The time of a checkpoint may be in whole seconds, and come sooner than the watch.
_SLACK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EvictionCost:
    """What evictions for others have cost a job until now."""

    evictions: int = 0
    lost_gpu_seconds: float = 0.0

    @classmethod
    def of_status(cls, status: Mapping[str, Any]) -> "EvictionCost":
        """As a job's status says, where an operator before this one left it."""
        counts = (status.get(key) for key in ("evictions", "lostGPUSeconds"))
        evictions, lost = (each if isinstance(each, int) else 0 for each in counts)
        return cls(evictions, lost)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A pod whose eviction was decided and that has not gone yet."""

    job: JobKey
    job_uid: str
    reason: EvictReason
    pod: RunningPod | None  # None: it held nothing
    since: float  # when that was, epoch seconds
    told: float = 0.0  # when it was told to stop, epoch seconds; 0 = it was not

    def lost_gpu_seconds(self, end: float) -> float:
        """What it has lost when its containers ended then, epoch seconds."""
        if self.pod is None or (self.told and self.pod.saved >= self.told - _SLACK_SECONDS):
            return 0.0
        return self.pod.unsaved_milli_seconds(end) / DEVICE_MILLI


class EvictionCosts:
    """Keeps account by job and by reason."""

    def __init__(self, state: ClusterState, now: Callable[[], float]) -> None:
        """``now``: epoch seconds."""
        self._state = state
        self._now = now
        self._costs: dict[JobKey, tuple[str, EvictionCost]] = {}  # with the GPUJob's uid
        self._leaving: dict[PodUID, _Leaving] = {}
        self.lost_gpu_seconds: dict[str, float] = defaultdict(float)
        """Work that was lost, by reason; never less than it was."""

    def of(self, job: GPUJobRecord) -> EvictionCost:
        """What evictions have cost a job, those before a restart included."""
        uid, cost = self._costs.get(job.key, ("", EvictionCost()))
        return cost if uid == job.uid else EvictionCost.of_status(job.status)

    def began(self, pod: PodRecord, decision: Evict) -> None:
        """A pod has to go."""
        job = self._state.gpujobs.get(decision.job)
        uid = job.uid if job is not None else ""
        held = self._state.running_pods.get(pod.uid)
        leaving = _Leaving(decision.job, uid, decision.reason, held, self._now())
        self._leaving[pod.uid] = leaving
        self._add(leaving, evictions=1)

    def stays(self, uid: PodUID) -> None:
        """Its eviction was given up."""
        if (leaving := self._leaving.pop(uid, None)) is not None:
            self._add(leaving, evictions=-1)

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed."""
        leaving = self._leaving.get(pod.uid)
        if leaving is None:
            return
        told = leaving.told or (self._now() if pod.deleting else 0.0)
        held = leaving.pod and replace(leaving.pod, saved=pod.saved)
        self._leaving[pod.uid] = replace(leaving, pod=held, told=told)
        if pod.stage is Stage.ENDED:
            now, end = self._now(), epoch_seconds(finished_at(obj))  # by its node's clock
            end = min(max(end, leaving.since), now) if end else now
            self._ended(pod.uid, end, done=pod.phase == "Succeeded")

    def gone(self, uid: PodUID) -> None:
        """A pod is gone; of most it is known by then when they ended."""
        self._ended(uid, self._now(), done=False)

    def expire(self) -> None:
        """Forget jobs that are gone."""
        for key in [key for key, (uid, _) in self._costs.items() if not self._lives(key, uid)]:
            del self._costs[key]

    def _ended(self, uid: PodUID, end: float, *, done: bool) -> None:
        leaving = self._leaving.pop(uid, None)
        if leaving is None or done:
            return
        lost = leaving.lost_gpu_seconds(end)
        self.lost_gpu_seconds[leaving.reason] += lost
        self._add(leaving, lost_gpu_seconds=lost)

    def _add(self, leaving: _Leaving, *, evictions: int = 0, lost_gpu_seconds: float = 0.0) -> None:
        job = self._state.gpujobs.get(leaving.job)
        if job is None or job.uid != leaving.job_uid:
            return
        cost = self.of(job)
        more = EvictionCost(cost.evictions + evictions, cost.lost_gpu_seconds + lost_gpu_seconds)
        self._costs[job.key] = job.uid, more
        self._state.changes.touch(job.key)

    def _lives(self, key: JobKey, uid: str) -> bool:
        job = self._state.gpujobs.get(key)
        return job is not None and job.uid == uid
