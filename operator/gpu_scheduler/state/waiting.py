"""Pods that need a decision, grouped by job and ready for the planner.

A pod may be seen before its Job, and a Job before its GPUJob: pods wait under their Job's uid until
the owner is known. A job's tuple of pods is built when it is asked for and kept until one of them
changes, so a cycle costs what changed and not what waits.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.peers import PodPeers
from gpu_scheduler.core.model.request import (
    Gang,
    JobKey,
    PodKind,
    PodUID,
    ProjectName,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.asks import Ask
from gpu_scheduler.state.failed_nodes import FailedNodes
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord, epoch_seconds
from gpu_scheduler.state.peers import peers_of
from gpu_scheduler.state.pod_kind import pod_kind_of, pod_resources
from gpu_scheduler.state.pods import PodRecord

_MOST_SHAPES = 10_000
_NOTHING = Ask((), (), 0, 0)  # a Job of a role that the spec does not have


@dataclass(slots=True)
class _Entry:
    record: PodRecord
    pod: Pod
    since: float  # epoch seconds
    peers: PodPeers
    pod_kind: PodKind | None = None  # known once the GPUJob is


class PendingPods:
    """Waiting pods by job, and the nodes that a job had better avoid for a while."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[PodUID, _Entry] = {}
        self._by_job: dict[str, dict[PodUID, None]] = {}  # Job uid -> pods
        self._owner: dict[str, JobRecord] = {}  # Job uid -> the Job, where it is a GPUJob's
        self._jobs: dict[JobKey, dict[str, None]] = {}  # GPUJob -> Job uids with waiting pods
        self._ready: dict[JobKey, WaitingJob] = {}
        self._failed = FailedNodes()
        self._interned: dict[PodKind, PodKind] = {}

    def __len__(self) -> int:
        """Pods that wait."""
        return len(self._entries)

    def keys(self) -> Iterable[JobKey]:
        """GPUJobs with waiting pods."""
        return tuple(self._jobs)

    def put(self, record: PodRecord, pod: Pod, job: JobRecord | None) -> bool:
        """Add or renew a waiting pod; False when nothing that matters changed."""
        known = self._entries.get(record.uid)
        if known is not None and known.record.job_uid != record.job_uid:
            self.drop(record.uid)  # its Job let go of it
            known = None
        since = known.since if known else epoch_seconds(record.created)
        same = known is not None and known.pod.spec == pod.spec
        peers = peers_of(pod)
        pod_kind = known.pod_kind if known else None
        self._entries[record.uid] = _Entry(record, pod, since, peers, pod_kind)
        if known is not None and same and known.peers == peers:
            return False
        self._entries[record.uid].pod_kind = None
        self._by_job.setdefault(record.job_uid, {})[record.uid] = None
        if job is not None:
            self._link(job)
        return True

    def adopt(self, job: JobRecord) -> bool:
        """Learn whose Job it is; True when pods were waiting for that."""
        if job.uid not in self._by_job or job.uid in self._owner:
            return False
        self._link(job)
        return True

    def disown(self, job_uid: str) -> bool:
        """The Job is gone: its pods will go too and must not start; True when any waited."""
        job = self._owner.pop(job_uid, None)
        if job is None:
            return False
        self._unlink(job)
        return True

    def drop(self, uid: PodUID) -> bool:
        """Remove a pod; False when it did not wait."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return False
        job_uid = entry.record.job_uid
        pods = self._by_job[job_uid]
        del pods[uid]
        job = self._owner.get(job_uid)
        if job is not None:
            self._ready.pop(job.owner, None)
        if not pods:
            del self._by_job[job_uid]
            self.disown(job_uid)
        return True

    def forget_job(self, key: JobKey) -> None:
        """The GPUJob changed: its pods' pod kinds are worked out again."""
        self._ready.pop(key, None)
        for job_uid in self._jobs.get(key, ()):
            for uid in self._by_job.get(job_uid, ()):
                self._entries[uid].pod_kind = None

    def pod(self, uid: PodUID) -> Pod | None:
        """The waiting pod as last seen."""
        entry = self._entries.get(uid)
        return entry.pod if entry else None

    def resources(self, uid: PodUID) -> tuple[int, int, int]:
        """Milli-CPU, memory and ephemeral storage in bytes of a waiting pod."""
        entry = self._entries[uid]
        if entry.pod_kind is None:
            return pod_resources(entry.pod)
        return entry.pod_kind.cpu_milli, entry.pod_kind.memory_bytes, entry.pod_kind.ephemeral_bytes

    def peers(self, uid: PodUID) -> PodPeers:
        """Who a waiting pod is to rules about other pods, and its own."""
        return self._entries[uid].peers

    def avoid(self, key: JobKey, node: str, now: float, seconds: float, why: str = "") -> None:
        """Keep a job's pods off a node for a while, longer each time; ``now``: monotonic seconds.

        ``why``: what was said there, for whoever waits.
        """
        self._failed.note(key, node, now, seconds, why)
        self._ready.pop(key, None)

    def avoided(self, key: JobKey) -> Mapping[str, str]:
        """The nodes that a job keeps off now, and what was said there."""
        return self._failed.of(key)

    def forgive_all_but(self, there: Container[JobKey]) -> None:
        """Forget where pods of GPUJobs failed that are gone."""
        self._failed.forget_all_but(there)

    def expire(self, now: float) -> bool:
        """Let go of avoided nodes whose time is over; True when there were any."""
        expired = self._failed.expire(now)
        for key in expired:
            self._ready.pop(key, None)
        return bool(expired)

    def next_expiry(self) -> float | None:
        """When the next avoided node may be used again, monotonic seconds."""
        return self._failed.next_expiry()

    def members_changed(self, key: JobKey) -> None:
        """A pod that does not wait changed: a gang depends on those as well."""
        ready = self._ready.get(key)
        if ready is not None and ready.gang is not None:
            del self._ready[key]

    def job(
        self,
        job: GPUJobRecord,
        project: ProjectName,
        gang: Callable[[], Gang | None] = lambda: None,
    ) -> WaitingJob | None:
        """The job's waiting pods in the order of their ranks, as the planner wants them.

        ``gang`` is asked when the answer is not known already. Pods of an earlier GPUJob of the
        same name, which are about to go, are not among them.
        """
        ready = self._ready.get(job.key)
        if ready is not None and ready.project == project:
            return ready
        entries = [
            self._entries[uid]
            for job_uid in self._jobs.get(job.key, ())
            if self._owner[job_uid].owner_uid == job.uid
            for uid in self._by_job.get(job_uid, ())
        ]
        if not entries or job.spec is None:
            return None
        avoided = frozenset(self._failed.of(job.key))
        entries.sort(key=lambda e: self._place_in_line(e, job))
        ready = WaitingJob(
            key=job.key,
            project=project,
            pods=tuple(
                WaitingPod(
                    e.record.uid,
                    e.record.name,
                    self._pod_kind(e, job),
                    avoided,
                    e.since,
                    self._role(e),
                    e.peers,
                )
                for e in entries
            ),
            ruled=any(e.peers.rules is not None for e in entries),
            interactive=job.spec.type == "interactive",
            priority=job.spec.priority,
            created=job.created_seconds,
            time_limit_seconds=job.spec.time_limit_seconds,
            gang=gang(),
        )
        self._ready[job.key] = ready
        return ready

    def _link(self, job: JobRecord) -> None:
        self._owner[job.uid] = job
        self._jobs.setdefault(job.owner, {})[job.uid] = None
        self._ready.pop(job.owner, None)

    def _unlink(self, job: JobRecord) -> None:
        uids = self._jobs[job.owner]
        del uids[job.uid]
        if not uids:
            del self._jobs[job.owner]
        self._ready.pop(job.owner, None)

    def _role(self, entry: _Entry) -> str:
        return self._owner[entry.record.job_uid].role

    def _place_in_line(self, entry: _Entry, job: GPUJobRecord) -> tuple[int, str, str]:
        ask = job.asks.get(self._role(entry))
        rank = entry.record.index + (ask.first_rank if ask is not None else 0)
        rank += self._owner[entry.record.job_uid].first_trial
        return (rank, entry.record.created, entry.record.name)

    def _pod_kind(self, entry: _Entry, job: GPUJobRecord) -> PodKind:
        if entry.pod_kind is None:
            ask = job.asks.get(self._role(entry), _NOTHING)
            pod_kind = pod_kind_of(entry.pod, ask.devices, ask.models, job.min_compute)
            if len(self._interned) > _MOST_SHAPES:
                self._interned.clear()  # only costs that equal pod kinds are compared by value
            entry.pod_kind = self._interned.setdefault(pod_kind, pod_kind)
        return entry.pod_kind
