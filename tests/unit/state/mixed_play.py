"""Plays whose plans are made from what the watches would show: GPUJobs, and pods without one.

A pod of a play is the only one of a GPUJob here, or asks for its share by itself. The state is told
of it as of a real one, so whatever holds for plays is shown of both, side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime

import msgspec
from tests.unit.core.properties.play import Play, Pod
from tests.unit.state.builders import make_gpujob, make_job, make_node, make_pod

from gpu_scheduler.api import names
from gpu_scheduler.api.share_words import written
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import JobKey, PodUID, WaitingJob
from gpu_scheduler.kube.objects import OwnerReference
from gpu_scheduler.kube.objects import Pod as Object
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.projects import ProjectRecord


@dataclass(frozen=True)
class MixedPod(Pod):
    """``by_itself``: it has no GPUJob, and the next one in its place is a pod of another name."""

    by_itself: bool = False

    @property
    def object_name(self) -> str:
        return f"{self.name}-{self.again}"

    @property
    def key(self) -> JobKey:
        own = f"pod {self.object_name}" if self.by_itself else self.name
        return JobKey(f"{self.project}/{own}")


def mixed(pods: Sequence[Pod], by_itself: Callable[[Pod], bool]) -> list[Pod]:
    """The same pods, some of them without a GPUJob."""
    return [
        MixedPod(**{f.name: getattr(pod, f.name) for f in fields(Pod)}, by_itself=by_itself(pod))
        for pod in pods
    ]


def play_of(play: Play, by_itself: Callable[[Pod], bool]) -> "MixedPlay":
    """The same play, of GPUJobs and pods without one."""
    made = MixedPlay(play.gpus, play.projects, mixed(play.waiting, by_itself))
    assert not play.running
    made.grace, made.preemption_policy = play.grace, play.preemption_policy
    made.reserve_after_seconds = play.reserve_after_seconds
    return made


@dataclass
class MixedPlay(Play):
    """A play that plans by way of ``ClusterState``."""

    state: ClusterState = field(init=False)
    _shown: dict[PodUID, MixedPod] = field(default_factory=dict)
    _placed: set[PodUID] = field(default_factory=set)
    _version: int = 1

    def __post_init__(self) -> None:
        self.session, self.anew = PlannerCache(), True
        self.state = ClusterState(now=lambda: self.now)
        for number, gpus in enumerate(self.gpus):
            zone = {"zone": f"z{number % 2}"}
            self.state.nodes.changed(make_node(f"n{number}", gpus, cpu="128", labels=zone))
        for name, each in self.projects.items():
            record = ProjectRecord(each, (name,), "", 1, f"uid-{name}")
            self.state.project_changed(record)

    def cluster(self) -> Cluster:
        self._show()
        cluster = self.state.snapshot()
        assert min(cluster.free_milli, default=0) >= 0
        assert min(cluster.free_mib, default=0) >= 0
        for name in self.projects:
            assert cluster.allocated_milli.get(name, 0) == self.held(name)
        return cluster

    def roll(self):  # type: ignore[no-untyped-def, override]
        return self.state.running_pods

    def jobs(self) -> list[WaitingJob]:
        return self.state.waiting_jobs()

    def carry_out(self, result: Plan) -> None:
        super().carry_out(result)
        self._show()

    def _show(self) -> None:
        """Tell the state what has changed since."""
        there = {pod.uid: pod for pod in self.waiting} | {
            uid: pod for uid, (pod, _) in self.running.items()
        }
        for uid in self._shown.keys() - there.keys():
            self._forget(self._shown.pop(uid), there)
        for uid, pod in there.items():
            assert isinstance(pod, MixedPod)
            if uid not in self._shown:
                self._introduce(pod)
            if uid in self.running and uid not in self._placed:
                self._placed.add(uid)
                self._tell(pod)
            if uid in self.going and uid not in self.state.pods.leaving:
                self.state.set_leaving(uid, True)

    def _introduce(self, pod: MixedPod) -> None:
        self._shown[pod.uid] = pod
        if not pod.by_itself:
            (request,) = pod.pod_shape.devices
            spec = {
                "gpu": request.milli / 1000 if request.milli < 1000 else request.count,
                "gpuDevices": request.count if request.milli < 1000 else None,
                "type": "interactive" if pod.interactive else "training",
                "priority": pod.priority,
                "timeLimitSeconds": pod.seconds if pod.limit else None,
            }
            about = {"namespace": pod.project, "uid": f"gpujob-{pod.name}"}
            created = _time(pod.created)
            self.state.gpujob_changed(make_gpujob(pod.name, created=created, **about, **spec))
            job = make_job(
                pod.name,
                uid=f"job-{pod.name}",
                owner_uid=about["uid"],
                namespace=pod.project,
            )
            self.state.job_changed(job)
        self._tell(pod)

    def _tell(self, pod: MixedPod) -> None:
        """The watch shows a pod."""
        self._version += 1
        placed = self.running.get(pod.uid)
        since = pod.created if pod.since is None else pod.since
        started = {"startTime": _time(placed[1].since)} if placed is not None else {}
        made = make_pod(
            pod.object_name,
            uid=pod.uid,
            version=self._version,
            namespace=pod.project,
            job=None if pod.by_itself else f"job-{pod.name}",
            node=placed[1].node if placed is not None else "",
            devices=placed[1].devices if placed is not None else (),
            phase="Running" if placed is not None else "Pending",
            cpu=f"{pod.pod_shape.cpu_milli}m",
            memory="0",
            created=_time(since),
            annotations_=_asks(pod) if pod.by_itself else {},
            **started,
        )
        self.state.pod_changed(_controlled(made, pod) if pod.by_itself else made)

    def _forget(self, pod: MixedPod, there: dict[PodUID, Pod]) -> None:
        self.state.pod_gone(pod.uid)
        self._placed.discard(pod.uid)
        if not pod.by_itself and not any(each.name == pod.name for each in there.values()):
            self.state.job_gone(f"job-{pod.name}")
            self.state.gpujob_gone(pod.key)


def _asks(pod: MixedPod) -> dict[str, str]:
    """What a pod says that asks by itself."""
    (request,) = pod.pod_shape.devices
    said = {names.ASK_GPU: str(request.count)}
    if request.milli < 1000:
        said = {names.ASK_GPU: str(request.milli / 1000), names.ASK_DEVICES: str(request.count)}
    notes = {
        names.ASKED: written({0: said}),
        names.ASK_TYPE: "interactive" if pod.interactive else "training",
        names.ASK_PRIORITY: str(pod.priority),
    }
    if pod.limit and pod.seconds is not None:
        notes[names.ASK_TIME_LIMIT] = str(pod.seconds)
    return notes


def _controlled(made: Object, pod: MixedPod) -> Object:
    owner = OwnerReference("ReplicaSet", pod.name, f"set-{pod.name}", True)
    meta = msgspec.structs.replace(made.metadata, owner_references=(owner,))
    return msgspec.structs.replace(made, metadata=meta)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
