"""Histories of work among which some can never start, for reasons that are only seen later.

Two projects share four GPUs: one has a quota for all of them, the other borrows. Jobs and pods of
Deployments come and end at random, and beside them some that can never start: what they name is not
there, kube-scheduler does not bind them, kubelets turn them away, or nobody makes their pods. Their
owners delete them and make them again, and leaders change. ``rounds`` counts how often somebody was
evicted for one of these. One seed is one history.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random
from typing import Any

import orjson
from tests.unit.generated import controllers
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import ENDED, Place, Server
from tests.unit.generated.shares import template
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import clock

from gpu_scheduler.core.model.decision import Evict
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.operator import Operator

PODS = "/api/v1/pods"
DOOM = "doom"  # a label: why it can never start
NOTHING_THERE = ("claim", "resource-claim")  # what they name can be looked up: nobody goes
UNBOUND = ("silent", "unschedulable")
ON_NODES = ("rejected", "config", "program")
NOT_MADE = ("pods", "job", "binding")
KINDS = (*NOTHING_THERE, *UNBOUND, *ON_NODES, *NOT_MADE)
IN_DEPLOYMENTS = (*UNBOUND, "rejected", "config")
FIRST = "90"  # their priority: none of them is itself evicted for somebody before it has failed
MOVES = 14
_QUIET_SECONDS = 150
_SEEN_SECONDS = 45  # after an eviction, until it is known that it was in vain
SHORT = SETTINGS.model_copy(
    update={
        "guarantee_seconds": 2.0,
        "patience_seconds": 2.0,
        "min_runtime_seconds": 1.0,
        "share_window_seconds": 10.0,
        "recheck_seconds": 5.0,
        "reservation_after_seconds": 86_400.0,  # nobody has room reserved
    }
)
_GATED = {"ports": [{"containerPort": 8080, "hostPort": 8080}]}  # kube-scheduler binds it


class Unwilling(Server):
    """A cluster in which what carries the label never starts."""

    def _read(self, place: Place, params: Any) -> bytes:
        if place.name and place.key not in self.objects:
            details = {"name": place.name, "kind": place.plural}
            body = {"code": 404, "reason": "NotFound", "message": "none", "details": details}
            raise errors.from_answer(404, orjson.dumps(body))
        return super()._read(place, params)

    def _take(self, method: str, place: Place, sent: Obj) -> Obj:
        refused = place.subresource == "binding" and doom(self.objects.get(place.key)) == "binding"
        makes_job = method == "POST" and place.plural == "jobs"
        if refused or (makes_job and doom(sent["spec"]["template"]) == "job"):
            body = {"code": 403, "reason": "Forbidden", "message": "a policy says no"}
            raise errors.from_answer(403, orjson.dumps(body))
        return super()._take(method, place, sent)

    def _ungated(self, path: str) -> None:
        """kube-scheduler: of what it cannot bind it says so, or nothing at all."""
        found = self.objects.get(_key(path)) if "/pods/" in path else None
        kind = doom(found)
        if found is None or kind not in (*NOTHING_THERE, *UNBOUND):
            return super()._ungated(path)
        status = found["status"]
        said = [c for c in status.get("conditions", ()) if c.get("reason") == "Unschedulable"]
        gone = found["spec"].get("schedulingGates")
        if gone or said or kind in ("silent", "resource-claim"):
            return None
        no = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        no["message"] = f"0/2 nodes are available: {kind}"
        return self.put(path, {**found, "status": {**status, "conditions": [no]}})


def doom(obj: Obj | None) -> str:
    """Why it never starts; empty: it does."""
    return str(((obj or {}).get("metadata", {}).get("labels") or {}).get(DOOM, ""))


def kubelet(server: Server, pod: Obj) -> None:
    """A pod that has a node starts, if it can."""
    kind = doom(pod)
    if kind not in ON_NODES or not pod["spec"].get("nodeName"):
        return controllers.kubelet(server, pod)
    status, meta = pod["status"], pod["metadata"]
    if status["phase"] in ENDED or status.get("containerStatuses"):
        return None
    after: Obj = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices"}
    if kind == "config":
        waiting = {"reason": "CreateContainerConfigError", "message": 'secret "key" not found'}
        each = {"name": "main", "state": {"waiting": waiting}}
        after = {"startTime": "", "containerStatuses": [each]}
    elif kind == "program":
        ended = {"reason": "StartError", "exitCode": 128, "message": "exec: no such file"}
        each = {"name": "main", "state": {"terminated": ended}}
        after = {"phase": "Failed", "containerStatuses": [each]}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
    return server.put(path, {**pod, "status": {**status, **after}})


def _key(path: str) -> tuple[str, str, str]:
    _, _, _, _, namespace, _, name = path.split("/")[:7]
    return PODS, namespace, name


class InVain:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.server, self.stage = Unwilling(), Stage(settings=SHORT)
        self.stage.use(self.server)
        self.stage.round = lambda server: controllers.round_of(
            server, makes=lambda job: doom(job["spec"]["template"]) != "pods", node=kubelet
        )
        self.stage.prepared = self._watch
        for name in "ab":
            self.server.put(f"/api/v1/nodes/{name}", node(name, 2))
        more = {"weight": 1, "startTimeoutSeconds": 8}
        for name, quota in (("owed", 4), ("guest", 0)):
            self.server.put(
                f"{ROOT}/gpuprojects/{name}", gpuproject(name, [name], quota=quota, **more)
            )
        self.rounds: defaultdict[str, set[float]] = defaultdict(set)
        self.evicted: Counter[str] = Counter()
        self.plans = 0
        self.doomed: dict[str, Obj] = {}
        # Who makes a job again when the leader has changed is known by no object.
        self._leads = self.random.random() < 0.4
        self._number = 0

    def _watch(self, operator: Operator) -> None:
        carry_out, cycle = operator.eviction.preemption.carry_out, operator.planning.cycle

        def counted(evicts: Iterable[Evict]) -> None:
            evicts = list(evicts)
            for evict in evicts:
                name = self._owner(evict.beneficiary)
                self.evicted[doom(self.doomed.get(name)) or "sound"] += 1
                if name in self.doomed:
                    self.rounds[name].add(clock())
            carry_out(evicts)

        def planned() -> int:
            self.plans += 1
            return cycle()

        operator.eviction.preemption.carry_out = counted  # type: ignore[method-assign]
        operator.planning.cycle = planned  # type: ignore[method-assign]

    def _owner(self, key: str) -> str:
        """The GPUJob, or the Deployment of a pod."""
        name = key.partition("/")[2].removeprefix("pod ")
        return next((each for each in self.doomed if name.startswith(f"{each}-")), name)

    async def play(self) -> None:
        """From the beginning to the end."""
        await self.stage.lead(self.random)
        try:
            for _ in range(4):
                self._sound("guest")
            await self._passes(5)
            for _ in range(MOVES):
                await self._move()
            await self._quiet()
        finally:
            await self.stage.end()

    async def _quiet(self) -> None:
        """Work goes on for long enough that whoever is tried again is."""
        for _ in range(_QUIET_SECONDS // 10):
            self._finish()
            self._sound(self.random.choice(("owed", "guest", "guest")))
            await self._passes(10)

    async def _move(self) -> None:
        random = self.random
        what = random.choice(("sound", "finish", "doomed", "doomed", "doomed", "again", "lead"))
        if what == "sound":
            self._sound(random.choice(("owed", "guest", "guest", "guest")))
        elif what == "finish":
            self._finish()
        elif what == "doomed":
            self._sound("guest")
            await self._passes(5)
            self._doomed()
        elif what == "again" and not self._leads:
            self._again()
        elif what == "lead" and self._leads:
            await self.stage.lead(random)
        await self._passes(random.choice((2, 8, 20, 40)))

    async def _passes(self, seconds: int) -> None:
        """Time passes, in which kubelets look around every second or so."""
        for _ in range(-(-seconds // 5)):
            await self.stage.passes(min(seconds, 5))
            self.check()

    def _sound(self, project: str) -> None:
        self._number += 1
        spec = {
            "gpu": self.random.choice((0.5, 1, 1)),
            "parallelism": self.random.randint(1, 2),
            "priority": self.random.choice((50, 50, 10)),
        }
        self._submit(project, gpujob(f"job-{self._number}", project, **spec))

    def _doomed(self) -> None:
        random, kind = self.random, self.random.choice(KINDS)
        self._number += 1
        if kind in IN_DEPLOYMENTS and not self._leads and random.random() < 0.3:
            name = f"web-{self._number}"
            notes = {"type": "training", "priority": FIRST}
            made = template("1", controlled=kind in ON_NODES, labels={DOOM: kind}, **notes)
            self.doomed[name] = made
            return self.stage.scale("owed", name, 1, made)
        name, container = f"never-{self._number}", {"name": "main", "image": "registry/x:1"}
        pod: Obj = {"containers": [container]}
        if kind == "claim":
            pod["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
        elif kind == "resource-claim":
            pod["resourceClaims"] = [{"name": "c", "resourceClaimName": "none"}]
        elif kind in UNBOUND:
            container |= _GATED
        spec: Obj = {"gpu": random.choice((0.5, 1)), "priority": int(FIRST)}
        spec["template"] = {"metadata": {"labels": {DOOM: kind}}, "spec": pod}
        if random.random() < 0.2:
            spec |= {"parallelism": 2, "gang": True}
        made = gpujob(name, "owed", **spec)
        del made["spec"]["image"]
        self.doomed[name] = {**made, "metadata": {**made["metadata"], "labels": {DOOM: kind}}}
        return self._submit("owed", made)

    def _again(self) -> None:
        """An owner has seen that a job does not start, deletes it and makes it again."""
        before = clock() - _SEEN_SECONDS
        jobs = [name for name in self.doomed if name.startswith("never-")]
        jobs = [name for name in jobs if max(self.rounds[name], default=0.0) < before]
        if not jobs:
            return
        name = self.random.choice(jobs)
        self.server.remove(f"{ROOT}/namespaces/owed/gpujobs/{name}")
        self._submit("owed", self.doomed[name])

    def _submit(self, project: str, made: Obj) -> None:
        path = f"{ROOT}/namespaces/{project}/gpujobs/{made['metadata']['name']}"
        self.server.put(path, made)

    def _finish(self) -> None:
        running = [p for p in self.server.of(PODS) if p["status"]["phase"] == "Running"]
        if running:
            controllers.finish(self.server, self.random.choice(running))

    def check(self) -> None:
        """Nobody is evicted twice for what never starts, nor where that can be looked up."""
        for name, rounds in self.rounds.items():
            kind = doom(self.doomed[name])
            most = 0 if kind in NOTHING_THERE else 1
            assert len(rounds) <= most, f"{name} ({kind}): evictions at {sorted(rounds)}"
