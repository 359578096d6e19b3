"""Whatever a tenant writes, and however often: what the operator keeps of it has few bytes."""

import gc
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from tests.unit.generated.holding import held_bytes
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.api import names
from gpu_scheduler.kube.paths import JOBS, NODES, PODS

MANY = range(3)  # objects of each kind of load
WITHOUT, WITH = "nobody", "team"  # namespaces: of no project, and of one
PER_OBJECT = 10 << 10  # bytes, on average, while it is there; 600 KB of one load are above that
REST = 512 << 10  # what may stay, of twenty times as much, with what a first use leaves


def text(seed: int, size: int) -> str:
    return (f"{seed:08d}" * (size // 8 + 1))[:size]


def pod(index: int, namespace: str, *, labels: Any = None, notes: Any = None, **spec: Any) -> Obj:
    name = f"pod-{index}"
    container = {"name": "main", "image": "x", **spec.pop("container", {})}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels or {},
            "annotations": notes or {},
        },
        "spec": {"schedulerName": names.SCHEDULER_NAME, "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def with_template(index: int, namespace: str, **pod: Any) -> Obj:
    spec = {"containers": [{"name": "main", "image": "x", **pod.pop("container", {})}], **pod}
    job = gpujob(f"job-{index}", namespace, gpu=0.5, template={"spec": spec})
    del job["spec"]["image"]
    return job


def selecting(index: int, size: int) -> Obj:
    values = [f"{index}-{number}" for number in range(size // 12)]
    wanted = [{"key": "a", "operator": "In", "values": values}]
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": wanted}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


LARGE = 250_000  # characters of annotations, below what the API server takes of all of them
Made = Callable[[int, str], Obj]
LOADS: dict[str, tuple[str, Made]] = {
    "asked": (PODS, lambda i, ns: pod(i, ns, notes={names.ASKED: text(i, LARGE)})),
    "asked many times": (
        PODS,
        lambda i, ns: pod(i, ns, notes={names.ASKED: f"0:a={i};" * (LARGE // 8)}),
    ),
    "models": (
        PODS,
        lambda i, ns: pod(
            i,
            ns,
            notes={names.ASKED: "0:gpu-scheduler.io/gpu=0.5", names.ASK_MODELS: text(i, LARGE)},
        ),
    ),
    "allocation": (
        PODS,
        lambda i, ns: pod(
            i, ns, notes={names.ALLOCATION: f'{{"v":1,"n":"{text(i, LARGE)}","c":{{}}}}'}
        ),
    ),
    "hparams": (
        PODS,
        lambda i, ns: (
            pod(i, ns, notes={names.TRIAL: "0", names.HPARAMS: text(i, LARGE)})
            | {"status": {"phase": "Running"}}
        ),
    ),
    "annotations of others": (
        PODS,
        lambda i, ns: pod(
            i, ns, notes={"a": text(i, LARGE), names.ASKED: "0:gpu-scheduler.io/gpu=0.5"}
        ),
    ),
    "labels": (
        PODS,
        lambda i, ns: pod(i, ns, labels={f"{k}-{text(i, 50)}": "x" for k in range(9999)}),
    ),
    "arguments of a pod": (
        PODS,
        lambda i, ns: pod(i, ns, container={"args": [text(i, 1_000_000)]}),
    ),
    "anti-affinity of a pod": (PODS, lambda i, ns: pod(i, ns, affinity=selecting(i, 500_000))),
    "anti-affinity of a pod that runs": (
        PODS,
        lambda i, ns: pod(i, ns, affinity=selecting(i, 500_000), nodeName="one"),
    ),
    "device plugin": (
        PODS,
        lambda i, ns: pod(
            i,
            ns,
            container={
                "resources": {"limits": {f"nvidia.com/mig-{i}-{n}": "1" for n in range(20_000)}}
            },
        ),
    ),
    "quantity": (
        PODS,
        lambda i, ns: pod(
            i, ns, container={"resources": {"requests": {"cpu": text(i + 1, 1_000_000)}}}
        ),
    ),
    "a gate of others": (
        PODS,
        lambda i, ns: pod(i, ns, schedulingGates=[{"name": text(i, 300_000)}]),
    ),
    "arguments": (
        f"{ROOT}/gpujobs",
        lambda i, ns: gpujob(f"job-{i}", ns, gpu=0.5, args=[text(i, 900_000)]),
    ),
    "arguments of a template": (
        f"{ROOT}/gpujobs",
        lambda i, ns: with_template(i, ns, container={"args": [text(i, 900_000)]}),
    ),
    "elements": (f"{ROOT}/gpujobs", lambda i, ns: with_template(i, ns, foo=[{}] * 40_000, bar=i)),
    "labels of a job": (
        f"{ROOT}/gpujobs",
        lambda i, ns: _labelled(gpujob(f"job-{i}", ns, gpu=0.5), i),
    ),
    "a wrong number": (
        f"{ROOT}/gpujobs",
        lambda i, ns: gpujob(f"job-{i}", ns, gpu=text(i, 200_000)),
    ),
    "a model": (
        f"{ROOT}/gpujobs",
        lambda i, ns: gpujob(f"job-{i}", ns, gpu=0.5, gpuModels=[text(i, 200_000)]),
    ),
    "a Job of nobody's": (JOBS, lambda i, ns: _job(i, ns)),
}


def _labelled(job: Obj, index: int) -> Obj:
    job["metadata"] |= {
        "labels": {f"{k}-{text(index, 50)}": "x" for k in range(9999)},
        "finalizers": [f"{k}/{text(index, 50)}" for k in range(9999)],
        "annotations": {"a": text(index, LARGE)},
    }
    return job


def _job(index: int, namespace: str) -> Obj:
    owner = {"kind": "GPUJob", "name": "job", "uid": "no-such", "controller": True}
    moves = {f"{names.MOVED_PREFIX}{n}": "2026-01-01T00:00:00+00:00 uid" for n in range(3000)}
    return {
        "metadata": {
            "name": f"job-{index}",
            "namespace": namespace,
            "uid": f"uid-{namespace}-{index}",
            "labels": {names.LABEL_JOB: "job"},
            "ownerReferences": [owner],
            "annotations": moves,
        },
        "spec": {"completions": 100_000, "parallelism": 0},
    }


def place(collection: str, obj: Obj) -> str:
    root, plural = collection.rsplit("/", 1)
    return f"{root}/namespaces/{obj['metadata']['namespace']}/{plural}/{obj['metadata']['name']}"


async def stage() -> Stage:
    made = Stage()
    made.server.put(f"{NODES}/one", node("one", 2))
    made.server.put(f"{ROOT}/gpuprojects/{WITH}", gpuproject(WITH, [WITH], quota=2))
    await made.lead(Random(0))
    return made


def held(stage: Stage) -> int:
    gc.collect()
    return held_bytes([stage.operator], without=[stage.server, stage])


def played(namespace: str, loads: Iterable[str]) -> tuple[int, int]:
    """Bytes for each object of some loads while it is there, and of all of them afterwards."""
    found = 0, 0

    @virtual
    async def run() -> None:
        nonlocal found
        on = await stage()
        some = [(n, *LOADS[each]) for n, each in enumerate(loads)]
        objects = [(where, make(100 * n + i, namespace)) for n, where, make in some for i in MANY]
        before = held(on)
        for collection, obj in objects:
            on.server.put(place(collection, obj), obj)
        await on.passes(1)
        there = held(on) - before
        for collection, obj in objects:
            on.server.remove(place(collection, obj))
        await on.passes(1)
        found = there // len(objects), held(on) - before
        await on.end()

    run()
    return found


def too_many(found: tuple[int, int]) -> bool:
    return found[0] > PER_OBJECT or found[1] > REST


@pytest.mark.long
@pytest.mark.parametrize("namespace", [WITHOUT, WITH])
def test_what_a_tenant_writes_sets_no_size_here(namespace: str) -> None:
    if too_many(found := played(namespace, LOADS)):
        each = {load: played(namespace, [load]) for load in LOADS}
        worst = dict(sorted(each.items(), key=lambda load: -max(load[1]))[:5])
        raise AssertionError(
            f"bytes for each while it is there, and of all later: {found}, {worst}"
        )
