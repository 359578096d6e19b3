"""Every countable resource counts: nobody goes where the kubelet refuses, none waits that fits.

Random nodes with some of twelve kinds of resources, pods of others on them, resized ones too, and
pods that wait. What a pod needs is counted once more, after Kubernetes' own rules
(``tests.pod_needs``); of what is resized, the larger of what is asked, allocated and there.
"""

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from tests.pod_needs import need_of
from tests.unit.builders import job, project, projects

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import DeviceRequest, PodUID, WaitingJob
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.objects import Node, Pod
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.nodes.ledger import Charge, Ledger
from gpu_scheduler.state.nodes.node import info
from gpu_scheduler.state.pods.pod_shape import pod_resources, pod_shape_of

OTHERS = (
    *("hugepages-2Mi", "hugepages-1Gi", "rdma/hca", "vpc.amazonaws.com/efa", "intel.com/sriov"),
    *(f"example.com/{name}" for name in "abcd"),
)
KINDS = ("cpu", "memory", "ephemeral-storage", *OTHERS)
OF_PODS = ("cpu", "memory", "hugepages-2Mi", "hugepages-1Gi")  # that may be asked pod by pod
SEEDS, CHUNK, NODES, RUNNING, WAITING = 120, 30, 4, 8, 14
Amounts = dict[str, int]
Json = dict[str, Any]


def amounts(random: Random, kinds: tuple[str, ...] = KINDS, most: int = 4) -> Amounts:
    chosen = random.sample(kinds, random.choice((0, 1, 2, min(5, len(kinds)))))
    return {kind: random.randrange(1, most) for kind in chosen}


def written(found: Amounts) -> dict[str, str]:
    return {kind: str(amount) for kind, amount in found.items()}


class Made:
    """A pod, and what it needs by our own count."""

    def __init__(self, random: Random, name: str, *, running: bool) -> None:
        self.infeasible = running and random.random() < 0.2
        self._random, self._running = random, running
        self._statuses: list[Json] = []
        spec = self._spec()
        conditions = [{"type": "PodResizePending", "reason": "Infeasible", "status": "True"}]
        status: Json = {"containerStatuses": self._statuses, "phase": "Running"}
        if self.infeasible:
            status["conditions"] = conditions
        level = self._level(spec, status)
        self.need = need_of(
            KINDS,
            [(need, sidecar) for _, need, sidecar in self._inits],
            [need for _, need in self._mains],
            overhead=self._overhead,
            level=level,
        )
        body = {"metadata": {"name": name, "namespace": "x"}, "spec": spec, "status": status}
        self.pod = msgspec.json.decode(msgspec.json.encode(body), type=Pod)

    def _container(self, name: str, *, resizable: bool = True) -> tuple[Json, Amounts]:
        asked = amounts(self._random)
        body: Json = {"name": name, "resources": {"requests": written(asked)}}
        if not (self._running and resizable) or self._random.random() < 0.5:
            return body, asked
        allocated, there = amounts(self._random), amounts(self._random)
        resources = {"requests": written(there)}
        self._statuses.append(
            {"name": name, "allocatedResources": written(allocated), "resources": resources}
        )
        return body, self._larger(asked, allocated, there)

    def _larger(self, asked: Amounts, *others: Amounts) -> Amounts:
        others = tuple(each for each in others if each and each != asked)
        if not others or not self.infeasible:
            others = (asked, *others)
        return {kind: max(each.get(kind, 0) for each in others) for kind in KINDS}

    def _spec(self) -> Json:
        sidecars = [self._random.random() < 0.5 for _ in range(self._random.choice((0, 0, 1, 3)))]
        self._inits = [
            (*self._container(f"i{n}", resizable=sidecar), sidecar)
            for n, sidecar in enumerate(sidecars)
        ]
        self._mains = [self._container(f"c{n}") for n in range(self._random.choice((1, 2)))]
        self._overhead = amounts(self._random) if self._random.random() < 0.2 else {}
        return {
            "initContainers": [
                body | ({"restartPolicy": "Always"} if sidecar else {})
                for body, _, sidecar in self._inits
            ],
            "containers": [body for body, _ in self._mains],
            "overhead": written(self._overhead),
        }

    def _level(self, spec: Json, status: Json) -> Amounts:
        if self._random.random() < 0.8:
            return {}
        asked = amounts(self._random, OF_PODS)
        spec["resources"] = {"requests": written(asked)}
        if not self._running or self._random.random() < 0.5:
            return asked
        allocated = {kind: self._random.randrange(1, 5) for kind in asked}
        status["allocatedResources"] = written(allocated)
        larger = self._larger(asked, allocated)
        return {kind: larger[kind] for kind in asked}


