"""The scenes of jobs that wait, and of jobs that fit: what they cost until they are told, or bound.

Each gets a stand of its own and gives back figures as JSON. Writes are those of all clients, minus
the harness's own creates. Called by ``queues``.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from tests.perf import latency, writes
from tests.perf.bound import BoundWatch
from tests.perf.contenders import END_NOW
from tests.perf.install import say
from tests.perf.queue_figures import after_last, share_within
from tests.perf.queue_load import Applied, apply
from tests.perf.queue_stand import Stand
from tests.perf.schedulers import AUTO, check_alive
from tests.perf.schedulers import STOCK as STOCK_VARIANT
from tests.perf.settings import GPUS_PER_NODE
from tests.perf.throughput import Bench
from tests.perf.workload import NAMESPACE, clear

from gpu_scheduler.kube.paths import pod

FILL, WAIT, FIT = "fill", "wait", "fit"
_SECONDS = 180.0  # for what is no figure
_FREED_PODS = 8
_RESTART_SECONDS = 300.0


async def waiting(stand: Stand, count: int) -> dict[str, Any]:
    """Jobs that cannot start, on GPUs that are full; then the operator's end and return."""
    sizes, eyes = stand.sizes, stand.eyes
    gpus = sizes.queue_nodes * GPUS_PER_NODE
    await stand.start()
    path, body = stand.contender.job(f"{FILL}-0", milli=1000, pods=gpus)
    await stand.client.create(path, body)
    await stand.sure("the GPUs are full", lambda: eyes.pods.bound[FILL] == gpus, _SECONDS)
    await stand.quiet(_SECONDS)
    empty, before, cpu = stand.rss_mib(), await writes.read(stand.client), stand.cpu()
    applied = await apply(stand.client, _many(stand, WAIT, count, milli=500))
    applying = stand.cpu_since(cpu)
    say(f"  {count} applied in {applied.last - applied.began:.1f} s")
    judged = eyes.gpujobs.judged
    waits = sizes.queue_wait_seconds - (time.monotonic() - applied.last)
    everyone = await stand.until(lambda: all_of(judged, applied), waits)
    judging = stand.cpu_since(cpu)
    written = _of_others(stand, await writes.read(stand.client), before, applied)
    objects = eyes.jobs.present[WAIT] + eyes.pods.unbound[WAIT]
    times = [judged[name] for name in applied.answered if name in judged]
    say(f"  {len(times)} of {count} judged {time.monotonic() - applied.last:.1f} s after the last")
    found = {
        "applied": applied.to_json(),
        "wait_seconds": sizes.queue_wait_seconds,
        "judged_seconds": after_last(times, applied.last) if everyone else None,
        "judged_percent": round(100 * len(times) / count, 2),
        "judged_percent_after_5_seconds": share_within(times, applied.last + 5, count),
        "spoken_percent_after_5_seconds": share_within(
            [t for name, t in eyes.gpujobs.spoken.items() if name in applied.answered],
            applied.last + 5,
            count,
        ),
        "reasons": eyes.gpujobs.by_reason(WAIT),
        "objects_per_job": round(objects / count, 3),
        "writes_per_job": round(sum(written.values()) / count, 3),
        "writes_per_job_by_kind": _per_job(written, count),
        "cpu_seconds_applying": applying,
        "cpu_seconds_until_judged": judging,
        "rss_mib_before": empty,
    }
    found["idle"] = await _idle(stand)
    found["rss_mib"] = stand.rss_mib()
    found["restart"] = await _restart(stand)
    found["ended_by_itself"] = stand.ended_by_itself
    return found


async def fits(stand: Stand, count: int) -> dict[str, Any]:
    """Jobs of one pod that all fit; before them single ones, one after the other."""
    await stand.start()
    single = await _latency(stand)
    before, cpu = await _settled(stand), stand.cpu()
    applied = await apply(stand.client, _many(stand, FIT, count, milli=250))
    bound = stand.eyes.pods.bound
    everyone = await stand.until(lambda: bound[FIT] == count, stand.sizes.queue_wait_seconds)
    used = stand.cpu_since(cpu)
    at_bound = _of_others(stand, await writes.read(stand.client), before, applied)
    written = _of_others(stand, await _settled(stand), before, applied)
    times = stand.eyes.pods.bound_at(FIT)
    seconds = after_last(times, applied.last) if everyone else None
    say(f"  {len(times)} of {count} bound, the last {seconds} s after the last apply")
    return {
        "applied": applied.to_json(),
        "bound_percent": round(100 * len(times) / count, 2),
        "bound_seconds": seconds,
        "bound_seconds_since_first": round(times[-1] - applied.began, 2) if everyone else None,
        "writes_per_job": round(sum(written.values()) / count, 3),
        "writes_per_job_by_kind": _per_job(written, count),
        "writes_per_job_when_bound": round(sum(at_bound.values()) / count, 3),
        "writes_per_job_when_bound_by_kind": _per_job(at_bound, count),
        "cpu_seconds": used,
        "rss_mib": stand.rss_mib(),
        "latency": single,
        "ended_by_itself": stand.ended_by_itself,
    }


