"""What the dashboard costs the operator: ``python -m tests.perf.bench_dashboard [--small]``.

A control plane with fake nodes and agents, jobs that run and wait in many namespaces, and the real
operator with its dashboard. In one run, turn by turn: nobody looks (N), an open page of each of 50
tokens that may see different namespaces (S), 20 what-ifs at once (W), each under the same work that
ends and comes. For each how long planning cycles take and what is placed, CPU and memory, what the
readers are sent, and how many reviews the API server answers. Prints JSON and a table; the JSON is
in build/bench/dashboard.json too.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import uvloop
from tests.api.free_port import free_port
from tests.perf.bench_signals import fill
from tests.perf.dashboard import readers
from tests.perf.dashboard.processes import peaks_mib
from tests.perf.dashboard.reviews import Reviews, a_minute
from tests.perf.dashboard.verdict import bounds as bounds_of
from tests.perf.dashboard.verdict import ratios, table
from tests.perf.install import RELEASE, cluster, say
from tests.perf.machine import machine
from tests.perf.queue_watch import Placed
from tests.perf.settings import RAISED_QPS, ROOT
from tests.perf.sharing.figures import percentile
from tests.perf.signals.load import PodEyes, Turnover
from tests.perf.signals.phases import Bench, phase
from tests.perf.signals.size import FULL, SMALL, Size
from tests.perf.signals.stand import Bounds, OperatorStand, agents_program, bounds, prepare
from tests.perf.signals.stored import UsageEyes

from cluster import Running
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.reflector import Reflector

_RESULT = ROOT / "build" / "bench" / "dashboard.json"
_ORDER = "NSWNSW"
_FULL = replace(FULL, namespaces=500, scrapes=2, order=_ORDER)
_SMALL = replace(SMALL, namespaces=64, seconds=60.0, settle_seconds=30.0, scrapes=2, order="NSW")
_PAGES, _WHAT_IFS = 50, 20
_LOOK_SECONDS = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also where a bound is missed, which the table says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.perf.bench_dashboard", description=__doc__
    )
    parser.add_argument("--small", action="store_true", help="64 GPUs, short phases: to try it")
    parser.add_argument("--part", type=float, default=1.0, help="of the size, such as 0.25")
    parser.add_argument("--seconds", type=float, help="of a phase")
    parser.add_argument("--order", help="of phases, such as NSNS")
    parser.add_argument("--turns", type=float, help="jobs that end and come in a second")
    parser.add_argument("--namespaces", type=int, help="over which jobs are spread")
    parser.add_argument("--name", default="bench-dashboard", help="of the cluster")
    options = parser.parse_args(arguments)
    names = "seconds", "order", "turns", "namespaces"
    chosen = {n: value for n in names if (value := getattr(options, n)) is not None}
    size = replace((_SMALL if options.small else _FULL).part(options.part), **chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    result: dict[str, Any] = {
        "machine": machine(),
        "size": size.to_json(),
        "pages": _PAGES,
        "whatIfs": _WHAT_IFS,
        "phases": [],
    }
    with bounds() as made, cluster(options.name, nodes=size.nodes, qps=RAISED_QPS) as running:
        made.control_plane(running)
        uvloop.run(_measure(running, size, made, result))
    print(json.dumps(result, indent=1))  # noqa: T201
    print(table(result["phases"]))  # noqa: T201
    return 0


async def _measure(running: Running, size: Size, made: Bounds, result: dict[str, Any]) -> None:
    connection = from_kubeconfig(running.kubeconfig)
    port, dashboard, began = free_port(), free_port(), time.monotonic()
    async with Client(connection, user_agent="bench-dashboard", timeout_seconds=60.0) as client:
        await prepare(running, client, size)
        await _allow_reviews(running)
        tokens = await readers.tokens(client, _PAGES, size)
        pods, reviews = PodEyes(), Reviews(running)
        reflector = Reflector(client, core("pods"), Placed, pods)
        tasks = [asyncio.create_task(each) for each in (reflector.run(), reviews.run())]
        try:
            async with agents_program(running, size, port, began) as agents:
                settings = {"GPUSCHED_DASHBOARD_PORT": str(dashboard)}
                operators = OperatorStand(running, size, made, port, settings)
                turnover = Turnover(client, pods, size)
                usages = UsageEyes()  # of which nothing is asked here
                bench = Bench(running, size, operators, agents, turnover, pods, usages, began)
                await fill(bench, client)
                for number, letter in enumerate(size.order, 1):
                    watched = _looking(letter, dashboard, tokens, lambda: operators.pid)
                    async with watched as saw:
                        found = await phase(bench, letter, number)
                    result["phases"].append(found | saw.told(found["seconds"], reviews))
                    say(f"  {json.dumps(result['phases'][-1])}")
                    result["ratios"] = ratios(result["phases"])
                    result["bounds"] = bounds_of(result["phases"])
                    _RESULT.parent.mkdir(parents=True, exist_ok=True)
                    _RESULT.write_text(json.dumps(result, indent=1))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _allow_reviews(running: Running) -> None:
    """The rights that the chart gives an operator with a dashboard."""
    await asyncio.to_thread(
        running.helm,
        *("upgrade", RELEASE, str(ROOT / "charts" / "gpu-scheduler"), "--namespace", RELEASE),
        *("--reuse-values", "--set", "dashboard.enabled=true"),
    )
    await asyncio.to_thread(
        running.kubectl, "--namespace", RELEASE, "scale", "deployment", RELEASE, "--replicas=0"
    )


class _Watched:
    """What readers saw in a phase, second by second: the phase says afterwards which counted."""

    def __init__(self, wanted: int, operator: Callable[[], int]) -> None:
        """``wanted``: pages; ``operator``: its pid, while there is one."""
        self._wanted = wanted
        self._operator = operator
        self.seen = readers.ReaderCounts()
        self._seconds: list[tuple[float, readers.ReaderCounts, list[float]]] = []

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(KeyError):  # none runs just now
                peaks = list(peaks_mib(self._operator()).values())
                self._seconds.append((time.monotonic(), self.seen.take(), peaks))

    def told(self, seconds: float, reviews: Reviews) -> dict[str, Any]:
        """Of the phase's last so many seconds in which the operator was there."""
        busy = [at for at, seen, _ in self._seconds if seen.answered]
        end = max(busy, default=self._seconds[-1][0])
        there = [each for each in self._seconds if end - seconds <= each[0] <= end]
        seen = [each for _, each, _ in there]
        took = [second for each in seen for second in each.seconds]
        answered = sum(each.answers["200"] for each in seen)
        refused = sum(each.answers.total() for each in seen) - answered
        ended = sum((each.ended for each in seen), Counter[str]())
        answers = sum((each.answers for each in seen), Counter[str]())
        return {
            "readers": {
                "wanted": self._wanted,
                "open": round(percentile([float(each.open) for each in seen], 0.5)),
                "viewsASecond": round(sum(each.views for each in seen) / seconds, 2),
                "bytesASecond": round(sum(each.bytes for each in seen) / seconds),
                "streamsEnded": dict(ended),
                "answers": dict(answers),
                "answeredAMinute": round(60 * answered / seconds, 2),
                "refusedAMinute": round(60 * refused / seconds, 2),
                "whatIfP50": round(percentile(took, 0.5), 2),
                "whatIfMax": round(max(took, default=0.0), 2),
                "processMiB": max((m for _, _, mib in there for m in mib), default=0.0),
                "processesMiB": max((sum(mib) for _, _, mib in there), default=0.0),
            },
            "reviews": a_minute(reviews.samples, end - seconds, end),
        }


@asynccontextmanager
async def _looking(
    letter: str, port: int, tokens: list[str], operator: Callable[[], int]
) -> AsyncIterator[_Watched]:
    """What a phase's letter says goes on meanwhile."""
    pages, what_ifs = (_PAGES if letter == "S" else 0), (_WHAT_IFS if letter == "W" else 0)
    watched = _Watched(pages, operator)
    watching = asyncio.create_task(watched.run())
    try:
        async with (
            readers.reading(port, tokens[:pages], watched.seen),
            readers.asking(port, _who_sees_nodes(tokens, what_ifs), watched.seen),
        ):
            yield watched
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _who_sees_nodes(tokens: list[str], count: int) -> list[str]:
    return tokens[1::2][:count]


if __name__ == "__main__":
    sys.exit(main())
