"""Where the reflectors put what they see: into the state, and to those who must hear of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import DeviceClass, Job, Namespace, Node, Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.pod import PodRecord, Stage


class PodObserver(Protocol):
    """Whoever looks after single pods."""

    def observe(self, pod: PodRecord) -> None:
        """A pod changed."""

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""


class PodFollower(Protocol):
    """Whoever needs more of a pod than its record."""

    def observe(self, pod: Pod, record: PodRecord, /) -> None:
        """A pod was added or changed."""

    def gone(self, uid: PodUID, /) -> None:
        """A pod is gone."""


class JobFollower(Protocol):
    """Whoever looks after Jobs."""

    def job_changed(self, job: JobRecord, /) -> None:
        """A Job was added or changed."""

    def job_gone(self, uid: str, /) -> None:
        """A Job is gone."""


class PodHandler:
    """Pods."""

    def __init__(
        self,
        state: ClusterState,
        observer: PodObserver,
        followers: Sequence[PodFollower] = (),
        look: Callable[[JobKey], None] = lambda key: None,
    ) -> None:
        """``look`` is told of GPUJobs whose Jobs may have to make more pods now that one leaves."""
        self._state = state
        self._observer = observer
        self._followers = followers
        self._look = look

    def changed(self, obj: Pod) -> None:
        """A pod was added or changed."""
        record = self._state.pod_changed(obj)
        if record is None:
            return
        self._observer.observe(record)
        for follower in self._followers:
            follower.observe(obj, record)
        if record.deleting or record.stage is Stage.ENDED:
            self._leaves(record)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A pod is gone."""
        record = self._state.pods.known.get(PodUID(uid))
        self._state.pod_gone(PodUID(uid))
        self._observer.gone(PodUID(uid))
        for follower in self._followers:
            follower.gone(PodUID(uid))
        if record is not None:
            self._leaves(record)

    def _leaves(self, pod: PodRecord) -> None:
        """A Job that was not to make pods before this one had left may have to make them now."""
        key = self._state.workloads.key_of(pod)
        if key is not None and self._state.decisions.nominated.untold(key):
            self._look(key)


class NodeHandler:
    """Nodes."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def changed(self, obj: Node) -> None:
        """A node was added or changed."""
        self._state.nodes.changed(obj)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A node is gone."""
        self._state.nodes.gone(name)


class DeviceClassHandler:
    """DeviceClasses: which extended resources no node counts."""

    def __init__(self, state: ClusterState, changed: Callable[[JobKey], None]) -> None:
        """``changed`` is told of the GPUJobs that go another way now."""
        self._state = state
        self._changed = changed

    def changed(self, obj: DeviceClass) -> None:
        """A DeviceClass was added or changed."""
        for key in self._state.device_class_changed(obj):
            self._changed(key)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A DeviceClass is gone."""
        for key in self._state.device_class_gone(name):
            self._changed(key)


class NamespaceHandler:
    """Namespaces: of those that are being deleted, GPUJobs and Jobs are looked at (ADR 0040).

    By its labels much of what a policy refuses in a namespace is decided, pod security before all.
    """

    def __init__(
        self,
        state: ClusterState,
        changed: Callable[[JobKey], None],
        *relabelled: Callable[[str], None],
    ) -> None:
        """``changed`` is told of the GPUJobs of a namespace whose deletion has begun, or is over.

        ``relabelled``: told of a namespace whose labels are others.
        """
        self._state = state
        self._changed = changed
        self._relabelled = relabelled
        self._labels: dict[str, Mapping[str, str]] = {}

    def changed(self, obj: Namespace) -> None:
        """A namespace was added or changed."""
        name, terminating = obj.metadata.name, bool(obj.metadata.deletion_timestamp)
        before, self._labels[name] = self._labels.get(name), obj.metadata.labels
        if name not in self._state.namespaces.existing:
            self._state.namespaces.existing.add(name)
            self._state.projects.touch(name)
        if before is not None and before != obj.metadata.labels:
            for tell in self._relabelled:
                tell(name)
        self._mark(name, terminating=terminating)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A namespace is gone; one of its name may come."""
        self._labels.pop(name, None)
        self._state.namespaces.existing.discard(name)
        self._state.projects.touch(name)
        self._mark(name, terminating=False)

    def _mark(self, name: str, *, terminating: bool) -> None:
        known = self._state.namespaces.terminating
        if terminating == (name in known):
            return
        (known.add if terminating else known.discard)(name)
        owners = {job.owner: job.namespace for job in self._state.jobs.believed.values()}
        owners |= {key: job.namespace for key, job in self._state.gpujobs.items()}
        for key, namespace in owners.items():
            if namespace == name:
                self._changed(key)


class JobHandler:
    """Jobs of GPUJobs."""

    def __init__(
        self,
        state: ClusterState,
        changed: Callable[[JobKey], None],
        follower: JobFollower | None = None,
        look: Callable[[JobKey], None] = lambda key: None,
        name_free: Callable[[str], None] = lambda namespace: None,
    ) -> None:
        """``changed`` is told of GPUJobs whose Job has ended, is gone or is not as it was.

        ``look``: of those whose Job may have to make more pods now that it counts other ones.
        ``name_free``: of namespaces in which a Job of nobody's went, for whose name some may wait.
        """
        self._state = state
        self._changed = changed
        self._look = look
        self._name_free = name_free
        self._follower = follower

    def changed(self, obj: Job) -> None:
        """A Job was added or changed; one whose owner is another is as if it were gone to it."""
        meta = obj.metadata
        known = self._state.jobs.believed.get(meta.uid)
        owners = (o.uid for o in meta.owner_references if o.controller)
        if known is not None and known.owner_uid not in owners:
            if int(meta.resource_version or 0) <= known.version:
                return
            self.gone(meta.namespace, meta.name, meta.uid)
            known = None
        record = self._state.job_changed(obj)
        if known is not None and meta.uid not in self._state.jobs.believed:
            self._changed(known.owner)  # somebody changed it: it is none of ours any more
        if record is not None:
            if self._follower is not None:
                self._follower.job_changed(record)
            edited = known is not None and _followed(record) != _followed(known)
            unwanted = record.namespace in self._state.namespaces.terminating
            if record.complete or record.failure or record.deleting or edited or unwanted:
                self._changed(record.owner)
            elif self._state.decisions.nominated.untold(record.owner):
                self._look(record.owner)  # it had to wait until its controller had done with others

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A Job is gone; a GPUJob that still wants one gets a new one."""
        owner = self._state.job_gone(uid)
        if self._follower is not None:
            self._follower.job_gone(uid)
        if owner is not None:
            self._changed(owner)
        else:
            self._name_free(namespace)


def _followed(job: JobRecord) -> tuple[int, int, bool]:
    """What of a Job has to be as its GPUJob wants it."""
    return (job.parallelism, job.completions, job.suspend)
