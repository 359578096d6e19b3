"""What what-ifs cost at size: ``python -m tests.perf.dashboard.what_ifs [--nodes 10000]``.

A made-up input of the planner, and the server's own ``WhatIfProcesses`` with its bounds: one
question alone, then 20 users at once. Prints JSON: size of the copy and what making it took of the
loop, how long answers took, who was told what, and the CPU and the most memory of a process. With
``--beside`` instead: how long whole plans of the same input take, of which nothing is remembered,
while nobody asks (N), and while all users ask again and again (W), turn by turn.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median
from types import SimpleNamespace
from typing import Any, NoReturn

import uvloop
from tests.perf.bench_dump import made
from tests.perf.dashboard.processes import peaks_mib
from tests.perf.machine import machine

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.dashboard.views import WhatIfQuestion
from gpu_scheduler.dashboard.visible import ALL
from gpu_scheduler.runtime.dump import Dump, dump_of, written
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity
from gpu_scheduler.web.dashboard.what_if import WhatIfProcesses

_LOOK_SECONDS = 0.05
_REST_SECONDS = 0.25  # between plans, as the operator rests after long ones
_QUESTION = WhatIfQuestion(like_node="n0", nodes=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.dashboard.what_ifs")
    parser.add_argument("--nodes", type=int, default=10_000, help="of 8 GPUs; as many jobs wait")
    parser.add_argument("--pods", type=int, default=4, help="on each node")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--beside", default="", help="phases of plans, such as NWNW")
    parser.add_argument("--seconds", type=float, default=60, help="of such a phase")
    options = parser.parse_args(arguments)
    given = made(options.nodes, options.pods)
    if options.beside:
        measured = _beside_plans(given, options.users, options.beside, options.seconds)
    else:
        measured = _measured(given, options.users)
    found = uvloop.run(measured)
    print(json.dumps({"machine": machine(), "options": vars(options), **found}, indent=2))  # noqa: T201
    return 0


def _as_the_operator_collects() -> None:
    gc.set_threshold(50_000, 20, 100)
    gc.collect()
    gc.freeze()


def _processes(dump: Callable[[], Dump]) -> WhatIfProcesses:
    planner: Any = SimpleNamespace(planning=SimpleNamespace(dump=dump), state=ClusterState(""))
    return WhatIfProcesses(lambda: planner)


async def _measured(given: PlanInput, users: int) -> dict[str, Any]:
    workload, copies = PlannerCache().workload, list[float]()
    _as_the_operator_collects()

    def dump() -> Dump:
        began = time.thread_time()
        copy = dump_of(given, workload)
        copies.append(time.thread_time() - began)
        return copy

    processes = _processes(dump)
    said: dict[str, Any] = {}
    for name, count in (("alone", 1), ("atOnce", users)):
        before, began, peaks = _children_cpu(), time.monotonic(), dict[int, float]()
        watching = asyncio.create_task(_watch(peaks))
        answers = await asyncio.gather(*(_ask(processes, n) for n in range(count)))
        watching.cancel()
        await processes.close()  # of what has not ended the kernel tells nothing
        cpu = _children_cpu()
        took = sorted(seconds for seconds, _ in answers)
        said[name] = {
            "answers": dict(Counter(words for _, words in answers)),
            "secondsFirst": round(took[0], 2),
            "secondsLast": round(took[-1], 2),
            "secondsAll": round(time.monotonic() - began, 2),
            "cpuSecondsEach": round((cpu - before) / count, 2),
            "mostMiBOfOne": round(max(peaks.values(), default=0.0), 1),
        }
    said["copy"] = {
        "megabytes": round(sum(map(len, written(dump()))) / 1e6, 1),
        "millisecondsOfTheLoop": round(1000 * max(copies), 1),
        "made": len(copies) - 1,
    }
    return said


async def _beside_plans(
    given: PlanInput, users: int, phases: str, seconds: float
) -> dict[str, Any]:
    workload = PlannerCache().workload
    processes = _processes(lambda: dump_of(given, workload))
    _as_the_operator_collects()
    said = []
    for phase in phases:
        told, began, until = Counter[str](), _children_cpu(), time.monotonic() + seconds
        asking = [
            asyncio.create_task(_ask_again(processes, number, told))
            for number in range(users if phase == "W" else 0)
        ]
        wall, cpu = list[float](), list[float]()
        while time.monotonic() < until:
            times = time.monotonic(), time.thread_time()
            plan(given, PlannerCache())
            wall.append(time.monotonic() - times[0])
            cpu.append(time.thread_time() - times[1])
            await asyncio.sleep(_REST_SECONDS)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await processes.close()
        said.append(
            {
                "phase": phase,
                "plans": len(wall),
                "wallMs": round(1000 * fmean(wall), 1),
                "wallMsP50": round(1000 * median(wall), 1),
                "cpuMs": round(1000 * fmean(cpu), 1),
                "answers": dict(told),
                "whatIfsCpuSeconds": round(_children_cpu() - began, 1),
            }
        )
    return {"phases": said}


async def _ask_again(processes: WhatIfProcesses, number: int, told: Counter[str]) -> NoReturn:
    while True:
        _, words = await _ask(processes, number)
        told[words] += 1
        await asyncio.sleep(_REST_SECONDS)


async def _ask(processes: WhatIfProcesses, number: int) -> tuple[float, str]:
    reader = Reader(Identity(f"user-{number}"), "", "")
    began = time.monotonic()
    try:
        answer = await processes.answer(_QUESTION, reader, ALL)
        words = "".join(piece.text for piece in answer.lead.first)
    except RefusedAnswer as refusal:
        words = f"{refusal.status} {refusal.sentence}"
    return time.monotonic() - began, words


async def _watch(peaks: dict[int, float]) -> None:
    while True:
        peaks |= peaks_mib(os.getpid())
        await asyncio.sleep(_LOOK_SECONDS)


def _children_cpu() -> float:
    """Seconds of all that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
