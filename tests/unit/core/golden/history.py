"""Random work with every feature of the planner on a random cluster, one history per seed.

Projects with quotas, limits, weights and quotas of models; pods and gangs of all kinds of requests,
rules about nodes and about each other; nodes of one or several models that close and open, and GPUs
that fall ill; pods that fail and avoid nodes, gangs that lose a member, strangers on GPUs. Called
by ``record``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.unit.builders import A30, A100, GIB, ClusterBuilder, pod_shape, project, projects
from tests.unit.core.affinity.builders import HOST, Standing, affinity, apart, near, spread
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.affinity import AffinityInfo
from gpu_scheduler.core.model.catalogue import Catalogue, GPUType
from gpu_scheduler.core.model.cluster import Cluster, Taint
from gpu_scheduler.core.model.decision import DeviceAllocation, EvictReason, Plan
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    Gang,
    NodeFilter,
    NodeSelectorTerm,
    PodShape,
    Project,
    Toleration,
    Topology,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import DEFAULT

T4 = "Tesla-T4"
ZONE = "zone"
DEDICATED = Taint("dedicated", "train", "NoSchedule")
CATALOGUE = Catalogue(
    (
        GPUType("big", "a100", 3_000_000),
        GPUType("middle", "a30", 1_000_000, (1, 2, 4)),
        GPUType("small", "t4", 500_000),
    )
)
ANYWHERE = NodeFilter()
WHERES = (
    NodeFilter(selector=((ZONE, "z1"),)),
    NodeFilter(terms=(NodeSelectorTerm(labels=(Requirement(HOST, "NotIn", ("n0",)),)),)),
    NodeFilter(tolerations=(Toleration("dedicated", "Exists"),)),
)
POD_KINDS = (
    (pod_shape(125), 2),
    (pod_shape(300), 2),
    (pod_shape(500), 6),
    (pod_shape(500, cpu_milli=6_000, memory_bytes=20 * GIB), 2),
    (pod_shape(1000), 8),
    (pod_shape(1000, cpu_milli=20_000), 2),
    (pod_shape(1000, count=2), 4),
    (pod_shape(1000, count=4), 2),
    (pod_shape(250, count=2), 2),
    (pod_shape(mib=9_000), 2),
    (pod_shape(mib=12_000, count=2), 1),
    (pod_shape(700, models=("a100",)), 2),
    (pod_shape(1000, models=("a30",)), 2),
    (pod_shape(1000, models=("a100", "a30")), 2),
    (pod_shape(600, min_compute=(8, 0)), 1),
    (pod_shape(containers=[DeviceRequest(0, 1, 600), DeviceRequest(1, 1, 300)]), 1),
    (pod_shape(containers=[DeviceRequest(0, 1, 500), DeviceRequest(1, 1, 0, 8_000)]), 1),
    (pod_shape(containers=[DeviceRequest(0, 2, 1000), DeviceRequest(1, 1, 200)]), 1),
    (pod_shape(cpu_milli=8_000, memory_bytes=GIB), 2),
)
FRACTIONS = (1, 2, 4, 6, 7)  # and who needs several GPUs: consolidation has something to do
PRIORITIES = (50, 50, 50, 50, 10, 90)
PEERS = (
    affinity(app="x"),
    affinity(app="y"),
    affinity(apart(app="x"), app="x"),
    affinity(near(ZONE, app="x"), app="y"),
    affinity(near(HOST, app="y"), app="y"),
    affinity(spread(app="y"), app="y"),
    affinity(spread(ZONE, app="x"), app="x"),
)


@dataclass
class _Machine:
    """A node, and what of it changes."""

    models: tuple[str, ...]
    zone: str
    taints: tuple[Taint, ...]
    cpu_milli: int
    pods: int
    unschedulable: str = ""
    sick: set[int] = field(default_factory=set)


@dataclass
class History(Play):
    """One history; ``plans`` yields each plan before it is carried out."""

    who: dict[str, AffinityInfo] = field(default_factory=dict)
    avoided: dict[str, frozenset[str]] = field(default_factory=dict)
    spared: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, seed: int) -> "History":
        """The history of a seed."""
        random = Random(seed)
        teams = [_team(random, name) for name in ("a", "b", "c", "d")[: random.randint(2, 4)]]
        workload = random.choice((None, DEFAULT))
        packing = random.choice((Packing.FRAGMENTATION, Packing.BEST_FIT))
        found = cls((), projects(*teams), session=PlannerCache(), anew=random.random() < 0.7)
        found.packing, found.workload = packing, workload
        found.reserve_after_seconds = random.choice((0.0, 10.0, 60.0))
        found.consolidate = random.random() < 0.7
        found._start(random)
        return found

    def _start(self, random: Random) -> None:
        self._random, self._jobs = random, 0
        self._machines = [_machine(random) for _ in range(random.randint(1, 7))]
        self._catalogue = random.choice((Catalogue(), Catalogue(), CATALOGUE))
        self._strangers: dict[str, int] = {}
        self._late: list[Pod] = []
        self._rules = random.random() < 0.25
        self._gangs = random.choice((0.0, 0.3, 0.7))
        some = random.sample(range(len(POD_KINDS)), 5) if random.random() < 0.5 else FRACTIONS
        self._pod_kinds = [what for i in some for what in [POD_KINDS[i][0]] * POD_KINDS[i][1]]
        self._build()
        if random.random() < 0.15 and self._empty.dev_id:
            self._strangers[random.choice(self._empty.dev_id)] = random.choice((300, 1000, 1300))
        if random.random() < 0.3:
            self._scatter()

    def _scatter(self) -> None:
        """Fractions run already, as those leave them that have ended: one on every other GPU."""
        random, c = self._random, self._empty
        for d, device in enumerate(c.dev_id):
            if random.random() < 0.5 or device in self._strangers:
                continue
            milli, name = random.choice((300, 500)), f"s{d}"
            pod = Pod(name, random.choice(sorted(self.projects)), pod_shape(milli))
            if self._rules:
                self.who[name] = PEERS[0]
            devices = (DeviceAllocation(0, device, milli, milli * c.dev_usable_mib[d] // 1000),)
            self.running[pod.uid] = pod, self._running_pod(pod, device.split("/")[0], devices)

    def _build(self) -> None:
        """The empty cluster, as its nodes are at present."""
        builder = ClusterBuilder()
        for n, each in enumerate(self._machines):
            builder.node(
                f"n{n}",
                models=each.models,
                labels={ZONE: each.zone},
                taints=each.taints,
                unschedulable=each.unschedulable,
                cpu_milli=each.cpu_milli,
                pods=each.pods,
                unhealthy=each.sick,
            )
        self._empty = builder.obj()
        self._empty.catalogue = self._catalogue

    def cluster(self) -> Cluster:
        """What is free now; a stranger may have taken what was given out."""
        c = self._empty.copy()
        devices = {device: d for d, device in enumerate(c.dev_id)}
        numbers = {node.name: n for n, node in enumerate(c.nodes)}
        c.held_by_model = {}
        for _, running_pod in self.running.values():
            name, node = running_pod.project, numbers[running_pod.node]
            c.free_cpu_milli[node] -= running_pod.cpu_milli
            c.free_memory_bytes[node] -= running_pod.memory_bytes
            c.free_pods[node] -= 1
            c.allocated_milli[name] = c.allocated_milli.get(name, 0) + running_pod.milli
            for allocated in running_pod.devices:
                d = devices[allocated.device]
                c.free_device(d, -allocated.fraction_milli, -allocated.mib)
                key = name, c.dev_model[d]
                c.held_by_model[key] = c.held_by_model.get(key, 0) + allocated.milli
        for device, milli in self._strangers.items():
            c.free_milli[devices[device]] -= milli
        if self._rules:
            c.placed_pods = self._standing()
        return c

    def _standing(self) -> Standing:
        found = Standing()
        for uid, (pod, running_pod) in self.running.items():
            found.on(running_pod.node, self.who[pod.name], ending=uid in self.going, uid=uid)
        return found

    def jobs(self) -> list[WaitingJob]:
        """What waits, with what each pod avoids and who it is to others."""
        found = []
        for job in super().jobs():
            pods = tuple(self._told(pod) for pod in job.pods)
            ruled = any(pod.affinity is not None and pod.affinity.rules is not None for pod in pods)
            found.append(replace(job, pods=pods, ruled=ruled))
        return found

    def _told(self, pod: WaitingPod) -> WaitingPod:
        avoid = self.avoided.get(pod.name, frozenset())
        return replace(pod, avoid=avoid, affinity=self.who.get(pod.name))

    def _gang(self, pods: list[Pod]) -> Gang | None:
        """As in ``Play``, but that some of its members may run already."""
        gang, first = super()._gang(pods), pods[0]
        if gang is None:
            return None
        mates = [running_pod for pod, running_pod in self.running.values() if pod.key == first.key]
        nodes = frozenset(mate.node for mate in mates)
        devices = frozenset(allocated.device for mate in mates for allocated in mate.devices)
        missing = max(1, first.size - len(mates))
        return replace(gang, missing=missing, nodes=nodes, devices=devices)

    def _running_pod(
        self, pod: Pod, node: str, devices: tuple[DeviceAllocation, ...]
    ) -> RunningPod:  # type: ignore[override]
        found = super()._running_pod(pod, node, devices)
        moved = self.moved.get(pod.name, 0.0)  # type: ignore[call-overload]
        return replace(found, moved=moved, spared=pod.name in self.spared)

    def plans(self, most: int) -> Iterator[Plan]:
        """So many plans, each with what has happened since the one before."""
        random = self._random
        for _ in range(most):
            self.grace = random.randint(1, 3)
            self._change()
            self._arrive()
            result = self.plan()
            yield result
            self.carry_out(self._as_it_went(result))
            self.tick(random.choice((0.0, 1.0, 5.0, 20.0)))

    def _as_it_went(self, result: Plan) -> Plan:
        """A pod in twelve does not start, and avoids the node; who moved is known as such."""
        for evict in result.evicts:
            if evict.reason is EvictReason.CONSOLIDATE:
                self.moved[self.running[evict.pod][0].name] = self.now  # type: ignore[index]
        if self._random.random() < 0.92 or not result.assignments:
            return result
        failed, waiting = self._random.choice(result.assignments), {p.uid: p for p in self.waiting}
        if not waiting[failed.pod].gang:
            name = waiting[failed.pod].name
            self.avoided[name] = self.avoided.get(name, frozenset()) | {failed.node}
            return replace(
                result, assignments=tuple(p for p in result.assignments if p is not failed)
            )
        return result

    def _change(self) -> None:
        """Now and then a node closes or opens, a GPU falls ill or a member of a gang is lost."""
        random = self._random
        what = random.choice(("", "", "", "", "", "close", "sick", "member", "end", "end"))
        machine = random.choice(self._machines)
        if what == "close":
            machine.unschedulable = "" if machine.unschedulable else "is cordoned"
            self._build()
        elif what == "sick" and machine.models:
            machine.sick ^= {random.randrange(len(machine.models))}
            self._build()
        elif what == "end" and self.waiting:
            key = random.choice(self.waiting).key
            self.waiting = [pod for pod in self.waiting if pod.key != key]
        elif what == "member":
            members = [uid for uid, (pod, _) in self.running.items() if pod.gang]
            if members and (uid := random.choice(members)) not in self.going:
                pod = self.running.pop(uid)[0]
                self.waiting.append(replace(pod, again=pod.again + 1, since=self.now))

    def _arrive(self) -> None:
        """New jobs as long as there are few, and the last member of one that came in part."""
        random = self._random
        self.wait(*self._late)
        self._late = []
        for _ in range(random.choice((0, 1, 2, 2, 4))):
            if len(self.waiting) < 30:
                pods = self._job()
                if pods[0].gang and len(pods) > 1 and random.random() < 0.1:
                    self._late.append(pods.pop())
                self.wait(*pods)

    def _job(self) -> list[Pod]:
        random, self._jobs = self._random, self._jobs + 1
        names = [*sorted(self.projects)] * 8 + ["nobody"]
        name, gang = f"j{self._jobs}", random.random() < self._gangs
        count = random.randint(2, 5) if gang else random.choice((1, 1, 1, 2, 3, 6))
        seconds = [random.choice((None, 10, 30, 60, 200)) for _ in range(count)]
        about = {
            "project": random.choice(names),
            "interactive": random.random() < 0.15,
            "priority": random.choice(PRIORITIES),
            "created": self.now,
            "limit": random.random() < 0.4,
        }
        first = self._pod_shape()
        pod_shapes = [first] * count
        if gang:
            topology = random.choice((None, None, Topology(ZONE), Topology(ZONE, required=False)))
            about |= {"gang": name, "size": count, "distinct": random.random() < 0.7}
            about |= {"topology": topology}
            seconds = seconds[:1] * count
            pod_shapes = random.choice((pod_shapes, [first, *[self._pod_shape()] * (count - 1)]))
        else:
            about["job"] = name
        who, spared = random.choice(PEERS), random.random() < 0.05
        for i in range(count):
            if self._rules:
                self.who[f"{name}-{i}"] = who
            if spared:
                self.spared.add(f"{name}-{i}")
        found = zip(pod_shapes, seconds, strict=True)
        return [
            Pod(f"{name}-{i}", pod_shape=w, seconds=s, **about) for i, (w, s) in enumerate(found)
        ]  # type: ignore[arg-type]

    def _pod_shape(self) -> PodShape:
        found = self._random.choice(self._pod_kinds)
        if self._random.random() < 0.15:
            return replace(found, where=self._random.choice(WHERES))
        return found


def _machine(random: Random) -> _Machine:
    count = random.choice((0, 1, 2, 2, 4, 4, 8))
    models = (random.choice((A100, A100, A100, A30, T4)),) * count
    if random.random() < 0.25:
        models = tuple(random.choice((A100, A30, T4)) for _ in range(count))
    return _Machine(
        models,
        random.choice(("z0", "z1")),
        random.choice(((), (), (), (), (), (DEDICATED,))),
        random.choice((16_000, 64_000, 128_000)),
        random.choice((6, 110, 110)),
    )


def _team(random: Random, name: str) -> Project:
    found = project(
        name,
        random.choice((0, 0, 2000, 4000, 8000, 16_000)),
        random.choice((None, None, None, 5000)),
        random.choice((0, 1, 1, 2)),
    )
    by_model = {"a100": random.choice((0, 500, 2000)), "a30": random.choice((1000, 4000))}
    if random.random() < 0.3:
        some = random.choice((["a100"], ["a30"], ["a100", "a30"]))
        return replace(found, quota_by_model={model: by_model[model] for model in some})
    return found