def all_of(judged: Mapping[str, float], applied: Applied) -> bool:
    """Whether every job that was applied has its verdict."""
    return len(judged) >= len(applied.answered) and judged.keys() >= applied.answered.keys()


async def _idle(stand: Stand) -> dict[str, Any]:
    """What it costs to let them wait."""
    seconds = stand.sizes.queue_idle_seconds
    quiet = await stand.quiet(_SECONDS)
    before, cpu, began = await writes.read(stand.client), stand.cpu(), time.monotonic()
    await stand.rest(seconds)
    took = time.monotonic() - began
    used = {name: round(100 * n / took, 2) for name, n in stand.cpu_since(cpu).items()}
    written = writes.counted(await writes.read(stand.client) - before)
    say(f"  idle: operator {used.get('operator', 0.0)} % of a core, {sum(written.values())} writes")
    return {
        "seconds": round(took, 1),
        "quiet": quiet,
        "cpu_percent": used,
        "writes": sum(written.values()),
        "writes_by_kind": dict(written),
    }


async def _restart(stand: Stand) -> dict[str, Any]:
    """Kill the operator, let some pods end, and start it again."""
    await stand.kill()
    pods = stand.eyes.pods
    left = [each for each in pods.spans.values() if each.group == FILL and each.ended is None]
    ending = left[:_FREED_PODS]
    for each in ending:
        await stand.client.merge_patch(pod(NAMESPACE, each.name), END_NOW)
    await stand.sure("pods end", lambda: all(each.ended is not None for each in ending), _SECONDS)
    await stand.quiet(_SECONDS)
    had, places, began = pods.bound[WAIT], 2 * len(ending), time.monotonic()
    start = await stand.start()
    came = await stand.until(lambda: pods.bound[WAIT] > had, _RESTART_SECONDS)
    filled = await stand.until(lambda: pods.bound[WAIT] >= had + places, 60.0)
    times = pods.bound_at(WAIT, began)
    first = round(times[0] - began, 2) if came else None
    say(f"  restart: leads after {start.leading:.1f} s, first pod bound after {first} s")
    await stand.quiet(60.0)
    return {
        **{name: round(seconds, 2) for name, seconds in asdict(start).items()},
        "first_bound_seconds": first,
        "all_bound_seconds": round(times[places - 1] - began, 2) if filled else None,
        "rss_mib": stand.rss_mib(),
    }


async def _latency(stand: Stand) -> dict[str, object]:
    """Single jobs on an idle cluster; they go on running, each on half a GPU, until the end."""
    watch = BoundWatch(stand.client, NAMESPACE, lambda: check_alive(stand.running))
    watching = asyncio.create_task(watch.reflector.run())
    try:
        await watch.reflector.synced.wait()
        bench = Bench(stand.running, stand.client, watch, stand.sizes)
        variant = STOCK_VARIANT if stand.contender.root is None else AUTO
        names, figures = await latency.one_by_one(bench, variant)
        await clear(stand.client, watch, names)
    finally:
        watching.cancel()
    return figures


def _many(stand: Stand, group: str, count: int, *, milli: int) -> Iterator[tuple[str, Any]]:
    return (stand.contender.job(f"{group}-{n:05d}", milli=milli) for n in range(count))


async def _settled(stand: Stand) -> writes.Writes:
    await stand.quiet(_SECONDS)
    return await writes.read(stand.client)


def _of_others(
    stand: Stand, after: writes.Writes, before: writes.Writes, applied: Applied
) -> writes.Writes:
    own = writes.Writes({f"POST {stand.contender.kind}": len(applied.answered)})
    return writes.counted(after - before - own)


def _per_job(written: writes.Writes, count: int) -> dict[str, float]:
    return {key: round(n / count, 4) for key, n in written.most_common()}
