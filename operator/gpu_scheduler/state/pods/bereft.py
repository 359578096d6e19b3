"""Pods that hold devices and have no owner any more that we know: they go with it, or stay.

While the Job of a pod is gone, or that Job's GPUJob, the garbage collector is about to take the
pod: it is as good as leaving, so nobody is evicted for its room and it is nobody's victim. Where
the Job is there and belongs to nobody (``--cascade=orphan``), or the pod names no Job, it stays: it
holds what it holds, and somebody has to say so. So does one that has not gone for too long
(``runtime.eviction.left_behind``). This follows from what the watches show.
"""

from collections.abc import Callable, Iterable, Mapping, Set

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.own_jobs import JobStore
from gpu_scheduler.state.pods.pod import PodRecord


class BereftPods:
    """Which pods that is."""

    def __init__(
        self,
        jobs: JobStore,
        gpujobs: Mapping[JobKey, GPUJobRecord],
        follow: Callable[[PodUID, bool], None],
        told: Callable[[Iterable[PodUID]], None],
    ) -> None:
        """There are none yet.

        Args:
            jobs: those of GPUJobs.
            gpujobs: by key.
            follow: hears whether a pod goes with its owner.
            told: hears of pods that stay, and that do so no more.
        """
        self._jobs = jobs
        self._gpujobs = gpujobs
        self._follow = follow
        self._told = told
        self._ownerless: set[str] = set()  # Jobs that exist and are no GPUJob's
        self._following: dict[PodUID, None] = {}
        self._staying: dict[PodUID, None] = {}
        self._left: set[PodUID] = set()
        self.following: Set[PodUID] = self._following.keys()  # they go with their owner
        self.staying: Set[PodUID] = self._staying.keys()

    def job_seen(self, uid: str, *, ours: bool) -> bool:
        """A Job is there; whether it is news that it is no GPUJob's."""
        known = uid in self._ownerless
        (self._ownerless.discard if ours else self._ownerless.add)(uid)
        return not ours and not known

    def job_gone(self, uid: str) -> None:
        """A Job is there no more."""
        self._ownerless.discard(uid)

    def see(self, pod: PodRecord, *, holds: bool, owned: bool) -> None:
        """Judge a pod; ``holds``: devices, ``owned``: it has a GPUJob."""
        uid, bereft = pod.uid, holds and not (owned or pod.deleting or pod.share is not None)
        follows = bereft and uid not in self._left and self._is_taken(pod)
        if follows:
            self._following[uid] = None
        else:
            self._following.pop(uid, None)
        self._follow(uid, follows)
        stays = bereft and not follows
        if stays != (uid in self._staying):
            self._told([uid])
            if stays:
                self._staying[uid] = None
            else:
                del self._staying[uid]

    def leave(self, uid: PodUID) -> bool:
        """A pod has not gone with its owner: it stays from now on; False where it was not to go."""
        follows = uid in self._following
        if follows:
            self._left.add(uid)
        return follows

    def forget(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._following.pop(uid, None)
        self._staying.pop(uid, None)
        self._left.discard(uid)

    def _is_taken(self, pod: PodRecord) -> bool:
        """Whether the garbage collector takes a pod: what it names as its owner is gone."""
        if not pod.job_uid or pod.job_uid in self._ownerless:
            return False
        job = self._jobs.believed.get(pod.job_uid)
        if job is None:
            return not self._jobs.knows(pod.job_uid)
        owner = self._gpujobs.get(job.owner)
        return owner is None or owner.uid != job.owner_uid
