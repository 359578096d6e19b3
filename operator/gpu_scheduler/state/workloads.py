"""What belongs to whom: GPUJobs and groups of pods without one, their Jobs and their pods.

Both are workloads, as in Kueue. Whoever owns a pod is found by the uid of its Job, never by name
alone: a later GPUJob of the same name has nothing of an earlier one.
"""

from collections.abc import Iterable, Iterator

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.jobs.own_jobs import JobStore
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.state.pods.pod_store import PodStore
from gpu_scheduler.state.pods.shares import ShareGroups


class Workloads:
    """By key, and by pod."""

    def __init__(self, groups: ShareGroups, jobs: JobStore, pods: PodStore) -> None:
        """Those of these stores, and the GPUJobs that are put into ``gpujobs``."""
        self.gpujobs: dict[JobKey, GPUJobRecord] = {}
        self._groups = groups.records
        self._jobs = jobs
        self._pods = pods

    def get(self, key: JobKey) -> GPUJobRecord | None:
        """A GPUJob, or a group of pods without one."""
        return self.gpujobs.get(key) or self._groups.get(key)

    def key_of(self, pod: PodRecord) -> JobKey | None:
        """The GPUJob that a pod belongs to, or its group, as far as known."""
        job = self._jobs.believed.get(pod.job_uid)
        return job.owner if job else None

    def of(self, pod: PodRecord) -> GPUJobRecord | None:
        """The GPUJob of a pod, or its group; not a later GPUJob of that name."""
        own = self._jobs.believed.get(pod.job_uid)
        work = self.get(own.owner) if own is not None else None
        return work if own is not None and work is not None and work.uid == own.owner_uid else None

    def uids_of(self, pods: Iterable[PodRecord | None]) -> list[str | None]:
        """The uid of what ``of`` finds of each; a loop, for those who ask about all pods."""
        believed, gpujobs, groups = self._jobs.believed, self.gpujobs, self._groups
        found: list[str | None] = []
        for pod in pods:
            own = believed.get(pod.job_uid) if pod is not None else None
            work = (gpujobs.get(own.owner) or groups.get(own.owner)) if own is not None else None
            uid = work.uid if work is not None else None
            found.append(uid if own is not None and uid == own.owner_uid else None)
        return found

    def role_of(self, pod: PodRecord) -> str:
        """The role of a GPUJob that a pod has; empty: it has none, or nobody knows."""
        job = self._jobs.believed.get(pod.job_uid)
        return job.role if job is not None else ""

    def gpujob_of(self, pod: PodRecord) -> GPUJobRecord | None:
        """The GPUJob of a pod; None where that is not known, or there is none."""
        return self.of(pod) if pod.share is None else None

    def jobs(self, key: JobKey) -> Iterable[JobRecord]:
        """The Jobs of a GPUJob; not those of an earlier one of the same name."""
        owner = self.get(key)
        known = self._jobs.of(key)
        return [job for job in known if owner is None or job.owner_uid == owner.uid]

    def pods(self, key: JobKey) -> Iterator[PodRecord]:
        """The pods of a GPUJob."""
        for job in self.jobs(key):
            yield from self._pods.of_job(job.uid)
