"""How long work waited for its first GPU, and how long GPUJobs ran.

Seen as pods take and give back GPUs. What got its first GPU before this replica led has waited by
another one's clock and is not told; how long it runs is, since its first pod that is still there.
A pod that asks by itself waits by itself, and is nobody's run.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NoReturn

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.observations import Observations
from gpu_scheduler.runtime.common.work_name import work_of
from gpu_scheduler.runtime.usage.works import type_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord, Stage

_SECONDS = 10.0  # between two looks for GPUJobs that are over


@dataclass(slots=True)
class _RunningJob:
    """A GPUJob that had GPUs; times are epoch seconds."""

    job: JobKey
    type: str
    first: float
    last: float
    pods: set[PodUID] = field(default_factory=set)  # that hold some now


class WorkTimes:
    """Follows pods."""

    def __init__(self, state: ClusterState, observations: Observations) -> None:
        """``observations`` are told."""
        self._state = state
        self._tell = observations
        self._runs: dict[str, _RunningJob] = {}  # by UID of the GPUJob
        self._of: dict[PodUID, str] = {}
        self._alone: set[PodUID] = set()  # pods that ask by themselves and hold some

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod was added or changed."""
        charge = self._state.ledger.charges.get(pod.uid)
        if pod.stage is Stage.ENDED or charge is None or not charge.milli:
            return self.gone(pod.uid)
        if pod.uid in self._of or pod.uid in self._alone:
            return None
        named = work_of(self._state, pod)
        if named is None:
            return None  # the next news of it may find whose it is
        name, job = named
        now, kind = self._state.beginnings.now(), str(type_of(name, job))
        if pod.share is not None:
            self._alone.add(pod.uid)
            self._waited(now - self._state.beginnings.of_pod(pod.uid, pod.created), kind)
            return None
        run = self._runs.get(job.uid)
        if run is None:
            live = self._state.beginnings.live
            first = now if live else epoch_seconds(pod.started) or now
            run = self._runs[job.uid] = _RunningJob(job.key, kind, first, first)
            if not _had_gpus(job):
                self._waited(now - job.created_seconds, kind)
        run.pods.add(pod.uid)
        self._of[pod.uid] = job.uid
        return None

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._alone.discard(uid)
        run = self._runs.get(self._of.pop(uid, ""))
        if run is not None:
            run.pods.discard(uid)
            run.last = self._state.beginnings.now()

    def settle(self) -> None:
        """Tell of those that are over."""
        for uid, run in tuple(self._runs.items()):
            job = self._state.gpujobs.get(run.job)
            if not run.pods and (job is None or job.uid != uid or job.finished):
                del self._runs[uid]
                self._tell.job_run_seconds(max(0.0, run.last - run.first), run.type)

    async def run(self) -> NoReturn:
        """Look for ever."""
        while True:
            await asyncio.sleep(_SECONDS)
            self.settle()

    def _waited(self, seconds: float, kind: str) -> None:
        if self._state.beginnings.live:
            self._tell.queue_wait_seconds(max(0.0, seconds), kind)


def _had_gpus(job: GPUJobRecord) -> bool:
    """Whether its status says so: evicted ones wait anew, which is no first GPU."""
    status = job.status
    pods = status.get("pods") or {}
    ended = any(pods.get(state) for state in ("succeeded", "failed"))
    return bool(status.get("evictions") or ended or status.get("phase") == Phase.RUNNING)
