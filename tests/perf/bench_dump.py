"""What a dump costs the operator: ``python -m tests.perf.bench_dump [NODES [PODS]]``.

A leader's state with so many nodes of 8 GPUs and so many pods on each, all of them known to rules
about other pods, and as many waiting jobs as nodes; no cluster is needed. Prints how long the
socket takes to answer, how large the answer is, and how long the event loop stood still meanwhile,
beside what it does by itself.
"""

import asyncio
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.affinity.builders import affinity, apart

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import Dump, dump_of
from gpu_scheduler.state.affinity.placed_pods import PlacedPodStore
from gpu_scheduler.state.queue.running_pods import RunningPodStore
from gpu_scheduler.web.dump_socket import DumpSocket

LABELS = {f"feature.node.kubernetes.io/cpu-{n}": "true" for n in range(20)}
PROJECT = ProjectName("team")
RINGS_SECONDS = 0.001


def made(nodes: int, pods_each: int) -> PlanInput:
    """What the planner would be given."""
    builder, pods = ClusterBuilder(), RunningPodStore()
    store = PlacedPodStore(lambda namespace: PROJECT)
    for n in range(nodes):
        builder.node(f"n{n}", 8, labels=LABELS)
        for g in range(pods_each):
            name, device = f"p{n}-{g}", f"n{n}/{g % 8}"
            devices = (DeviceAllocation(0, device, 500, 20_224),)
            key = JobKey(f"ns/j{n}")
            shape = pod_shape(500)
            pods.put(
                RunningPod(PodUID(name), name, key, PROJECT, f"n{n}", devices, pod_shape=shape)
            )
            rules = apart(app=f"a{n}") if g == 0 else None
            store.put(PodUID(name), affinity(rules, app=f"a{n}"), f"n{n}", ending=False)
    cluster = builder.obj()
    cluster.free_milli = [0] * len(cluster.free_milli)
    cluster.placed_pods = store
    jobs = [job(f"w{n}", pod_shape(500), 2) for n in range(nodes)]
    return PlanInput(cluster, projects(project("team", 1000)), jobs, pods)


async def measure(nodes: int, pods_each: int) -> None:
    """Measure and print."""
    given, workload, copied = made(nodes, pods_each), PlannerCache().workload, list[float]()
    gc.set_threshold(50_000, 20, 100)  # as the operator has it
    gc.collect()
    gc.freeze()

    def dump() -> Dump:
        started = time.thread_time()
        found = dump_of(given, workload)
        copied.append(time.thread_time() - started)
        return found

    stalls = [0.0]

    async def ring() -> None:
        while True:
            due = time.perf_counter() + RINGS_SECONDS
            await asyncio.sleep(RINGS_SECONDS)
            stalls.append(time.perf_counter() - due)

    ringing = asyncio.create_task(ring())
    await asyncio.sleep(2)
    alone = max(stalls)
    stalls.clear()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.sock"
        socket = DumpSocket(str(path), dump)
        await socket.start()
        env = {"GPUSCHED_DUMP_SOCKET": str(path), "PYTHONPATH": ":".join(sys.path)}
        command = (sys.executable, "-m", "gpu_scheduler.web.read_dump")
        started = time.perf_counter()
        out = os.open(Path(folder) / "dump.json", os.O_WRONLY | os.O_CREAT)
        reading = await asyncio.create_subprocess_exec(*command, env=env, stdout=out)
        os.close(out)
        await reading.wait()
        took = time.perf_counter() - started
        size = (Path(folder) / "dump.json").stat().st_size
        await socket.cleanup()
    ringing.cancel()
    sys.stdout.write(
        f"{nodes:,} nodes, {nodes * pods_each:,} pods on them, {nodes:,} jobs: {took:.2f} s, "
        f"{size / 1e6:.0f} MB; the loop stood still for {1000 * max(stalls):.0f} ms at most "
        f"({1000 * max(copied):.0f} ms of CPU for the copy; by itself {1000 * alone:.0f} ms)\n"
    )


if __name__ == "__main__":
    uvloop.run(measure(*map(int, (sys.argv[1:] + ["10000", "8"][len(sys.argv) - 1 :]))))
