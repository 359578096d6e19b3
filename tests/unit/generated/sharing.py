"""Histories of projects that share GPUs, whose work is GPUJobs, Deployments, gangs and bare pods.

Two projects with quotas and one that only borrows ask for more than there is. Deployments scale,
jobs come and end, disruption budgets say no, and the leader is killed in the middle of writes that
place and evict. ``Judge`` counts by itself who holds what, and says who got or lost a device that
must not. One seed is one history.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from zlib import crc32

from tests.unit.generated import controllers
from tests.unit.generated.deadly import Deadly
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import ENDED, path_of, place_of
from tests.unit.generated.shares import (
    GANG_SIZE,
    LACKS,
    PARTS,
    member,
    pod_group,
    ring,
    template,
    without,
)
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import clock

from gpu_scheduler.api.names import (
    ALLOCATION,
    ASK_GPU,
    ASK_TYPE,
    CONDITION_DISRUPTION,
    LABEL_GANG,
    LABEL_JOB,
    LABEL_SHARE,
)
from gpu_scheduler.core.model.decision import Evict, EvictReason, ReservationReason
from gpu_scheduler.core.model.units import milli_from_gpu
from gpu_scheduler.kube.paths import POD_GROUPS
from gpu_scheduler.runtime.operator import Operator

QUOTAS, LIMITS = {"lab": 2000, "shop": 2000, "guest": 0}, {"shop": 3000}
NODES, GPUS = ("a", "b"), 2  # quotas are no more than there is
FAULTS = ("", "", "conflict", "busy", "broken", "lost")
MOVES = 12
PODS = "/api/v1/pods"
SHORT = SETTINGS.model_copy(
    update={
        "guarantee_seconds": 2.0,
        "patience_seconds": 2.0,
        "min_runtime_seconds": 5.0,
        "share_window_seconds": 10.0,
        "reservation_after_seconds": 86_400.0,  # nobody has room reserved
    }
)
BUDGET_SECONDS = 40.0  # a budget is asked for three quarters of a minute, and a write may fail


def moves_a_pod(method: str, path: str, body: bytes) -> bool:
    """Whether a write places a pod or takes it off its node."""
    placing = "/pods/" in path and ALLOCATION.encode() in body
    return placing or path.endswith("/eviction")


@dataclass(frozen=True)
class Deployment:
    """Pods of one kind that a project has, as many as it wants just now."""

    project: str
    name: str
    template: Obj


class Judge:
    """Who holds what, by the writes that the server took; what is wrong with a decision."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.server = stage, stage.server
        self.refusing: set[str] = set()  # namespaces: their disruption budgets say no
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self._decided: set[str] = set()  # uids of pods that are to go for others
        self._first_no: dict[str, float] = {}  # by uid of a pod that was asked to go
        server = stage.server
        self._gets, server.gets = server.gets, self.gets
        server.may_go, server.deletes = self.may_go, self.deletes
        stage.prepared = self.watch

    def watch(self, operator: Operator) -> None:
        """Judge what a leader decides, before it carries that out."""
        carry_out = operator.eviction.preemption.carry_out

        def judged(evicts: Iterable[Evict]) -> None:
            self.decides(list(evicts))
            carry_out(evicts)

        operator.eviction.preemption.carry_out = judged  # type: ignore[method-assign]

    def milli(self, pod: Obj) -> int:
        """What a pod holds."""
        return sum(allocated.milli for allocated in self.server.held_by(pod)[1])

    def pods(self, project: str) -> list[Obj]:
        """The pods of a project."""
        return [p for p in self.server.of(PODS) if p["metadata"]["namespace"] == project]

    def held(self, project: str) -> int:
        """What a project holds."""
        return sum(map(self.milli, self.pods(project)))

    def gets(self, pod: Obj) -> None:
        """A pod gets devices: no device, and no project, may be above its limit then."""
        self._gets(pod)
        name = pod["metadata"]["namespace"]
        if self.held(name) > LIMITS.get(name, 1 << 40):
            self._blame(pod, "is above the limit of its project")

    def decides(self, evicts: Sequence[Evict]) -> None:
        """Pods are to go for others: interactive ones, and for another project, from no quota."""
        going = {*self.stage.operator.state.pods.leaving, *(evict.pod for evict in evicts)}
        by_uid = {pod["metadata"]["uid"]: pod for pod in self.server.of(PODS)}
        for evict in evicts:
            self.counts[evict.reason] += 1
            self._decided.add(evict.pod)
            pod = by_uid.get(evict.pod)
            if pod is None:
                continue  # it is gone, and the operator has not heard of it
            name = pod["metadata"]["namespace"]
            staying = [p for uid, p in by_uid.items() if uid not in going]
            staying = [p for p in staying if p["metadata"]["namespace"] == name]
            left = self._under_way(name)
            if self.interactive(pod):
                left += sum(self.milli(p) for p in staying if self.interactive(p))
            elif evict.reason is EvictReason.RECLAIM:
                left += sum(map(self.milli, staying)) + self._promised(name)
            else:
                continue
            if left < QUOTAS[name]:
                self._blame(pod, f"is inside its quota; left are {left}: {evict.message}")

    def may_go(self, pod: Obj) -> bool:
        """A pod is asked to go: for others, or since another of its gang could not be placed."""
        meta = pod["metadata"]
        if meta["uid"] not in self._decided and not _gang(pod):
            self._blame(pod, "goes for nobody")
        if meta["namespace"] in self.refusing:
            self._first_no.setdefault(meta["uid"], clock())
            self.counts["refused"] += 1
            return False
        self.counts["evicted"] += 1
        return True

    def deletes(self, pod: Obj) -> None:
        """A pod is deleted: only after its budget said no for long, and not as its own failure."""
        asked = self._first_no.get(pod["metadata"]["uid"])
        if asked is None or clock() - asked < BUDGET_SECONDS:
            self._blame(pod, "is deleted and not evicted")
        marks = (c["type"] for c in pod["status"].get("conditions", ()) if c["status"] == "True")
        if CONDITION_DISRUPTION not in marks:
            self._blame(pod, "is deleted without a mark")
        name = pod["metadata"]["namespace"]
        if self.milli(pod) and self.held(name) <= QUOTAS[name]:
            self._blame(pod, "is deleted though its project borrows nothing")
        self.counts["overruled"] += 1

    def interactive(self, pod: Obj) -> bool:
        """Whether a pod is not taken from inside its project's quota."""
        meta = pod["metadata"]
        if LABEL_SHARE in meta["labels"]:
            return bool(meta["annotations"].get(ASK_TYPE) != "training")
        key = (f"{ROOT}/gpujobs", meta["namespace"], meta["labels"][LABEL_JOB])
        return bool(self.server.objects[key]["spec"].get("type") == "interactive")

    def _under_way(self, project: str) -> int:
        """What the operator has given to a project by writes that are not answered yet."""
        return sum(
            sum(allocated.milli for allocated in place.devices)
            for uid, place in self.stage.operator.state.decisions.assumed.items()
            if uid not in self.server.granted and place.job.startswith(f"{project}/")
        )

    def _promised(self, project: str) -> int:
        """What a project gets once those have gone who were asked for it."""
        return sum(
            sum(allocated.milli for allocated in hold.devices)
            for hold in self.stage.operator.common.plan.reservations.values()
            if hold.reason is ReservationReason.FREED and hold.job.startswith(f"{project}/")
        )

    def _blame(self, pod: Obj, what: str) -> None:
        meta = pod["metadata"]
        self.wrong.append(f"{meta['namespace']}/{meta['name']} {what}")


