"""What is deleted: GPUJobs whose time to live is over, and what runs of those that go.

The garbage collector ends what belongs to a GPUJob, or to a Job, when the object is gone. Where
somebody's finalizer keeps it that may be never, and in a namespace that is being deleted too late
(ADR 0040): then its Jobs, or its pods, are deleted here.
"""

import logging
from collections.abc import Callable

import msgspec

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.jobs.evict import remove
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import OF_THE_COLLECTOR
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.runtime.informers.custom_resources import GPUJOBS
from gpu_scheduler.runtime.jobs.creation import FoundJob, Named
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, changed_seconds
from gpu_scheduler.state.pods.pod import Stage

log = logging.getLogger(__name__)

_UNDER_WAY_SECONDS = 1.0  # until a pod is looked for again whose placement was under way


class _NamedList(msgspec.Struct, frozen=True):
    items: tuple[Named, ...] = ()


class Removal:
    """Deletes."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        again: Callable[[JobKey, float], None],
        now: Callable[[], float],
    ) -> None:
        """``again``: look at a GPUJob after so many seconds; ``now``: epoch seconds."""
        self._state = state
        self._client = client
        self._again = again
        self._now = now
        self._ahead: dict[str, float] = {}  # by uid: ends of the future, and when we saw them
        self._deleted: set[PodUID] = set()  # by us; the watch shows some of them still

    async def leave(self, key: JobKey) -> None:
        """Delete the Jobs of a GPUJob whose namespace is being deleted.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        for own in self._state.jobs.claims(key):
            if not own.deleting:
                log.info("%s: its namespace is being deleted: deleting Job %s", key, own.name)
                await self._delete(job_path(own.namespace, own.name), own.uid)

    async def let_go(self, key: JobKey) -> None:
        """End what runs of a GPUJob, or of a Job of one, that is deleted and kept.

        Who deletes with the garbage collector's own finalizers has said what is to become of it.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        job = self._state.gpujobs.get(key)
        goes = job is not None and job.deleting and OF_THE_COLLECTOR.isdisjoint(job.finalizers)
        for own in self._state.jobs.claims(key):
            if own.deleting:
                await self._end_pods(own)
            elif goes and job is not None and own.owner_uid == job.uid:
                log.info("%s: it is being deleted: deleting Job %s", key, own.name)
                await self._delete(job_path(own.namespace, own.name), own.uid)

    async def _end_pods(self, own: JobRecord) -> None:
        """Delete the pods of a Job that is being deleted: its controller makes no others.

        Those without a place hold nothing, and are not ours to delete.
        """
        pods = [pod for pod in self._state.pods.of_job(own.uid) if not pod.deleting]
        if any(pod.uid in self._state.decisions.assumed for pod in pods):
            self._again(own.owner, _UNDER_WAY_SECONDS)
        pods = [pod for pod in pods if pod.allocation is not None]
        self._deleted &= self._state.pods.known.keys()
        pods = [p for p in pods if p.stage is not Stage.ENDED and p.uid not in self._deleted]
        if not pods:
            return
        try:
            found = await self._client.get(job_path(own.namespace, own.name), FoundJob)
        except errors.NotFound:
            return
        kept_by = found.metadata.finalizers
        if found.metadata.uid != own.uid or not OF_THE_COLLECTOR.isdisjoint(kept_by):
            return
        for pod in pods:
            log.info("%s: Job %s is being deleted: deleting %s", own.owner, own.name, pod.name)
            try:
                await send(self._client, remove(pod.meta))
            except errors.NotFound:
                continue
            self._deleted.add(pod.uid)

    async def forget_if_gone(self, job: GPUJobRecord) -> bool:
        """Whether a GPUJob is gone without a word, asked where its Jobs went: then it is forgotten.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        path = of_group(GROUP, VERSION, GPUJOBS, job.namespace)
        found = await self._client.get(path, _NamedList, fieldSelector=f"metadata.name={job.name}")
        if any(each.metadata.uid == job.uid for each in found.items):
            return False
        now = self._state.gpujobs.get(job.key)
        if now is not None and now.uid == job.uid:
            self._state.gpujob_gone(job.key)
        return True

    async def expire(self, job: GPUJobRecord) -> None:
        """Delete a GPUJob when its end was told and its time to live has passed since.

        The status writer brings the job back here when it has told it.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        if job.spec is None or job.spec.ttl_seconds_after_finished is None or not job.finished:
            return
        told = changed_seconds(job.status, "True", "Complete", "Failed")
        left = self._end(job, told) - self._now()
        left += job.spec.ttl_seconds_after_finished
        if left > 0:
            self._again(job.key, left)
            return
        log.info("%s: finished, and its time to live is over: deleting", job.key)
        await self._delete(of_group(GROUP, VERSION, GPUJOBS, job.namespace, job.name), job.uid)

    def _end(self, job: GPUJobRecord, told: float) -> float:
        """When the end was told; a leader before us may have had another clock."""
        now = self._now()
        if 0 < told <= now:
            return told
        gpujobs = self._state.gpujobs.values()
        if job.uid not in self._ahead:
            there = {each.uid for each in gpujobs}
            self._ahead = {uid: at for uid, at in self._ahead.items() if uid in there}
        return self._ahead.setdefault(job.uid, now)

    async def _delete(self, path: str, uid: str) -> None:
        try:
            await self._client.delete(path, uid=uid, propagation="Background")
        except (errors.NotFound, errors.Conflict):
            return  # somebody else was faster
