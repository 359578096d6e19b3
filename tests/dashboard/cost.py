"""``make dashboard-cost-real``: what a large cluster that changes costs the browser of a reader.

A control plane with fake nodes, an agent that answers for each, jobs that run, wait, end and come
at a steady rate, and the operator with the dashboard: the stand of ``bench_signals``. In Chromium
the pages are opened one after the other, each stays open for a while, and a line says how long it
took to appear, the longest task of its main thread, and its heap before and after.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop
from tests.api.conftest import administrator
from tests.api.dashboard_stand import ALL
from tests.api.dashboard_user import token
from tests.api.free_port import free_port
from tests.perf.bench_signals import fill
from tests.perf.install import RELEASE, cluster, say
from tests.perf.queue_watch import Placed
from tests.perf.settings import RAISED_QPS, ROOT
from tests.perf.signals.load import PodEyes, Turnover
from tests.perf.signals.phases import Bench, beside
from tests.perf.signals.size import FULL, Size
from tests.perf.signals.stand import Bounds, OperatorStand, agents_program, bounds, prepare
from tests.perf.signals.stored import UsageEyes

from cluster import Running
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.reflector import Reflector

_CHART = str(ROOT / "charts" / "gpu-scheduler")
_TURNS = 20.0  # of each a job's end, its going, and another's coming, waiting and start


def main(arguments: Sequence[str] | None = None) -> int:
    """Playwright's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.dashboard.cost", description=__doc__)
    parser.add_argument("--part", type=float, default=1.0, help="of the size, such as 0.1")
    parser.add_argument("--seconds", type=float, default=60.0, help="that each page stays open")
    parser.add_argument("--turns", type=float, default=_TURNS, help="jobs that end in a second")
    parser.add_argument("--name", default="dashboard-cost", help="of the cluster")
    options = parser.parse_args(arguments)
    size = replace(FULL, turns=options.turns, seconds=options.seconds).part(options.part)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    subprocess.run(["hack/dashboard.sh", "ready"], cwd=ROOT, check=True)
    with bounds() as made, cluster(options.name, nodes=size.nodes, qps=RAISED_QPS) as running:
        made.control_plane(running)
        return uvloop.run(_measure(running, size, made))


async def _measure(running: Running, size: Size, made: Bounds) -> int:
    port, agent_port, began = free_port(), free_port(), time.monotonic()
    await asyncio.to_thread(
        running.helm,
        *("upgrade", RELEASE, _CHART, "--namespace", RELEASE, "--reuse-values"),
        *("--set", "dashboard.enabled=true"),
    )
    connection = from_kubeconfig(running.kubeconfig)
    also = {
        "GPUSCHED_DASHBOARD_PORT": str(port),
        "GPUSCHED_DASHBOARD_FOLDER": str(ROOT / "dashboard" / "dist"),
    }
    async with Client(connection, user_agent="dashboard-cost", timeout_seconds=60.0) as client:
        await prepare(running, client, size)
        pods = PodEyes()
        async with (
            beside(Reflector(client, core("pods"), Placed, pods).run()),
            agents_program(running, size, agent_port, began) as agents,
        ):
            operators = OperatorStand(running, size, made, agent_port, also)
            turnover = Turnover(client, pods, size)
            bench = Bench(running, size, operators, agents, turnover, pods, UsageEyes(), began)
            await fill(bench, client)
            await operators.start("dashboard", signals=True)
            await bench.rest(size.settle_seconds)
            async with beside(turnover.run()):
                return await _open(running, port, bench)


async def _open(running: Running, port: int, bench: Bench) -> int:
    """The pages in a browser, while work turns over."""
    size, handed = bench.size, running.folder / "dashboard-stand.json"
    _hand_over(running, port, handed)
    say(f"  {len(bench.pods.running)} jobs run, {size.jobs} are there, on {size.gpus} GPUs")
    began, ended, bound = time.monotonic(), bench.turnover.ended, len(bench.pods.bindings)
    process = await asyncio.create_subprocess_exec(
        *("npm", "--prefix", "dashboard", "run", "--silent", "real-cost"),
        cwd=ROOT,
        env={
            **os.environ,
            "DASHBOARD_STAND": str(handed),
            "SECONDS_OPEN": str(size.seconds),
        },
    )
    code = await process.wait()
    seconds = time.monotonic() - began
    ends, starts = bench.turnover.ended - ended, len(bench.pods.bindings) - bound
    told = await bench.agents.command("honest")
    say(
        f"  meanwhile, a second: {ends / seconds:.1f} jobs ended, {starts / seconds:.1f} started, "
        f"{told['shares']} shares were told anew each ten seconds"
    )
    return code


def _hand_over(running: Running, port: int, handed: Path) -> None:
    reader = token(administrator(running), RELEASE, ALL, expirationSeconds=6 * 3600)
    told = {"base": f"http://127.0.0.1:{port}", "tokens": {"all": reader}}
    handed.touch(mode=0o600)
    handed.write_text(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