def node_of(random: Random, name: str) -> tuple[Node, Amounts]:
    has = {kind: random.randrange(1, 25) for kind in KINDS[:3]}
    has |= {kind: random.randrange(1, 12) for kind in random.sample(OTHERS, random.randrange(9))}
    has["pods"] = random.choice((3, 20))
    body = {
        "metadata": {"name": name},
        "status": {
            "allocatable": written(has),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(body, Node), has


def fits(need: Counter[str], free: Counter[str]) -> bool:
    return free["pods"] >= 1 and all(
        free[kind] >= amount for kind, amount in need.items() if amount
    )


def one(seed: int) -> tuple[int, int]:
    """How many pods start and how many wait; each is where it fits, and none waits that does."""
    random, ledger = Random(seed), Ledger()
    free: dict[str, Counter[str]] = {}
    for n in range(NODES):
        node, has = node_of(random, f"n{n}")
        ledger.set_node(info(node), (NodeDevice("0", 0, "A100", 40960),))
        free[f"n{n}"] = Counter(has)
    for n in range(RUNNING):
        made, name = Made(random, f"r{n}", running=True), f"n{random.randrange(NODES)}"
        ledger.charge_pod(PodUID(f"r{n}"), Charge(name, "x", pod_resources(made.pod)))
        free[name].subtract(made.need)
        free[name]["pods"] -= 1
    waiting = {f"ns/w{n}": Made(random, f"w{n}", running=False) for n in range(WAITING)}
    result = plan(PlanInput(ledger.cluster, projects(project("team-a", 99_000)), jobs_of(waiting)))
    gpus = Counter({f"n{n}": 1000 for n in range(NODES)})
    for place in result.assignments:
        take(place, waiting, free, gpus)
    placed = {place.job for place in result.assignments}
    for key, made in waiting.items():
        for name in free if key not in placed else ():
            assert gpus[name] < 20 or not fits(made.need, free[name]), (seed, key, name)
    return len(placed), len(waiting) - len(placed)


def jobs_of(waiting: dict[str, Made]) -> list[WaitingJob]:
    ask = (DeviceRequest(0, 1, 20),)
    shapes = {key: pod_shape_of(made.pod, ask, (), (0, 0)) for key, made in waiting.items()}
    return [job(key.removeprefix("ns/"), shape) for key, shape in shapes.items()]


def take(
    place: Assignment,
    waiting: dict[str, Made],
    free: dict[str, Counter[str]],
    gpus: Counter[str],
) -> None:
    need = waiting[place.job].need
    assert fits(need, free[place.node]), (place, need - free[place.node])
    free[place.node].subtract(need)
    free[place.node]["pods"] -= 1
    gpus[place.node] -= 20


@pytest.mark.parametrize("number", range(SEEDS // CHUNK))
def test_pods_go_where_all_that_they_ask_for_is_free(number: int) -> None:
    found = [one(seed) for seed in range(number * CHUNK, (number + 1) * CHUNK)]
    started, left = map(sum, zip(*found, strict=True))
    assert min(started, left) > WAITING  # both are seen
