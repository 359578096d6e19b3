"""How fast the planner plans: prints a table, or one JSON object with ``--json``.

``python -m tests.perf.bench_planner [--repeat N]``, or the part ``planner`` of ``make bench``. No
cluster is needed; each figure is CPU time of one process on one core. A planner keeps a session
between cycles, as the operator does: ``first`` is its first cycle, ``next`` the median of N more
on the same cluster, every one planned in full.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.perf.long_queue import LongQueue
from tests.perf.replay.arrivals import arriving, in_random_order
from tests.perf.replay.run import FillPlayer
from tests.perf.replay.trace import read_nodes, read_pods
from tests.perf.report import planner
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.affinity.builders import affinity, apart, spread

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.affinity import AffinityRules
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Waits
from gpu_scheduler.core.model.preemption_policy import FAIR, NOTHING
from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, PodShape, WaitingJob
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

TRACE = Path(__file__).resolve().parents[1] / "fixtures" / "traces" / "openb"
PROJECTS = projects(*(project(f"team-{i}", 10_000_000) for i in range(10)))
GIB = 1 << 30
CYCLES = 50  # incremental ones
LEAST_FOLLOWED = 20  # cycles of a long queue


@dataclass(slots=True)
class Scene:
    """A cluster and jobs; ``change`` alters the cluster before cycle ``n``."""

    cluster: Cluster
    jobs: list[WaitingJob]
    change: Callable[[Cluster, int], None] = lambda cluster, n: None
    cycles: int = 0  # 0 = as many as are asked for


def cluster(nodes: int) -> Cluster:
    """Nodes with 8 GPUs each, all free."""
    builder = ClusterBuilder()
    for i in range(nodes):
        builder.node(f"node-{i}", 8)
    return builder.obj()


def mixed_pod_kinds() -> list[PodShape]:
    """Ten pod shapes: fractions, whole GPUs, memory, several GPUs and several containers."""
    pair = [DeviceRequest(0, 1, 500), DeviceRequest(1, 1, 200)]
    return [
        pod_shape(500),
        pod_shape(300, cpu_milli=1000, memory_bytes=4 * GIB),
        pod_shape(125),
        pod_shape(200, models=("a100",)),
        pod_shape(1000),
        pod_shape(1000, count=2),
        pod_shape(mib=10_240),
        pod_shape(250, count=2),
        pod_shape(containers=pair),
        pod_shape(700, min_compute=(7, 0)),
    ]


def one_job() -> Scene:
    """800 pods of 0.5 in one job on 100 nodes."""
    return Scene(cluster(100), [job("halves", pod_shape(500), 800, project="team-0")])


def mixed(nodes: int) -> Scene:
    """10,000 pods of ten pod shapes in 50 jobs of 10 projects."""
    pod_shapes = mixed_pod_kinds()
    jobs = [
        job(f"job-{i}", pod_shapes[i % 10], 200, project=f"team-{i * 7 % 10}", created=i)
        for i in range(50)
    ]
    return Scene(cluster(nodes), jobs)


def without_mib(scene: Scene) -> Scene:
    """The same with an eighth of a GPU for who asks in MiB."""
    return each_pod_shape(scene, lambda _, kind: pod_shape(125) if kind.devices[0].mib else kind)


def in_mib(scene: Scene) -> Scene:
    """The same with MiB for every second of the jobs with one fraction."""
    sizes = (2_000, 5_000, 9_999, 24_576, 40_000)

    def change(i: int, kind: PodShape) -> PodShape:
        first, *others = kind.devices
        lone = not others and first.count == 1 and first.milli < 1000
        return pod_shape(mib=sizes[i % 5]) if lone and i // 10 % 2 else kind

    return each_pod_shape(scene, change)


def used(nodes: int) -> Scene:
    """The same jobs on nodes of which no two are in the same state."""
    scene = mixed(nodes)
    state, random = scene.cluster, Random(1)
    for device, usable in enumerate(state.dev_usable_mib):
        free = random.choice([0, 1000, random.randrange(1000)])
        state.free_milli[device], state.free_mib[device] = free, free * usable // 1000
    return scene


def sized(scene: Scene) -> Scene:
    """The same with 16 to 128 cores and 64 to 1,024 GiB, other ones on each node."""
    state, random = scene.cluster, Random(2)
    for n, node in enumerate(state.nodes):
        cpu, memory = random.randrange(16_000, 128_000), random.randrange(64 * GIB, 1024 * GIB)
        state.nodes[n] = replace(node, cpu_milli=cpu, memory_bytes=memory)
        state.free_cpu_milli[n], state.free_memory_bytes[n] = cpu, memory
    return scene


def labelled(scene: Scene) -> Scene:
    """The same with a zone and a disk on each node, which two of three jobs select."""
    random = Random(3)
    for n, node in enumerate(scene.cluster.nodes):
        labels = {"zone": f"z{random.randrange(5)}", "disk": random.choice(["ssd", "hdd"])}
        scene.cluster.nodes[n] = replace(node, labels={**node.labels, **labels})
    wishes = [(), (("disk", "ssd"),), (("zone", "z1"),)]
    return each_pod_shape(
        scene, lambda i, kind: replace(kind, where=NodeFilter(selector=wishes[i // 10 % 3]))
    )


def with_cpu(scene: Scene) -> Scene:
    """The same with 2 to 6.5 cores for each pod: CPU runs out before GPUs do."""
    return each_pod_shape(scene, lambda i, kind: replace(kind, cpu_milli=2000 + 500 * (i % 10)))


def each_pod_shape(scene: Scene, change: Callable[[int, PodShape], PodShape]) -> Scene:
    """The same with another pod shape for each job, by its number."""
    for i, one in enumerate(scene.jobs):
        pod_shape = change(i, one.pods[0].pod_shape)
        scene.jobs[i] = replace(
            one, pods=tuple(replace(pod, pod_shape=pod_shape) for pod in one.pods)
        )
    return scene


def saturated(nodes: int) -> Scene:
    """Nothing is free; 5,000 pods in 500 jobs wait."""
    full = cluster(nodes)
    full.free_milli = [50] * len(full.free_milli)
    full.free_mib = [u * 50 // 1000 for u in full.dev_usable_mib]
    pod_shapes = mixed_pod_kinds()
    jobs = [
        job(f"job-{i}", pod_shapes[i % 10], 10, project=f"team-{i % 9}", created=i)
        for i in range(500)
    ]
    return Scene(full, jobs)


def one_ended(nodes: int) -> Scene:
    """One pod has ended somewhere, one waits and takes its place."""
    full = saturated(nodes).cluster

    def change(state: Cluster, n: int) -> None:
        before, device = 37 * (n - 1) % len(state.free_milli), 37 * n % len(state.free_milli)
        for at, free in ((before, 50), (device, 1000)):
            state.free_milli[at] = free
            state.free_mib[at] = free * state.dev_usable_mib[at] // 1000

    return Scene(full, [job("one", pod_shape(500), 1, project="team-0")], change, CYCLES)


def ruled(jobs: int, pods: int, rules: Callable[[str], AffinityRules]) -> Scene:
    """Jobs of pods that have rules about each other, on 1,000 nodes."""
    made = []
    for i in range(jobs):
        one, app = (
            job(f"job-{i}", pod_shape(250), pods, project=f"team-{i % 10}", created=i),
            f"a{i}",
        )
        who = affinity(rules(app), app=app)
        each = tuple(replace(pod, affinity=who) for pod in one.pods)
        made.append(replace(one, pods=each, ruled=True))
    return Scene(cluster(1_000), made)


SCENES: dict[str, Callable[[], Scene]] = {
    "800 pods of 0.5, one job, 100 nodes": one_job,
    "10,000 pods, 10 shapes, 50 jobs, 1,000 nodes": lambda: mixed(1_000),
    "10,000 pods, 10 shapes, 50 jobs, 10,000 nodes": lambda: mixed(10_000),
    "the same, every node in another state": lambda: used(10_000),
    "the same, every node of another size": lambda: sized(mixed(10_000)),
    "the same, other labels, which jobs select": lambda: labelled(mixed(10_000)),
    "the same, other states, sizes and labels": lambda: labelled(sized(used(10_000))),
    "the same, and CPU is scarce": lambda: with_cpu(labelled(sized(used(10_000)))),
    "other sizes, all free, and CPU is scarce": lambda: with_cpu(sized(mixed(10_000))),
    "10,000 pods, 9 shapes without MiB, 1,000 nodes": lambda: without_mib(mixed(1_000)),
    "10,000 pods, half of the fractions in MiB, 1,000 nodes": lambda: in_mib(mixed(1_000)),
    "the same, every node in another state, 10,000 nodes": lambda: in_mib(used(10_000)),
    "saturated: 5,000 pods, 500 jobs, 1,000 nodes": lambda: saturated(1_000),
    "saturated: 5,000 pods, 500 jobs, 10,000 nodes": lambda: saturated(10_000),
    "one pod ended, one waits, 10,000 nodes": lambda: one_ended(10_000),
    "1,000 jobs of 5 pods that keep apart, 1,000 nodes": lambda: ruled(
        1_000, 5, lambda app: apart(app=app)
    ),
    "50 jobs of 200 pods level over 1,000 hosts": lambda: ruled(
        50, 200, lambda app: spread(app=app)
    ),
}

QUEUES: dict[str, Callable[[], LongQueue]] = {
    "160 GPUs full, 5,000 jobs wait, 1 project": lambda: LongQueue(5_000, 1),
    "160 GPUs full, 5,000 jobs wait, 5 projects": lambda: LongQueue(5_000, 5),
    "160 GPUs full, 50,000 jobs wait, 1 project": lambda: LongQueue(50_000, 1),
    "160 GPUs full, 50,000 jobs wait, 5 projects": lambda: LongQueue(50_000, 5),
    "the same, five times as much quota: room is kept": lambda: LongQueue(
        50_000, 5, quota_milli=800_000
    ),
    "160 GPUs full, 1,000 jobs of 200 pods wait, 5 projects": lambda: LongQueue(1_000, 5, 200),
}


def measure(make: Callable[[], Scene], repeat: int) -> dict[str, float]:
    """CPU milliseconds of the first cycle and of the next ones, and what was decided.

    With the promises that the operator gives by default.
    """
    scene, session, memory = make(), PlannerCache(), NOTHING
    seconds, result = [], Plan((), Waits())
    gc.set_threshold(50_000, 20, 100)  # as the operator has it
    gc.collect()
    gc.freeze()
    for n in range(1 + (scene.cycles or repeat)):
        scene.change(scene.cluster, n)
        start = time.process_time()
        result = plan(
            PlanInput(
                scene.cluster,
                PROJECTS,
                scene.jobs,
                now=float(n),
                preemption_policy=FAIR,
                memory=memory,
            ),
            session,
        )
        seconds.append(time.process_time() - start)
        memory = result.memory
    gc.unfreeze()
    return _told(seconds, result)


def follow(make: Callable[[], LongQueue], repeat: int) -> dict[str, float]:
    """The same of a queue of which a few start in each cycle."""
    queue, session, seconds = make(), PlannerCache(), []
    gc.set_threshold(50_000, 20, 100)  # as the operator has it
    gc.collect()
    gc.freeze()
    for _ in range(1 + repeat):
        queue.plan(session)
        seconds.append(queue.seconds)
        queue.go_on()
    gc.unfreeze()
    return _told(seconds, queue.last)


def _told(seconds: Sequence[float], result: Plan) -> dict[str, float]:
    median = statistics.median(seconds[1:])
    return {
        "first_ms": round(seconds[0] * 1000, 1),
        "next_ms": round(median * 1000, 1),
        "least_ms": round(min(seconds[1:]) * 1000, 1),
        "most_ms": round(max(seconds[1:]) * 1000, 1),
        "placed": len(result.assignments),
        "waiting_jobs": len(result.waits),
        "pods_per_second": round(len(result.assignments) / median),
    }


def one_by_one(packing: Packing) -> dict[str, float]:
    """Placements one at a time: the default openb trace on its 1,213 nodes, seed 42."""
    nodes = read_nodes(TRACE / "openb_node_list_gpu_node.csv.xz")
    pods = read_pods(TRACE / "openb_pod_list_default.csv.xz")
    random = Random(42)
    player = FillPlayer(in_random_order(nodes, random), pods, packing)
    capacity = sum(node.gpus for node in nodes) * 1000
    gc.collect()
    gc.freeze()
    steps = player.fill(arriving(pods, capacity, 1.3, random), lambda: None)
    gc.unfreeze()
    each = sorted(step.nanoseconds / 1e6 for step in steps)
    return {
        "placements_per_second": round(1000 * len(each) / sum(each)),
        "p50_ms": round(each[len(each) // 2], 3),
        "p99_ms": round(each[len(each) * 99 // 100], 3),
    }


def figures(repeat: int) -> dict[str, Any]:
    """Everything, as JSON."""
    return {
        "cycles": {name: measure(make, repeat) for name, make in SCENES.items()}
        | {name: follow(make, max(repeat, LEAST_FOLLOWED)) for name, make in QUEUES.items()},
        "openb": {str(p): one_by_one(p) for p in (Packing.FRAGMENTATION, Packing.BEST_FIT)},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every scene."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_planner", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = figures(options.repeat)
    print(json.dumps(found, indent=2) if options.json else planner(found))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
