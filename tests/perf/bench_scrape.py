"""How ``/metrics`` is answered beside a planner: ``python -m tests.perf.bench_scrape``.

A leader's figures of 4,000 workloads on made-up nodes, and a loop that is held for 90 ms three
times a second, as planning 10,000 jobs holds it. A program of its own scrapes with the token. In
one run, turn by turn: the port on the main loop (``main``), and on its own thread (``own``).
Prints JSON: until a text was there in ms, how late the main loop came to a timer meanwhile, and how
long planning took beside it. ``--plan 0``: nothing is planned, so what is late is for the text.
"""

import argparse
import asyncio
import gc
import http.client
import json
import multiprocessing
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import uvloop
from tests.perf.bench_usage import Cluster
from tests.perf.machine import machine
from tests.perf.signals.figures import milliseconds
from tests.unit.runtime.fake_client import FakeClient

from gpu_scheduler.kube.client import Client
from gpu_scheduler.usage.answer import parse
from gpu_scheduler.web.admin import AdminPort, app, serve
from gpu_scheduler.web.metrics import OperatorMetrics
from gpu_scheduler.web.own_thread import asking, here
from gpu_scheduler.web.stalls import StallWatch

_TOKEN = "bench"  # noqa: S105 - of nobody
_HOST = "127.0.0.1"


def _scraper(port: int, scrapes: int, every: float, out: Any) -> None:
    took = []
    begin = time.monotonic()
    for number in range(scrapes):
        time.sleep(max(0.0, begin + every * number - time.monotonic()))
        began = time.monotonic()
        connection = http.client.HTTPConnection(_HOST, port, timeout=30)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {_TOKEN}"})
        size = len(connection.getresponse().read())
        connection.close()
        took.append(time.monotonic() - began)
    out.send((took[2:], size))  # nobody can foresee the first two


async def _planner(seconds: float, every: float, took: list[tuple[float, float]]) -> NoReturn:
    while True:
        began, cpu = time.perf_counter(), time.thread_time()
        steps = 0
        while time.thread_time() - cpu < seconds:
            steps = sum(range(300), steps % 2)
        took.append((time.perf_counter() - began, time.thread_time() - cpu))
        await asyncio.sleep(every - seconds)


async def _measured(cluster: Cluster, options: argparse.Namespace, own: bool) -> dict[str, Any]:
    metrics = OperatorMetrics(cast(Client, FakeClient()), cluster.common.clock)
    metrics.use = cluster.parts.cluster.look
    application = app(
        metrics.registry,
        ready=lambda: "",
        state=lambda: "leader",
        token=lambda: _TOKEN,
        look=metrics.look,
        ask=asking(asyncio.get_running_loop()) if own else here,
    )
    port = options.port + own
    if own:
        server: Any = AdminPort(application)
        await server.start(_HOST, port)
    else:
        server = await serve(application, _HOST, port)
    planned: list[tuple[float, float]] = []
    late: list[float] = []
    watch = StallWatch(late.append)
    planning = asyncio.create_task(_planner(options.plan / 1000, options.cycle, planned))
    answering = asyncio.create_task(_answer(cluster))
    mine, theirs = multiprocessing.Pipe()
    scraper = multiprocessing.get_context("spawn").Process(
        target=_scraper, args=(port, options.scrapes, options.every, theirs)
    )
    scraper.start()
    took, size = await asyncio.to_thread(mine.recv)
    scraper.join()
    for task in (planning, answering):
        task.cancel()
    await watch.cleanup()
    await server.cleanup()
    return {
        "port": "own" if own else "main",
        "bytes": size,
        "answered": milliseconds(took),
        "answeredInMs": [round(1000 * each) for each in took],
        "loopLate": milliseconds(late),
        "planningWall": milliseconds([wall for wall, _ in planned]),
    }


async def _answer(cluster: Cluster) -> NoReturn:
    """Agents' answers, spread over ten seconds."""
    while True:
        answers = cluster.answers()
        for node, body in answers:
            cluster.parts.seen.take(node, parse(body), cluster.seconds)
            await asyncio.sleep(10 / len(answers))


async def _all(cluster: Cluster, options: argparse.Namespace) -> list[dict[str, Any]]:
    for node, body in cluster.answers():
        cluster.parts.seen.take(node, parse(body), cluster.seconds)
    return [
        await _measured(cluster, options, own)
        for _ in range(options.rounds)
        for own in (False, True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_scrape", description=__doc__)
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--every", type=float, default=2.2, help="seconds")
    parser.add_argument("--plan", type=float, default=90.0, help="milliseconds that a plan takes")
    parser.add_argument("--cycle", type=float, default=0.33, help="seconds from plan to plan")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--switch", type=float, default=1000 * sys.getswitchinterval(), help="ms")
    parser.add_argument("--port", type=int, default=18471)
    options = parser.parse_args(arguments)
    sys.setswitchinterval(options.switch / 1000)
    cluster = Cluster(nodes=125, containers=4000, namespaces=200, seed=1)
    gc.set_threshold(50_000, 20, 100)  # as ``main`` does
    gc.collect()
    gc.freeze()  # as the leader does once it knows the cluster
    found = uvloop.run(_all(cluster, options))
    said = {"machine": machine(), "options": vars(options), "found": found}
    print(json.dumps(said, indent=2))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
