"""Short jobs that never stop coming: how much of the GPUs nobody holds while a queue is there.

Every job asks for half a GPU and runs one to five seconds, or ten times as long, which the fake
kubelets round down by up to one. A place is held from the binding until the pod has ended, both as
a watch sees them. So what is lost is the way from an end to the next binding; the stock scheduler
with plain Jobs of the same size says how much of it is the machine's. Called by ``queues``.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

from tests.perf import writes
from tests.perf.install import say
from tests.perf.queue_figures import between, held_seconds, idle_percent
from tests.perf.queue_load import apply
from tests.perf.queue_stand import Stand
from tests.perf.settings import GPUS_PER_NODE

CHURN = "churn"
_MILLI = 500


async def churn(stand: Stand, count: int) -> dict[str, Any]:
    """Jobs of 1 to 5 s."""
    return await _played(stand, count, (1, 5))


async def turnover(stand: Stand, count: int) -> dict[str, Any]:
    """Jobs of 10 to 50 s."""
    return await _played(stand, count, (10, 50))


async def _played(stand: Stand, count: int, run_seconds: tuple[int, int]) -> dict[str, Any]:
    """Apply all, and look at a window from the last apply until the queue gets short."""
    sizes, pods = stand.sizes, stand.eyes.pods
    places = sizes.queue_nodes * GPUS_PER_NODE * 1000 // _MILLI
    await stand.start()
    await stand.quiet(60.0)
    applied = await apply(stand.client, _short(stand, count, run_seconds))
    say(f"  {count} applied in {applied.last - applied.began:.1f} s")
    rate = applied.to_json()
    before, cpu, begin = await writes.read(stand.client), stand.cpu(), time.monotonic()
    queued = count - pods.bound[CHURN]
    await stand.until(lambda: count - pods.bound[CHURN] < places, sizes.queue_churn_seconds)
    end, used = time.monotonic(), stand.cpu_since(cpu)
    written = await writes.read(stand.client) - before
    seconds = end - begin
    spans = [each for each in pods.spans.values() if each.group == CHURN]
    held = held_seconds(spans, begin, end)
    eyes = stand.eyes.jobs if stand.contender.root is None else stand.eyes.gpujobs
    ended = [each.ended for each in spans if each.ended is not None]
    ran = [each.ended - each.bound for each in spans if each.ended and each.bound]
    figures = {
        "applied": rate,
        "queued_at_first": queued,
        "queued_at_last": count - pods.bound[CHURN],
        "seconds": round(seconds, 2),
        "idle_gpu_percent": idle_percent(held, places=places, seconds=seconds),
        "pods_bound_per_second": round(between(pods.bound_at(CHURN), begin, end) / seconds, 2),
        "pods_ended_per_second": round(between(ended, begin, end) / seconds, 2),
        "jobs_ended_per_second": round(between(eyes.succeeded.values(), begin, end) / seconds, 2),
        "mean_seconds_held": round(sum(ran) / len(ran), 2) if ran else None,
        "writes_per_second": round(sum(written.values()) / seconds, 1),
        "counted_writes_per_second": round(sum(writes.counted(written).values()) / seconds, 1),
        "writes_per_second_by_kind": {
            kind: round(n / seconds, 2) for kind, n in written.most_common() if n > 0
        },
        "cpu_percent": {name: round(100 * n / seconds, 1) for name, n in used.items()},
        "rss_mib": stand.rss_mib(),
        "ended_by_itself": stand.ended_by_itself,
    }
    say(
        f"  {figures['idle_gpu_percent']} % of the GPUs idle over {seconds:.0f} s, "
        f"{figures['pods_ended_per_second']} pods ended per second"
    )
    return figures


def _short(stand: Stand, count: int, run_seconds: tuple[int, int]) -> Iterator[tuple[str, Any]]:
    chance = random.Random(7)  # the same jobs for all
    return (
        stand.contender.job(
            f"{CHURN}-{number:05d}", milli=_MILLI, run_seconds=chance.randint(*run_seconds)
        )
        for number in range(count)
    )
