"""Pods that need a decision, made and prospective ones, grouped by job and ready for the planner.

A pod may be seen before its Job, and a Job before its GPUJob: pods wait under their Job's uid until
the owner is known. A job's tuple of pods is built when it is asked for and kept until one of them
changes, so a cycle costs what changed and not what waits.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.api.names import GATE
from gpu_scheduler.core.model.affinity import AffinityInfo
from gpu_scheduler.core.model.request import (
    Gang,
    JobKey,
    PodShape,
    PodUID,
    ProjectName,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.model.resources import NodeResources, resources_of
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.limits.bounded import Bounded, Shared
from gpu_scheduler.state.affinity.pod_affinity import pod_affinity_of
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.jobs.doubts import Doubts
from gpu_scheduler.state.jobs.failed_nodes import FailedNodes
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.jobs.looked import PrerequisiteStore
from gpu_scheduler.state.jobs.role_requests import RoleRequest
from gpu_scheduler.state.pods.device_classes import DeviceClassStore
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.state.pods.pod_shape import pod_resources, pod_shape_of
from gpu_scheduler.state.pods.shares import PlainPodRequest
from gpu_scheduler.state.pods.slim import slim
from gpu_scheduler.state.queue.prospective import ProspectivePod
from gpu_scheduler.state.queue.template_shapes import TemplateShapes

_BYTES_PER_CHAR = 8  # of a pod shape, by what it says
_SEEN_BYTES = 4 << 20  # of what pods became that were planned as another shape
_PlaceInLine = tuple[int, str, str]  # rank, creation time, name
_NOTHING = RoleRequest((), (), 0, 0)  # a Job of a role that the spec does not have


@dataclass(slots=True)
class _Entry:
    record: PodRecord
    pod: Pod
    since: float  # epoch seconds
    affinity: AffinityInfo
    pod_shape: PodShape | None = None  # known once the GPUJob is

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.record.namespace

    @property
    def name(self) -> str:
        """What it is called."""
        return self.record.name


class PendingPods:
    """Waiting pods by job, and the nodes that a job had better avoid for a while."""

    def __init__(
        self, beginnings: Beginnings | None = None, served: DeviceClassStore | None = None
    ) -> None:
        """Start empty; ``beginnings``: since when they wait; ``served``: what no node counts."""
        self._beginnings = beginnings or Beginnings()
        self._served = served or DeviceClassStore()
        self._entries: dict[PodUID, _Entry] = {}
        self._by_job: dict[str, dict[PodUID, None]] = {}  # Job uid -> pods
        self._owner: dict[str, JobRecord] = {}  # Job uid -> the Job, where it is a GPUJob's
        self._jobs: dict[JobKey, dict[str, None]] = {}  # GPUJob -> Job uids with waiting pods
        self._early: dict[PodUID, None] = {}  # whose Job became known after them, until asked for
        self._open: dict[JobKey, None] = {}  # GPUJobs that may have prospective pods
        self._prospective: dict[PodUID, ProspectivePod] = {}
        self._prospective_of: dict[JobKey, tuple[PodUID, ...]] = {}
        self._prospective_since: dict[JobKey, float] = {}  # epoch seconds
        self._ready: dict[JobKey, WaitingJob | None] = {}
        self._failed = FailedNodes()
        self.doubts = Doubts(self._beginnings.now)
        self.looked = PrerequisiteStore()
        self._interned: Shared[PodShape] = Shared()
        self._shapes = TemplateShapes()
        self._seen_as: Bounded[tuple[str, PodShape], PodShape] = Bounded(_SEEN_BYTES)

    def __len__(self) -> int:
        """Pods that exist and wait."""
        return len(self._entries)

    def keys(self) -> Iterable[JobKey]:
        """GPUJobs that may have waiting pods."""
        return tuple(self._open | self._jobs)

    def with_pods(self) -> Iterable[JobKey]:
        """GPUJobs with waiting pods that exist."""
        return tuple(self._jobs)

    def uids(self, key: JobKey) -> list[PodUID]:
        """The pods of a job that exist and wait."""
        return [uid for job in self._jobs.get(key, ()) for uid in self._by_job.get(job, ())]

    def has_pods(self, key: JobKey) -> bool:
        """Whether pods of a job exist and wait."""
        return key in self._jobs

    def set_open(self, key: JobKey, may: bool) -> None:
        """Note whether a GPUJob may have prospective pods."""
        self._ready.pop(key, None)
        self._shapes.forget(key)
        if may:
            self._open[key] = None
        elif key in self._open:
            del self._open[key]
            self._prospective_since.pop(key, None)
            self._forget_prospective(key)

    def put(self, record: PodRecord, pod: Pod, job: JobRecord | None) -> bool:
        """Add or renew a waiting pod; False when nothing that matters changed."""
        known = self._entries.get(record.uid)
        if known is not None and known.record.job_uid != record.job_uid:
            self.drop(record.uid)  # its Job let go of it
            known = None
        since = self._beginnings.of_pod(record.uid, record.created)
        affinity, pod = pod_affinity_of(pod), slim(pod)
        same = known is not None and known.pod.spec == pod.spec
        pod_shape = known.pod_shape if known else None
        self._entries[record.uid] = _Entry(record, pod, since, affinity, pod_shape)
        if known is not None and same and known.affinity == affinity:
            return False
        self._entries[record.uid].pod_shape = None
        self._by_job.setdefault(record.job_uid, {})[record.uid] = None
        if job is not None:
            self._link(job)
        return True

    def adopt(self, job: JobRecord) -> bool:
        """Learn whose Job it is; True when pods were waiting for that."""
        if job.uid not in self._by_job or job.uid in self._owner:
            return False
        self._link(job)
        self._early |= self._by_job[job.uid]
        return True

    def take_early(self) -> list[tuple[PodRecord, Pod]]:
        """Pods that wait and whose Job was not known when they came, once each."""
        early, self._early = self._early, {}
        found = (self._entries[uid] for uid in early if uid in self._entries)
        return [(entry.record, entry.pod) for entry in found]

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
        """The GPUJob changed: its pods' pod shapes are worked out again."""
        self._ready.pop(key, None)
        for job_uid in self._jobs.get(key, ()):
            for uid in self._by_job.get(job_uid, ()):
                self._entries[uid].pod_shape = None

    def is_open(self, key: JobKey) -> bool:
        """Whether a GPUJob may have prospective pods."""
        return key in self._open

    def pod(self, uid: PodUID) -> Pod | None:
        """The waiting pod as last seen; a prospective one as its Job would make it."""
        entry = self._entries.get(uid) or self._prospective.get(uid)
        return entry.pod if entry else None

    def prospective(self, uid: PodUID) -> ProspectivePod | None:
        """A prospective pod; None where that is the uid of none."""
        return self._prospective.get(uid)

    def entry(self, uid: PodUID) -> "_Entry | ProspectivePod":
        """A waiting pod, made or prospective."""
        return self._entries.get(uid) or self._prospective[uid]

    def shape(self, uid: PodUID, job: GPUJobRecord) -> PodShape:
        """What a waiting pod asks for; a prospective one by its template alone."""
        prospective = self._prospective.get(uid)
        if prospective is not None:
            pod, request = prospective.pod, job.requests[prospective.role]
            asked = request, job.min_compute
            return self._shapes.of(
                job.key, pod.spec, asked, lambda: self._shape_of(pod, request, job)
            )
        return self._pod_shape(self._entries[uid], job)

    def resources(self, uid: PodUID) -> NodeResources:
        """What a waiting pod asks for beside GPUs."""
        entry = self.entry(uid)
        shape = entry.pod_shape if isinstance(entry, _Entry) else None
        return pod_resources(entry.pod) if shape is None else resources_of(shape)

    def learn(self, namespace: str, planned: PodShape, made: PodShape) -> None:
        """What was planned as one shape became another when the API server made it.

        A LimitRange, a RuntimeClass or a webhook adds to pods: the next of that shape are planned
        as they will be.
        """
        if planned == made:
            return
        size = len(repr(planned)) + len(repr(made))
        self._seen_as.put((namespace, planned), made, _BYTES_PER_CHAR * size)

    def avoid(self, key: JobKey, node: str, now: float, seconds: float, why: str = "") -> None:
        """Keep a job's pods off a node for a while, longer each time; ``now``: monotonic seconds.

        ``why``: what was said there, for whoever waits.
        """
        self._failed.note(key, node, now, seconds, why)
        self._ready.pop(key, None)

    def avoided(self, key: JobKey) -> Mapping[str, str]:
        """The nodes that a job keeps off now, and what was said there."""
        return self._failed.of(key)

    def has_failed_before(self, key: JobKey, node: str) -> bool:
        """Whether a failure on a node is not the first of a job, nor one of the same moment."""
        return self._failed.has_others(key, node)

    def know_better(self, key: JobKey) -> None:
        """What is known of a job beside its pods is another."""
        self._ready.pop(key, None)

    def look_again(self, namespace: str) -> None:
        """What somebody saw of the jobs of a namespace may be otherwise now."""
        for key in self.looked.forget_namespace(namespace):
            self._ready.pop(key, None)

    def forget_failures(self, gone: Callable[[JobKey], bool]) -> None:
        """Forget where pods of jobs failed that are gone."""
        self._failed.forget(gone)
        self.doubts.forget(gone)
        self.looked.forget(gone)

    def expire(self, now: float) -> Collection[JobKey]:
        """Let go of avoided nodes, of jobs held back and of what somebody saw; whose is over."""
        expired = self._failed.expire(now) | {*self.doubts.expire(now), *self.looked.expire(now)}
        for key in expired:
            self._ready.pop(key, None)
        return expired

    def next_expiry(self) -> float | None:
        """When a node may be used again, or a job be tried again, monotonic seconds."""
        stores = self._failed, self.doubts, self.looked
        return min((at for at in (b.next_expiry() for b in stores) if at is not None), default=None)

    def members_changed(self, key: JobKey) -> None:
        """A pod that does not wait changed: gangs and prospective pods depend on those as well."""
        ready = self._ready.get(key)
        if key in self._open or (ready is not None and ready.gang is not None):
            self._ready.pop(key, None)

    def served_otherwise(self) -> list[tuple[PodRecord, Pod]]:
        """DeviceClasses serve other resources: shapes are worked out again; all pods that wait."""
        self._ready.clear()
        self._shapes = TemplateShapes()
        for entry in self._entries.values():
            entry.pod_shape = None
        return [(entry.record, entry.pod) for entry in self._entries.values()]

    def all_changed(self) -> None:
        """Something changed on which any of them may depend."""
        self._ready.clear()

    def job(
        self,
        job: GPUJobRecord,
        project: ProjectName,
        gang: Callable[[], Gang | None] = lambda: None,
        prospective: Callable[[], Sequence[ProspectivePod]] = lambda: (),
    ) -> WaitingJob | None:
        """The job's waiting pods in the order of their ranks, as the planner wants them.

        ``gang`` and ``prospective`` are asked when the answer is not known already. Pods of an
        earlier GPUJob of the same name, which are about to go, are not among them.
        """
        if job.key in self._ready:
            ready = self._ready[job.key]
            if ready is None or ready.project == project:
                return ready
        self._ready[job.key] = ready = self._made_ready(job, project, gang, prospective)
        return ready

    def _made_ready(
        self,
        job: GPUJobRecord,
        project: ProjectName,
        gang: Callable[[], Gang | None],
        prospective: Callable[[], Sequence[ProspectivePod]],
    ) -> WaitingJob | None:
        avoided = frozenset(self._failed.of(job.key))
        found = [
            (
                self._place_in_line(e, job),
                WaitingPod(
                    e.record.uid,
                    e.record.name,
                    self._pod_shape(e, job),
                    avoided,
                    e.since,
                    self._role(e),
                    e.affinity,
                ),
            )
            for job_uid in self._jobs.get(job.key, ())
            if self._owner[job_uid].owner_uid == job.uid
            for e in map(self._entries.__getitem__, self._by_job.get(job_uid, ()))
        ]
        found += self._without_object(job, prospective(), avoided)
        if not found or job.spec is None:
            return None
        found.sort(key=lambda each: each[0])
        its_gang = gang()
        if its_gang is not None and job.elastic:
            found = found[: its_gang.missing]  # the others when these have started
        pods, about = tuple(pod for _, pod in found), (job.uid, job.generation)
        return WaitingJob(
            key=job.key,
            project=project,
            pods=pods,
            ruled=any(pod.affinity is not None and pod.affinity.rules is not None for pod in pods),
            interactive=job.spec.type == "interactive",
            priority=job.spec.priority,
            created=job.created_seconds,
            time_limit_seconds=job.spec.time_limit_seconds,
            gang=its_gang,
            doubtful=job.key in self.doubts or self.looked.lacks(job.key, about),
            unseen=self.looked.unseen(job.key, about),
        )

    def _without_object(
        self, job: GPUJobRecord, prospective: Sequence[ProspectivePod], avoided: frozenset[str]
    ) -> Iterator[tuple[_PlaceInLine, WaitingPod]]:
        self._forget_prospective(job.key)
        if not prospective:
            self._prospective_since.pop(job.key, None)
            return
        self._prospective_of[job.key] = tuple(each.uid for each in prospective)
        since = self._prospective_since.get(job.key)
        if since is None:
            since = job.created_seconds if prospective[0].first else self._beginnings.now()
            since = self._prospective_since[job.key] = self._beginnings.since(since)
        shapes: dict[str, PodShape] = {}
        for each in prospective:
            self._prospective[each.uid] = each
            if each.role not in shapes:
                shape = self.shape(each.uid, job)
                shapes[each.role] = self._seen_as.get((job.namespace, shape)) or shape
            shape = shapes[each.role]
            rank = each.index + job.requests[each.role].first_rank
            yield (
                (rank, "", each.name),
                WaitingPod(each.uid, each.name, shape, avoided, since, each.role, each.affinity),
            )

    def _forget_prospective(self, key: JobKey) -> None:
        for uid in self._prospective_of.pop(key, ()):
            self._prospective.pop(uid, None)

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

    def _place_in_line(self, entry: _Entry, job: GPUJobRecord) -> _PlaceInLine:
        request = job.requests.get(self._role(entry))
        rank = entry.record.index + (request.first_rank if request is not None else 0)
        rank += self._owner[entry.record.job_uid].first_trial
        return (rank, entry.record.created, entry.record.name)

    def _pod_shape(self, entry: _Entry, job: GPUJobRecord) -> PodShape:
        if entry.pod_shape is None:
            request = entry.record.share or job.requests.get(self._role(entry), _NOTHING)
            entry.pod_shape = self._shape_of(entry.pod, request, job)
        return entry.pod_shape

    def _shape_of(
        self, pod: Pod, request: RoleRequest | PlainPodRequest, job: GPUJobRecord
    ) -> PodShape:
        # What leaves our gate passes through kube-scheduler, which alone counts those.
        gated = any(gate.name == GATE for gate in pod.spec.scheduling_gates)
        elsewhere = self._served.of(pod) if gated else frozenset()
        asked = request.devices, request.models, job.min_compute
        return self._interned.same(pod_shape_of(pod, *asked, elsewhere))
