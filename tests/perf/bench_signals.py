"""What signals cost at size: ``python -m tests.perf.bench_signals [--small]``.

A control plane with fake nodes, jobs that run and wait in many namespaces, and an agent for each
node, all in a program of their own. In one run, turn by turn: the operator without signals (A),
with them (B), and with them while half of the agents are silent, slow or talk nonsense (C), each
under the same work that ends and comes. For each its CPU and memory, how long planning cycles take,
what GPUUsages are written and what etcd makes of it, and how ``/metrics`` is answered. Prints JSON
and a table; the JSON is in build/bench/signals.json too.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import uvloop
from tests.api.free_port import free_port
from tests.perf.install import cluster, say
from tests.perf.machine import machine
from tests.perf.queue_load import apply
from tests.perf.queue_watch import Placed
from tests.perf.settings import RAISED_QPS, ROOT
from tests.perf.signals.load import PodEyes, Turnover, gpu_job, namespace_of
from tests.perf.signals.phases import Bench, phase
from tests.perf.signals.size import FULL, SMALL, Size
from tests.perf.signals.stand import (
    Bounds,
    OperatorStand,
    agents_program,
    bounds,
    prepare,
)
from tests.perf.signals.stored import Usage, UsageEyes
from tests.perf.signals.verdict import bounds as bounds_of
from tests.perf.signals.verdict import ratios, table

from cluster import Running
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.kube.reflector import Reflector

_RESULT = ROOT / "build" / "bench" / "signals.json"
_FILL_SECONDS = 3600.0
_PORTION = 100  # jobs; of more at once a busy machine makes the pods too late
_WAITING_SECONDS = 1.0  # between portions of those that wait
_LOOK_SECONDS = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also where a bound is missed, which the table says."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_signals", description=__doc__)
    parser.add_argument("--small", action="store_true", help="64 GPUs, short phases: to try it")
    parser.add_argument("--part", type=float, default=1.0, help="of the size, such as 0.25")
    parser.add_argument("--seconds", type=float, help="of a phase")
    parser.add_argument("--order", help="of phases, such as ABCCBA")
    parser.add_argument("--turns", type=float, help="jobs that end and come in a second")
    parser.add_argument("--name", default="bench-signals", help="of the cluster")
    options = parser.parse_args(arguments)
    chosen = {
        name: value
        for name in ("seconds", "order", "turns")
        if (value := getattr(options, name)) is not None
    }
    size = replace(SMALL if options.small else FULL, **chosen).part(options.part)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    result: dict[str, Any] = {"machine": machine(), "size": size.to_json(), "phases": []}
    with bounds() as made, cluster(options.name, nodes=size.nodes, qps=RAISED_QPS) as running:
        made.control_plane(running)
        uvloop.run(_measure(running, size, made, result))
    print(json.dumps(result, indent=1))  # noqa: T201
    print(table(result["phases"]))  # noqa: T201
    return 0


async def _measure(running: Running, size: Size, made: Bounds, result: dict[str, Any]) -> None:
    connection = from_kubeconfig(running.kubeconfig)
    port, began = free_port(), time.monotonic()
    async with Client(connection, user_agent="bench-signals", timeout_seconds=60.0) as client:
        await prepare(running, client, size)
        pods, usages = PodEyes(), UsageEyes()
        reflectors = (
            Reflector(client, core("pods"), Placed, pods),
            Reflector(client, of_group(GROUP, VERSION, "gpuusages"), Usage, usages),
        )
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        try:
            async with agents_program(running, size, port, began) as agents:
                operators = OperatorStand(running, size, made, port)
                turnover = Turnover(client, pods, size)
                bench = Bench(running, size, operators, agents, turnover, pods, usages, began)
                await fill(bench, client)
                for number, letter in enumerate(size.order, 1):
                    found = await phase(bench, letter, number)
                    say(f"  {json.dumps(found)}")
                    result["phases"].append(found)
                    result["ratios"] = ratios(result["phases"])
                    result["bounds"] = bounds_of(result["phases"])
                    _RESULT.parent.mkdir(parents=True, exist_ok=True)
                    _RESULT.write_text(json.dumps(result, indent=1))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def fill(bench: Bench, client: Client) -> None:
    """Apply all jobs, those that find room no faster than they begin to run."""
    size = bench.size
    await bench.operators.start("fill", signals=False)
    jobs = iter([gpu_job(n, namespace_of(n, size), size.milli) for n in range(size.jobs)])
    async with asyncio.timeout(_FILL_SECONDS):
        for count in range(0, size.containers, _PORTION):
            await apply(client, islice(jobs, min(_PORTION, size.containers - count)))
            await _until_running(bench, count)
            if count % 1000 == 0:
                say(f"  {len(bench.pods.running)} run")
        await _until_running(bench, size.containers)
        while portion := list(islice(jobs, _PORTION)):
            await apply(client, portion)
            await bench.rest(_WAITING_SECONDS)
    say(f"  {len(bench.pods.running)} run, {size.jobs - size.containers} wait")
    await bench.rest(size.settle_seconds)
    await bench.operators.stop()


async def _until_running(bench: Bench, count: int) -> None:
    while len(bench.pods.running) < count:
        await bench.rest(_LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
