"""How fast the planner plans: prints one JSON object.

Run with ``python tests/perf/bench_planner.py [--repeat N]``. No cluster is needed; each figure is
the median CPU time of N runs, in one process and on one core.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "operator")]

from tests.unit.builders import ClusterBuilder, job, project, projects, shape  # noqa: E402

from gpu_scheduler.core.cluster import Cluster  # noqa: E402
from gpu_scheduler.core.decision import Plan  # noqa: E402
from gpu_scheduler.core.plan import plan  # noqa: E402
from gpu_scheduler.core.request import DeviceRequest, Shape, WaitingJob  # noqa: E402

PROJECTS = projects(*(project(f"team-{i}", 10_000_000) for i in range(10)))
GIB = 1 << 30


def cluster(nodes: int) -> Cluster:
    """Nodes with 8 GPUs each, all free."""
    builder = ClusterBuilder()
    for i in range(nodes):
        builder.node(f"node-{i}", 8)
    return builder.obj()


def mixed_shapes() -> list[Shape]:
    """Ten shapes: fractions, whole GPUs, memory, several GPUs and several containers."""
    pair = [DeviceRequest(0, 1, 500), DeviceRequest(1, 1, 200)]
    return [
        shape(500),
        shape(300, cpu_milli=1000, memory_bytes=4 * GIB),
        shape(125),
        shape(200, models=("a100",)),
        shape(1000),
        shape(1000, count=2),
        shape(mib=10_240),
        shape(250, count=2),
        shape(containers=pair),
        shape(700, min_compute=(7, 0)),
    ]


def one_job() -> tuple[Cluster, list[WaitingJob]]:
    """800 pods of 0.5 in one job on 100 nodes."""
    return cluster(100), [job("halves", shape(500), 800, project="team-0")]


def mixed(nodes: int) -> tuple[Cluster, list[WaitingJob]]:
    """10,000 pods of ten shapes in 50 jobs of 10 projects."""
    shapes = mixed_shapes()
    jobs = [
        job(f"job-{i}", shapes[i % 10], 200, project=f"team-{i * 7 % 10}", created=i)
        for i in range(50)
    ]
    return cluster(nodes), jobs


def saturated(nodes: int) -> tuple[Cluster, list[WaitingJob]]:
    """Nothing is free; 5,000 pods in 500 jobs wait."""
    full = cluster(nodes)
    full.free_milli = [50] * len(full.free_milli)
    full.free_mib = [u * 50 // 1000 for u in full.dev_usable_mib]
    shapes = mixed_shapes()
    jobs = [
        job(f"job-{i}", shapes[i % 10], 10, project=f"team-{i % 9}", created=i) for i in range(500)
    ]
    return full, jobs


def one_more(nodes: int) -> tuple[Cluster, list[WaitingJob]]:
    """One pod waits, one place is free."""
    full, _ = saturated(nodes)
    full.free_milli[5] = 1000
    full.free_mib[5] = full.dev_usable_mib[5]
    return full, [job("one", shape(500), 1, project="team-0")]


SCENES: dict[str, Callable[[], tuple[Cluster, list[WaitingJob]]]] = {
    "800 pods of 0.5, one job, 100 nodes": one_job,
    "10,000 pods, 10 shapes, 50 jobs, 1,000 nodes": lambda: mixed(1_000),
    "10,000 pods, 10 shapes, 50 jobs, 10,000 nodes": lambda: mixed(10_000),
    "saturated: 5,000 pods, 500 jobs, 1,000 nodes": lambda: saturated(1_000),
    "saturated: 5,000 pods, 500 jobs, 10,000 nodes": lambda: saturated(10_000),
    "one pod, one free GPU, 10,000 nodes": lambda: one_more(10_000),
}


def measure(scene: Callable[[], tuple[Cluster, list[WaitingJob]]], repeat: int) -> dict[str, float]:
    """Median CPU seconds of one cycle, and what it decided."""
    state, jobs = scene()
    gc.collect()
    gc.freeze()
    seconds = []
    result = Plan((), ())
    for _ in range(repeat):
        start = time.process_time()
        result = plan(state, PROJECTS, jobs)
        seconds.append(time.process_time() - start)
    gc.unfreeze()
    median = statistics.median(seconds)
    return {
        "cycle_ms": round(median * 1000, 2),
        "placed": len(result.places),
        "waiting_jobs": len(result.waits),
        "pods_per_second": round(len(result.places) / median),
    }


def main() -> None:
    """Measure every scene."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    figures = {name: measure(scene, repeat) for name, scene in SCENES.items()}
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    print(json.dumps({"settings": {"repeat": repeat, **machine}, "planner": figures}, indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
