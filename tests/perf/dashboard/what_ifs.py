"""What what-ifs cost at size: ``python -m tests.perf.dashboard.what_ifs [--nodes 10000]``.

A made-up input of the planner, and the server's own ``WhatIfProcesses`` with its bounds: one
question alone, then 20 users at once. Prints JSON: size of the copy and what making it took of the
loop, how long answers took, who was told what, and the CPU and the most memory of a process.
"""

import argparse
import asyncio
import gc
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import uvloop
from tests.perf.bench_dump import made
from tests.perf.dashboard.processes import peaks_mib
from tests.perf.machine import machine

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.dashboard.views import WhatIfQuestion
from gpu_scheduler.dashboard.visible import ALL
from gpu_scheduler.runtime.dump import Dump, dump_of, written
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity
from gpu_scheduler.web.dashboard.what_if import WhatIfProcesses

_LOOK_SECONDS = 0.05
_QUESTION = WhatIfQuestion(like_node="n0", nodes=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.dashboard.what_ifs")
    parser.add_argument("--nodes", type=int, default=10_000, help="of 8 GPUs; as many jobs wait")
    parser.add_argument("--pods", type=int, default=4, help="on each node")
    parser.add_argument("--users", type=int, default=20)
    options = parser.parse_args(arguments)
    found = uvloop.run(_measured(options.nodes, options.pods, options.users))
    print(json.dumps({"machine": machine(), "options": vars(options), **found}, indent=2))  # noqa: T201
    return 0


async def _measured(nodes: int, pods: int, users: int) -> dict[str, Any]:
    given, workload, copies = made(nodes, pods), PlannerCache().workload, list[float]()
    gc.set_threshold(50_000, 20, 100)  # as the operator has it
    gc.collect()
    gc.freeze()

    def dump() -> Dump:
        began = time.thread_time()
        copy = dump_of(given, workload)
        copies.append(time.thread_time() - began)
        return copy

    planner: Any = SimpleNamespace(planning=SimpleNamespace(dump=dump), state=ClusterState(""))
    processes = WhatIfProcesses(lambda: planner)
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
