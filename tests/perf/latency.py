"""From apply to bound on an idle cluster: single-pod jobs, one after the other.

With client limits and the operator's settings as they come. A pause between two jobs keeps the
Job controller's limit of 20 requests per second out of the figure: it is about an idle cluster.
"""

import asyncio
import time

from tests.perf.install import say
from tests.perf.schedulers import Variant, scheduler_of
from tests.perf.sharing.figures import percentile
from tests.perf.throughput import Bench
from tests.perf.workload import clear

_WARM_UP_JOBS = 3
_BOUND_SECONDS = 30.0


async def measure(bench: Bench, variant: Variant) -> dict[str, object]:
    """Seconds from the request that creates the job until its pod is bound."""
    async with scheduler_of(bench.running, variant, bench.sizes.nodes):
        names, figures = await one_by_one(bench, variant)
        await clear(bench.client, bench.watch, names)
    return figures


async def one_by_one(bench: Bench, variant: Variant) -> tuple[list[str], dict[str, object]]:
    """Names of the jobs, which are left behind, and the figures; the scheduler runs already."""
    names, seconds = [], []
    for _ in range(_WARM_UP_JOBS + bench.sizes.latency_jobs):
        name = bench.next_name(variant)
        path, body = variant.job(name, 1)
        began = time.monotonic()
        await bench.client.create(path, body)
        bound = await bench.watch.until_bound(name, 1, _BOUND_SECONDS)
        seconds.append(max(bound.values()) - began)
        names.append(name)
        await asyncio.sleep(bench.sizes.latency_gap_seconds)
    measured = seconds[_WARM_UP_JOBS:]
    p50, p99 = percentile(measured, 0.5), percentile(measured, 0.99)
    say(f"  apply to bound, {variant.name}: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms")
    return names, {
        "jobs": len(measured),
        "gap_seconds": bench.sizes.latency_gap_seconds,
        "p50_seconds": p50,
        "p99_seconds": p99,
        "max_seconds": max(measured),
        "seconds": measured,
    }
