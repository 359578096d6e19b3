"""A full cluster and a long queue: thousands of jobs of one pod, of which a few start each cycle.

As the operator sees it: short jobs end all the time, those that start leave the queue, new ones
join it, and all others are the same objects as in the cycle before. Used by ``bench_planner``.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from time import process_time

from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import DeviceAllocation, Plan, Waits
from gpu_scheduler.core.model.preemption_policy import FAIR
from gpu_scheduler.core.model.request import PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

NODES, GPUS = 20, 8
POD_KINDS = (
    pod_shape(125),
    pod_shape(250, cpu_milli=1000),
    pod_shape(500),
    pod_shape(1000),
    pod_shape(mib=10_240),
    pod_shape(1000, count=2),
)
LIMITS = (None, 600, 3600)  # seconds, of jobs
PARTS = ((1000,), (500, 500), (500, 250, 250), (250, 250, 125, 125, 125, 125))
Pods = list[RunningPod]
ENDS = 5  # pods per cycle
CYCLE_SECONDS = 0.25


class _Index:
    """Running pods, found as quickly as the operator finds them."""

    def __init__(self, pods: Pods) -> None:
        self._on, self._of = defaultdict[str, Pods](list), defaultdict[str, Pods](list)
        for pod in pods:
            self._on[pod.node].append(pod)
            self._of[pod.project].append(pod)

    def on(self, node: str) -> Pods:
        """See ``RunningPods``."""
        return self._on[node]

    def of(self, project: ProjectName) -> Pods:
        """See ``RunningPods``."""
        return self._of[project]

    def all(self) -> Pods:
        """See ``RunningPods``."""
        return [pod for pods in self._on.values() for pod in pods]

    def leaving(self) -> Pods:
        """Nobody leaves: evicted pods are gone at once."""
        return []


@dataclass
class LongQueue:
    """So many waiting jobs with so many pods each, in so many projects."""

    jobs: int
    teams: int
    pods: int = 1
    quota_milli: int = NODES * GPUS * 1000  # of all teams together
    priorities: tuple[int, ...] = (50,)
    cluster: Cluster = field(init=False)
    projects: dict[ProjectName, Project] = field(init=False)
    waiting: dict[str, WaitingJob] = field(init=False)
    running: list[RunningPod] = field(default_factory=list)
    now: float = 10_000.0
    seconds: float = 0.0  # of CPU, for the last plan
    last: Plan = field(default_factory=lambda: Plan((), Waits()))

    def __post_init__(self) -> None:
        self._random, self._made = Random(1), 0
        builder = ClusterBuilder()
        for n in range(NODES):
            builder.node(f"node-{n}", GPUS)
        self.cluster = builder.obj()
        quota = self.quota_milli // self.teams
        self.projects = projects(*(project(f"team-{i}", quota) for i in range(self.teams)))
        self._devices = {device: d for d, device in enumerate(self.cluster.dev_id)}
        for device in self.cluster.dev_id:
            self._fill(device)
        for _ in range(ENDS):
            self._end()
        self.waiting = {}
        for _ in range(self.jobs):
            self._join()

    def plan(self, session: PlannerCache) -> Plan:
        """One cycle."""
        index = _Index(self.running)
        start = process_time()
        self.last = plan(
            PlanInput(
                self.cluster,
                self.projects,
                list(self.waiting.values()),
                running_pods=index,
                reservations=self.last.reservations,
                now=self.now,
                preemption_policy=FAIR,
                memory=self.last.memory,
            ),
            session,
        )
        self.seconds = process_time() - start
        return self.last

    def go_on(self) -> None:
        """What was decided happens, a few pods end and as many jobs join as have started."""
        self.now += CYCLE_SECONDS
        gone = {evict.pod for evict in self.last.evicts}
        for left in [one for one in self.running if one.uid in gone]:
            self._charge(left, 1)
        self.running = [one for one in self.running if one.uid not in gone]
        for place in self.last.assignments:
            one = self.waiting.pop(place.job)
            pod = next(pod for pod in one.pods if pod.uid == place.pod)
            limit = one.time_limit_seconds
            self._start(
                RunningPod(
                    pod.uid,
                    pod.name,
                    one.key,
                    one.project,
                    place.node,
                    place.devices,
                    pod.pod_shape.cpu_milli,
                    since=self.now,
                    ends=None if limit is None else self.now + limit,
                    pod_shape=pod.pod_shape,
                )
            )
            rest = tuple(pod for pod in one.pods if pod.uid != place.pod)
            if rest:
                self.waiting[one.key] = replace(one, pods=rest)
        for _ in range(ENDS):
            self._end()
        while len(self.waiting) < self.jobs:
            self._join()

    def _join(self) -> None:
        n = self._made = self._made + 1
        made = job(
            f"job-{n}",
            POD_KINDS[self._random.randrange(len(POD_KINDS))],
            self.pods,
            project=f"team-{n % self.teams}",
            priority=self._random.choice(self.priorities),
            created=self.now - 3600 + n / 100,
        )
        pods = tuple(replace(pod, since=made.created) for pod in made.pods)
        limit = self._random.choice(LIMITS)
        self.waiting[made.key] = replace(made, pods=pods, time_limit_seconds=limit)

    def _fill(self, device: str) -> None:
        """Pods that share a GPU and run already."""
        for part, milli in enumerate(self._random.choice(PARTS)):
            name, d = f"old-{device}-{part}", self._devices[device]
            allocated = DeviceAllocation(
                0, device, milli, milli * self.cluster.dev_usable_mib[d] // 1000
            )
            node, team = device.split("/")[0], ProjectName(f"team-{d % self.teams}")
            ends = self.now + self._random.choice((600, 3600))
            key = job(name, pod_shape(milli)).key
            self._start(
                RunningPod(PodUID(name), name, key, team, node, (allocated,), since=0.0, ends=ends)
            )

    def _start(self, pod: RunningPod) -> None:
        self.running.append(pod)
        self._charge(pod, -1)

    def _end(self) -> None:
        """A pod ends, whichever."""
        at = self._random.randrange(len(self.running))
        self._charge(self.running.pop(at), 1)

    def _charge(self, pod: RunningPod, sign: int) -> None:
        c, node = self.cluster, int(pod.node.split("-")[1])
        c.free_pods[node] += sign
        c.free_cpu_milli[node] += sign * pod.cpu_milli
        for allocated in pod.devices:
            d = self._devices[allocated.device]
            c.free_device(d, sign * allocated.fraction_milli, sign * allocated.mib)
            key = pod.project, c.dev_model[d]
            c.held_by_model[key] = c.held_by_model.get(key, 0) - sign * allocated.milli
        held = c.allocated_milli.get(pod.project, 0)
        c.allocated_milli[pod.project] = held - sign * pod.milli