class Sharing:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.calm = False  # no write goes wrong any more
        faults = random.choices(FAULTS, k=4)

        def fault(path: str, tries: int) -> str:
            due = tries == 1 and not self.calm
            return faults[crc32(path.encode()) % len(faults)] if due else ""

        self.stage = Stage(settings=SHORT)
        self.server = Deadly(moves_a_pod, fault)
        self.stage.use(self.server)
        self.judge = Judge(self.stage)
        for name in NODES:
            self.server.put(f"/api/v1/nodes/{name}", node(name, GPUS))
        for name, quota in QUOTAS.items():
            limit = {"limit": LIMITS[name] / 1000} if name in LIMITS else {}
            body = gpuproject(name, [name], quota=quota / 1000, weight=1, **limit)
            self.server.put(f"{ROOT}/gpuprojects/{name}", body)
        self.deployments = [
            Deployment(name, kind, self._template(kind))
            for name in QUOTAS
            for kind in ("web", "batch")
        ]
        self._jobs = 0

    def _template(self, kind: str) -> Obj:
        notes = {"type": "training"} if kind == "batch" else {}
        if self.random.random() < 0.3:
            notes["priority"] = self.random.choice(("10", "90"))
        gpu = self.random.choice(("0.25", "0.5", "1"))
        return template(gpu, controlled=True, labels={"app": kind}, **notes)

    async def play(self) -> None:
        """From the beginning to the end."""
        await self.stage.lead(self.random)
        try:
            for _ in range(MOVES):
                await self._move()
                self.check()
            self.calm = True
            self.judge.refusing.clear()
            await self.stage.passes(60)
            self.check()
            self.check_quiet()
            await self._end()
        finally:
            await self.stage.end()

    async def _move(self) -> None:
        random, project = self.random, self.random.choice(sorted(QUOTAS))
        what = random.choice(
            ("scale", "scale", "scale", "ring", "group", "bare", "job", "over", "budget")
        )
        if random.random() < 0.3:
            self.server.armed, self.server.takes_it = True, random.random() < 0.5
        if what == "scale":
            each = random.choice(self.deployments)
            self._scale(each, random.randint(0, 4))
        elif what == "ring":
            made = ring(random.choice(("0.5", "1")), controlled=True)
            self.stage.scale(project, "ring", random.choice((0, GANG_SIZE)), made)
        elif what == "group":
            self._group(project)
        elif what == "bare":
            self._bare(project)
        elif what == "job":
            self._submit(project)
        elif what == "over":
            self._job_ends(project)
        elif what == "budget":
            self.judge.refusing ^= {project}
        await self.stage.passes(random.choice((0.5, 2, 8, 30)))
        self.server.armed = False
        if self.server.struck.is_set() or random.random() < 0.1:
            self.server.struck.clear()
            await self.stage.lead(random)

    def _scale(self, each: Deployment, replicas: int) -> None:
        self.stage.scale(each.project, each.name, replicas, each.template)

    def _group(self, project: str) -> None:
        """Pods of a PodGroup, as many as start together, one more, or none."""
        body = pod_group("own", project, {"gang": {"minCount": GANG_SIZE}})
        self.server.put(path_of((POD_GROUPS["v1"], project, "own")), body)
        made = member(self.random.choice(("0.5", "1")), controlled=True, group="own")
        self.stage.scale(project, "group", self.random.choice((0, GANG_SIZE, GANG_SIZE + 1)), made)

    def _bare(self, project: str) -> None:
        """A pod that no controller makes; half of them lack a part of their form."""
        made, name = template("0.25", controlled=False), "bare"
        if self.random.random() < 0.5:
            made, name = without(self.random.choice(sorted(PARTS)), made), "lacking"
        path = path_of((PODS, project, name))
        if (PODS, project, name) in self.server.objects:
            self.server.remove(path)
        else:
            made["metadata"]["name"] = name
            self.server.make(PODS, project, {**made, "status": {"phase": "Pending"}})

    def _submit(self, project: str) -> None:
        self._jobs += 1
        name, random = f"job-{self._jobs}", self.random
        spec = {
            "gpu": random.choice((0.25, 0.5, 1)),
            "parallelism": random.randint(1, 3),
            "priority": random.choice((50, 50, 10, 90)),
            "type": random.choice(("training", "training", "interactive")),
        }
        body = gpujob(name, project, **spec)
        self.server.put(f"{ROOT}/namespaces/{project}/gpujobs/{name}", body)

    def _job_ends(self, project: str) -> None:
        """A pod of a job ends well, or a job is deleted."""
        pods = self.stage.pods(project, shares=False)
        running = [p for p in pods if p["status"]["phase"] == "Running"]
        if running and self.random.random() < 0.7:
            controllers.finish(self.server, self.random.choice(running))
        elif jobs := self._gpujobs(project):
            self.server.remove(self.random.choice(jobs))

    def _gpujobs(self, project: str) -> list[str]:
        found = self.server.of(f"{ROOT}/gpujobs")
        names = (
            job["metadata"]["name"] for job in found if job["metadata"]["namespace"] == project
        )
        return [f"{ROOT}/namespaces/{project}/gpujobs/{name}" for name in names]

    # --- what must hold ---

    def check(self) -> None:
        """At every step."""
        assert not self.judge.wrong, self.judge.wrong

    def check_quiet(self) -> None:
        """Once nothing happens any more: who is inside its quota has a place if there is room."""
        assert not self.stage.unexplained()
        for project in QUOTAS:
            waiting = [p for p in self.stage.pods(project, shares=True) if not _placed(p)]
            silent = [p["metadata"]["name"] for p in waiting if not _told(p)]
            assert not silent, f"{project}: {silent} wait and do not say why"
            gangs = Counter(name for p in self.judge.pods(project) if (name := _gang(p)))
            begun = Counter(
                name for p in self.judge.pods(project) if _placed(p) and (name := _gang(p))
            )
            assert all(GANG_SIZE <= n for n in begun.values()), f"{project}: half of a gang"
            asked = [_asked(p) for p in waiting if LACKS not in p["metadata"]["labels"]]
            jobs = list(map(self._asked_by_job, self._gpujobs(project)))
            if self.judge.held(project) + sum(asked) + sum(jobs) > QUOTAS[project]:
                continue
            held = self.server.held_milli()
            free = [1000 - held[name, self.gpu(n)] for name in NODES for n in range(GPUS)]
            fits = [milli for milli in asked if milli <= max(free)]
            assert not fits or gangs, f"{project}: {fits} wait beside {free}"

    def gpu(self, index: int) -> str:
        """What a GPU of a node is called: as its labels have it."""
        return str(index)

    def _asked_by_job(self, path: str) -> int:
        """What a GPUJob may still want, at most."""
        job = self.server.objects[place_of(path).key]
        if (job.get("status") or {}).get("phase") in ENDED:
            return 0
        return int(1000 * job["spec"]["gpu"]) * int(job["spec"]["parallelism"])

    async def _end(self) -> None:
        """What is left fits wherever the rest of it is, and gets its place."""
        for project in QUOTAS:
            for path in self._gpujobs(project):
                self.server.remove(path)
            for name in ("ring", "group"):
                self.stage.scale(project, name, 0, {})
            for name in ("bare", "lacking"):
                self.server.remove(path_of((PODS, project, name)))
        for each in self.deployments:
            self._scale(each, int(each.name == "web"))
        await self.stage.passes(20)
        self.check()
        for project in QUOTAS:
            (pod,) = self.judge.pods(project)
            assert _placed(pod), pod["status"]
        charges = self.stage.charges()
        await self.stage.lead(self.random)
        assert self.stage.charges() == charges


def _placed(pod: Obj) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _gang(pod: Obj) -> str:
    """The gang of a pod; empty: it is alone."""
    group = pod["spec"].get("schedulingGroup") or {}
    return str(pod["metadata"]["labels"].get(LABEL_GANG) or group.get("podGroupName") or "")


def _asked(pod: Obj) -> int:
    return milli_from_gpu(pod["metadata"]["annotations"][ASK_GPU])


def _told(pod: Obj) -> bool:
    """Whether a pod says why it waits."""
    found = (c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled")
    return any(c["status"] == "False" and c["reason"] and c["message"] for c in found)
