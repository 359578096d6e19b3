"""A cluster that carries plans out, cycle by cycle: what is evicted ends and waits again."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from tests.unit.builders import ClusterBuilder

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import DeviceAllocation, Plan, Reservation
from gpu_scheduler.core.model.preemption_policy import (
    NOTHING,
    STRICT,
    PlannerMemory,
    PreemptionPolicy,
)
from gpu_scheduler.core.model.request import (
    Gang,
    JobKey,
    PodShape,
    PodUID,
    Project,
    ProjectName,
    Topology,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.model.running_pods import Roll, RunningPod
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import DEFAULT, TargetWorkload
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput


@cache
def empty(gpus: tuple[int, ...]) -> tuple[Cluster, PlannerCache]:
    """Nodes with so many GPUs, and what a planner keeps."""
    builder = ClusterBuilder()
    for n, each in enumerate(gpus):
        builder.node(f"n{n}", each, labels={"zone": f"z{n % 2}"})
    return builder.obj(), PlannerCache()


@dataclass(frozen=True)
class Pod:
    """One pod of a job of its own, or of a gang, for as long as it takes (None = for ever)."""

    name: str
    project: str
    pod_shape: PodShape
    interactive: bool = False
    priority: int = 50
    created: float = 0.0
    seconds: int | None = None
    limit: bool = False  # its time limit is known to the planner
    gang: str = ""  # its job, when that is a gang …
    size: int = 1  # … of so many pods
    distinct: bool = True
    topology: Topology | None = None
    job: str = ""  # its job, when that has several pods and is no gang
    again: int = 0  # how often its index had to give way: a pod that comes again is a new one
    since: float | None = None  # waits since then; None = since its job was created
    doubtful: bool = False  # its job's last pods could not start for a reason of their own
    unseen: bool = False  # nobody has looked of late whether its job's pods could start

    @property
    def uid(self) -> PodUID:
        return PodUID(f"{self.name}-{self.again}")

    @property
    def key(self) -> JobKey:
        return JobKey(f"ns/{self.gang or self.job or self.name}")


@dataclass
class Play:
    """The pods that wait and those that run, on nodes with ``gpus`` each."""

    gpus: tuple[int, ...]
    projects: dict[ProjectName, Project]
    waiting: list[Pod] = field(default_factory=list)
    running: dict[PodUID, tuple[Pod, RunningPod]] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()
    now: float = 1000.0
    grace: int = 1  # cycles that a pod takes to go
    going: dict[PodUID, int] = field(default_factory=dict)
    reserve_after_seconds: float = 60.0
    consolidate: bool = False
    session: PlannerCache | None = None  # None: one that all plays on such nodes share
    anew: bool = False  # who was evicted comes again as another pod, as in a cluster
    moved: dict[PodUID, float] = field(default_factory=dict)
    preemption_policy: PreemptionPolicy = STRICT
    memory: PlannerMemory = NOTHING
    packing: Packing = Packing.FRAGMENTATION
    workload: TargetWorkload | None = DEFAULT  # with a fixed one it learns nothing
    lost_to: dict[str, JobKey] = field(default_factory=dict)  # by name: for whom it had to go

    def place(self, pod: Pod, *places: str, milli: int = 1000) -> "Play":
        """Put a running pod on devices ('n0/1')."""
        devices = tuple(DeviceAllocation(0, d, milli, milli * 40448 // 1000) for d in places)
        self.running[pod.uid] = pod, self._running_pod(pod, places[0].split("/")[0], devices)
        return self

    def wait(self, *pods: Pod) -> "Play":
        self.waiting += pods
        return self

    def cluster(self) -> Cluster:
        c = empty(self.gpus)[0].copy()
        names = [node.name for node in c.nodes]
        for _, running_pod in self.running.values():
            for allocated in running_pod.devices:
                d = c.dev_id.index(allocated.device)
                c.free_device(d, -allocated.fraction_milli, -allocated.mib)
            node, name = names.index(running_pod.node), running_pod.project
            c.free_pods[node] -= 1
            c.free_cpu_milli[node] -= running_pod.cpu_milli
            c.allocated_milli[name] = c.allocated_milli.get(name, 0) + running_pod.milli
        assert min(c.free_milli, default=0) >= 0
        assert min(c.free_mib, default=0) >= 0
        return c

    def roll(self) -> Roll:
        return Roll(
            replace(running_pod, leaving=uid in self.going)
            for uid, (_, running_pod) in self.running.items()
        )

    def jobs(self) -> list[WaitingJob]:
        found: dict[JobKey, list[Pod]] = {}
        for pod in self.waiting:
            found.setdefault(pod.key, []).append(pod)
        return [
            WaitingJob(
                key,
                ProjectName(pods[0].project),
                tuple(map(_waiting, pods)),
                pods[0].interactive,
                pods[0].priority,
                pods[0].created,
                pods[0].seconds if pods[0].limit else None,
                self._gang(pods),
                doubtful=pods[0].doubtful,
                unseen=pods[0].unseen,
            )
            for key, pods in found.items()
        ]

    def _gang(self, pods: list[Pod]) -> Gang | None:
        """What the planner is told of a gang; its members start and end together here."""
        first = pods[0]
        if not first.gang:
            return None
        return Gang(first.size, first.size, first.distinct, first.topology)

    def given(self) -> PlanInput:
        """What the next plan is made from."""
        return PlanInput(
            self.cluster(),
            self.projects,
            self.jobs(),
            self.roll(),
            self.reservations,
            self.now,
            self.reserve_after_seconds,
            self.consolidate,
            self.preemption_policy,
            self.memory,
            self.packing,
            self.workload,
        )

    def plan(self) -> Plan:
        return plan(self.given(), self.session or empty(self.gpus)[1])

    def carry_out(self, result: Plan) -> None:
        """Start and evict as decided; nothing ends yet."""
        self.reservations, self.memory = result.reservations, result.memory
        waiting = {pod.uid: pod for pod in self.waiting}
        for place in result.assignments:
            pod = waiting.pop(place.pod)
            self.running[pod.uid] = pod, self._running_pod(pod, place.node, place.devices)
        self.waiting = list(waiting.values())
        for evict in result.evicts:
            assert evict.pod in self.running
            assert evict.pod not in self.going, "evicted twice"
            self.going[evict.pod] = self.grace
            self.lost_to[self.running[evict.pod][0].name] = evict.beneficiary

    def tick(self, seconds: float = 1.0) -> None:
        """Time passes: what is going, or is done, goes; who was evicted waits again."""
        self.now += seconds
        for uid in list(self.going):
            self.going[uid] -= 1
            if self.going[uid] <= 0:
                del self.going[uid]
                pod = self.running.pop(uid)[0]
                later = replace(pod, again=pod.again + 1, since=self.now)
                self.waiting.append(later if self.anew else pod)
        for uid, (pod, running_pod) in list(self.running.items()):
            if pod.seconds is not None and running_pod.since + pod.seconds <= self.now:
                del self.running[uid]
                self.going.pop(uid, None)

    def cycle(self, seconds: float = 1.0) -> Plan:
        result = self.plan()
        self.carry_out(result)
        self.tick(seconds)
        return result

    def held(self, project: str, *, staying: bool = False) -> int:
        """Milli-GPU that a project holds; ``staying``: without those that are going."""
        return sum(
            running_pod.milli
            for uid, (_, running_pod) in self.running.items()
            if running_pod.project == project and not (staying and uid in self.going)
        )

    def _running_pod(self, pod: Pod, node: str, devices: Iterable[DeviceAllocation]) -> RunningPod:
        return RunningPod(
            pod.uid,
            pod.name,
            pod.key,
            ProjectName(pod.project),
            node,
            tuple(devices),
            pod.pod_shape.cpu_milli,
            pod.pod_shape.memory_bytes,
            pod.pod_shape.ephemeral_bytes,
            pod.interactive,
            pod.priority,
            self.now,
            self.now + pod.seconds if pod.limit and pod.seconds is not None else None,
            gang=bool(pod.gang),
            pod_shape=pod.pod_shape,
            moved=self.moved.get(pod.uid, 0.0),
            lost_to=self.lost_to.get(pod.name),
        )


def _waiting(pod: Pod) -> WaitingPod:
    since = pod.created if pod.since is None else pod.since
    return WaitingPod(pod.uid, pod.name, pod.pod_shape, since=since)
