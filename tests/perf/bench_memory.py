"""What the operator keeps in memory: ``make bench-memory``, for the budget in docs/owners.md.

Puts GPUJobs that wait, pods that run, nodes and projects before the real operator, on an API server
in memory and in virtual time, and counts the bytes that can be reached from it; memory of the
process is some fifth more. Each kind is counted by itself, and so are their sums; numbers are
linear in the counts, which OPTIONS set.
"""

import argparse
import gc
import resource
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.perf.install import say
from tests.unit.generated.holding import held_bytes
from tests.unit.generated.nodes import USABLE_MIB, node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.kube.paths import NODES
from gpu_scheduler.runtime.informers import spec_room

GPUS = 8  # of a node
PER_GPU = 4  # pods


def projects(count: int) -> Iterator[tuple[str, Obj]]:
    """A project for each namespace."""
    for number in range(count):
        name = f"team-{number}"
        yield f"{ROOT}/gpuprojects/{name}", gpuproject(name, [name], quota=1)


def nodes(pods: int) -> Iterator[tuple[str, Obj]]:
    """As many as the pods take."""
    for number in range(-(-pods // (GPUS * PER_GPU))):
        yield f"{NODES}/node-{number}", node(f"node-{number}", GPUS)


def jobs(count: int, namespaces: int) -> Iterator[tuple[str, Obj]]:
    """GPUJobs that wait, each with arguments and variables of its own."""
    for number in range(count):
        namespace, name = f"team-{number % namespaces}", f"train-{number}"
        env = [{"name": f"PARAMETER_{i}", "value": f"{number}-{i}"} for i in range(10)]
        args = ["python", "train.py", f"--seed={number}", "--epochs=100"]
        job = gpujob(name, namespace, gpu=1, gpuModels=["H100"], args=args, env=env)
        yield f"{ROOT}/namespaces/{namespace}/gpujobs/{name}", job


def pods(count: int, namespaces: int) -> Iterator[tuple[str, Obj]]:
    """Pods that run, each with a quarter of a GPU."""
    for number in range(count):
        namespace, name = f"team-{number % namespaces}", f"web-{number}-abcde"
        gpu = number // PER_GPU
        device = DeviceAllocation(0, str(gpu % GPUS), 1000 // PER_GPU, USABLE_MIB // PER_GPU)
        on = f"node-{gpu // GPUS}"
        yield f"/api/v1/namespaces/{namespace}/pods/{name}", _pod(name, namespace, on, device)


def _pod(name: str, namespace: str, on: str, device: DeviceAllocation) -> Obj:
    asked = {names.ASKED: f"0:{names.ASK_GPU}=0.25"}
    owner = {"kind": "ReplicaSet", "name": "web-1", "uid": f"rs-{namespace}", "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"6d1f2a3b-0000-0000-0000-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "1", names.LABEL_SHARE: "true"},
            "annotations": {**asked, **annotations(on, [device])},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            "nodeName": on,
            "containers": [{"name": "main", "image": "registry/web:1"}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    }


def worst(count: int) -> Iterator[tuple[str, Obj]]:
    """What the worst tenant says: all that is kept of one namespace."""
    for number in range(count):
        name, text = f"large-{number}", (f"{number:08d}" * 30_000)[:200_000]
        job = gpujob(name, "team-0", gpu=1, gpuModels=["H100"], args=[text])
        yield f"{ROOT}/namespaces/team-0/gpujobs/{name}", job


def measure(options: Any) -> None:
    """Print what each kind takes."""

    @virtual
    async def run() -> None:
        stage = Stage()
        stage.round = lambda server: None
        await stage.lead(Random(0))
        spaces = options.namespaces
        kinds = {
            "namespaces with a project": [*projects(spaces)],
            "nodes": [*nodes(options.pods)],
            "pods that run": [*pods(options.pods, spaces)],
            "GPUJobs that wait": [*jobs(options.jobs, spaces)],
            "GPUJobs of 200 KB in one namespace": [*worst(options.large)],
        }
        before = first = _held(stage)
        for kind, objects in kinds.items():
            for path, obj in objects:
                stage.server.put(path, obj)
            await stage.passes(options.seconds)
            now = _held(stage)
            each = (now - before) / max(1, len(objects))
            say(f"{kind}: {len(objects)}, {each / 1024:.1f} KiB each, {_mib(now - before)} MiB")
            before = now
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        say(f"in all: {_mib(before - first)} MiB beside {_mib(first)} MiB of the operator alone")
        say(f"a namespace has room for {spec_room.MOST_BYTES >> 20} MiB of specs")
        say(f"peak of this process, with its API server: {peak:.0f} MiB")
        await stage.end()

    run()


def _held(stage: Stage) -> int:
    gc.collect()
    return held_bytes([stage.operator], without=[stage.server, stage])


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--namespaces", type=int, default=500)
    parser.add_argument("--large", type=int, default=400, help="GPUJobs of 200 KB, one namespace")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="of virtual time, for each kind"
    )
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
