"""What the operator needs at 10,000 pods: CPU and memory, placing them, idle, and restarted.

Everything runs on the bind path with raised client limits. The restart is a polite one: the Lease
is handed back, so what is measured is the start of the process, the election and the lists, and
not the wait for a dead leader's Lease (up to 15 s with the settings as they come).
"""

import asyncio
import time
from dataclasses import asdict

from tests.perf import writes
from tests.perf.install import gpu_nodes, pids, say
from tests.perf.procfs import cpu_seconds, memory
from tests.perf.schedulers import OPERATOR, start_operator
from tests.perf.throughput import Bench
from tests.perf.workload import gpu_job

_BOUND_SECONDS = 600.0
_KUBELETS_SECONDS = 300.0
_LOOK_SECONDS = 5.0
_GPU = "0.125"


async def measure(bench: Bench) -> dict[str, object]:
    """Load the large state and look at the operator's process."""
    sizes = bench.sizes
    more = sizes.scale_nodes - sizes.nodes
    await asyncio.to_thread(bench.running.add_nodes, gpu_nodes(more, prefix="more"))
    await start_operator(bench.running, {})
    empty = memory(_pid(bench))
    pods = sizes.scale_jobs * sizes.scale_pods_per_job
    say(f"  {pods} pods on {sizes.scale_nodes} nodes, {sizes.scale_jobs} GPUJobs of {_GPU} GPU")
    cpu, began = cpu_seconds(_pid(bench)), time.monotonic()
    names = []
    for number in range(sizes.scale_jobs):
        names.append(f"scale-{number}")
        path, body = gpu_job(names[-1], sizes.scale_pods_per_job, _GPU)
        await bench.client.create(path, body)
    for number, name in enumerate(names, start=1):
        await bench.watch.until_bound(name, sizes.scale_pods_per_job, _BOUND_SECONDS)
        if number % 5 == 0:
            say(f"  {number} of {len(names)} GPUJobs placed")
    seconds, placing = time.monotonic() - began, cpu_seconds(_pid(bench)) - cpu
    say(f"  placed in {seconds:.0f} s with {placing:.1f} CPU seconds")
    await _kubelets_rest(bench)
    loaded = memory(_pid(bench))
    idle = await _idle_percent(bench)
    bench.running.stop_process(OPERATOR)
    start = await start_operator(bench.running, {})
    await _kubelets_rest(bench)
    restarted = memory(_pid(bench))
    idle_after = await _idle_percent(bench)
    bench.running.stop_process(OPERATOR)
    say(
        f"  rss {loaded.rss_mib:.0f} MiB, idle {idle:.1f} % of a core, restarted: leads after "
        f"{start.leading:.1f} s, synced after {start.synced:.1f} s, {restarted.rss_mib:.0f} MiB"
    )
    return {
        "pods": pods,
        "nodes": sizes.scale_nodes,
        "gpujobs": sizes.scale_jobs,
        "gpu": _GPU,
        "seconds": seconds,
        "pods_per_second": pods / seconds,
        "cpu_seconds_per_1000_pods": placing / pods * 1000,
        "idle_cpu_percent": idle,
        "memory_without_pods": asdict(empty),
        "memory": asdict(loaded),
        "restart": {
            **asdict(start),
            "memory": asdict(restarted),
            "idle_cpu_percent": idle_after,
        },
    }


async def _kubelets_rest(bench: Bench) -> None:
    """Wait until the fake kubelets have turned all pods Running and no status is written."""
    async with asyncio.timeout(_KUBELETS_SECONDS):
        before = -1
        while (now := (await writes.read(bench.client))["PATCH pods/status"]) != before:
            before = now
            await asyncio.sleep(_LOOK_SECONDS)


def _pid(bench: Bench) -> int:
    return pids(bench.running)[OPERATOR]


async def _idle_percent(bench: Bench) -> float:
    """CPU of the operator in percent of one core while nothing happens but heartbeats."""
    pid = _pid(bench)
    before = cpu_seconds(pid)
    await asyncio.sleep(bench.sizes.idle_seconds)
    return (cpu_seconds(pid) - before) / bench.sizes.idle_seconds * 100
