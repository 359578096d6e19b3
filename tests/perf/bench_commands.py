"""What ``kubectl gpu`` costs who types it: ``python -m tests.perf.bench_commands``.

A control plane of its own, 600 GPUs on fake nodes, an operator, and 1,000 GPUJobs of one namespace
of which those run that find room. Each command is a process of its own, as typed; they take turns,
round by round. Prints JSON and a table of wall and CPU seconds; ends with 1 when a goal is missed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from tests.perf.figures import span, spread, table
from tests.perf.install import cluster, say
from tests.perf.machine import machine
from tests.perf.schedulers import start_operator
from tests.perf.settings import GPUS_PER_NODE, RAISED_QPS, ROOT
from tests.perf.workload import IMAGE, NAMESPACE

from cluster import Running
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import of_group

WAITS = "a job that waits"
_AT_ONCE = 20
_COMPLETION = {
    "_KUBECTL_GPU_COMPLETE": "bash_complete",
    "COMP_WORDS": "kubectl-gpu li",
    "COMP_CWORD": "1",
}
_REST_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed, and what it may take; None: no goal."""

    words: tuple[str, ...]
    wall: float | None = None
    cpu: float | None = None
    completes: bool = False


COMMANDS = (
    Command(("--help",), cpu=0.15),
    Command(("submit", "--help"), cpu=0.15),
    Command((), cpu=0.15, completes=True),
    Command(("list",), wall=1.0),
    Command(("list", "-A"), wall=1.0),
    Command(("why", WAITS), wall=1.0),
    Command(("top", "gpus")),
    Command(("fit", "-g", "0.5")),
    Command(("simulate",)),
    Command(("check",)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_commands")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=600, help="on fake nodes of 8")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--name", default="bench-commands", help="of the cluster")
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {"machine": machine(), "options": vars(options)}
    with cluster(options.name, nodes=options.gpus // GPUS_PER_NODE, qps=RAISED_QPS) as running:
        waits = uvloop.run(_fill(running, options.jobs))
        result["commands"] = _measure(running.kubeconfig, options.rounds, waits)
    missed = [name for name, each in result["commands"].items() if each["missed"]]
    print(json.dumps(result, indent=2))  # noqa: T201
    rows = (
        (f"`kubectl gpu {name}`", span(each["wall"], 2), span(each["cpu"], 2), each["goal"])
        for name, each in result["commands"].items()
    )
    print(table(("command", "seconds", "of CPU", "goal"), rows))  # noqa: T201
    for name in missed:
        say(f"missed its goal: {name}")
    return 1 if missed else 0


async def _fill(running: Running, count: int) -> str:
    """Jobs of half a GPU and of one, until the operator has said something of each; one waits."""
    path = of_group(GROUP, VERSION, "gpujobs", NAMESPACE)
    async with Client(from_kubeconfig(running.kubeconfig)) as client:
        await start_operator(running, {})
        gate = asyncio.Semaphore(_AT_ONCE)

        async def submit(number: int) -> None:
            body = {
                "apiVersion": API_VERSION,
                "kind": "GPUJob",
                "metadata": {"name": f"job-{number}"},
                "spec": {"image": IMAGE, "gpu": 1 if number % 2 else 0.5},
            }
            async with gate:
                await client.create(path, body)

        await asyncio.gather(*(submit(number) for number in range(count - 1)))
        await submit(count - 1)
        until = time.monotonic() + _REST_SECONDS
        while True:
            jobs = (await client.get(path))["items"]
            told = [job.get("status", {}).get("phase") for job in jobs]
            waits = sum(job.get("status", {}).get("reason") == "WaitingForGPU" for job in jobs)
            if all(told) and told.count("Running") + waits == count:
                say(f"{told.count('Running')} jobs run, {waits} wait")
                waiting = (j for j in jobs if j["status"].get("reason") == "WaitingForGPU")
                return str(next(waiting)["metadata"]["name"])
            if time.monotonic() > until:
                raise TimeoutError(f"jobs are not at rest: {told.count('Running')}, {waits}")
            await asyncio.sleep(1)


def _measure(kubeconfig: Path, rounds: int, waits: str) -> dict[str, Any]:
    seen: dict[Command, tuple[list[float], list[float]]] = {}
    for number in range(rounds + 1):  # the first one fills caches and is not counted
        for command in COMMANDS:
            wall, cpu = _run(command, kubeconfig, waits)
            if number:
                walls, cpus = seen.setdefault(command, ([], []))
                walls.append(wall)
                cpus.append(cpu)
    found = {}
    for command, (walls, cpus) in seen.items():
        goals = [f"{command.wall:g} s"] if command.wall else []
        goals += [f"{command.cpu:g} s of CPU"] if command.cpu else []
        wall, cpu = spread(walls), spread(cpus)
        found[" ".join(command.words) or "TAB"] = {
            "wall": wall,
            "cpu": cpu,
            "goal": ", ".join(goals) or "–",
            "missed": bool(command.wall and wall["median"] > command.wall)
            or bool(command.cpu and cpu["median"] > command.cpu),
        }
    return found


def _run(command: Command, kubeconfig: Path, waits: str) -> tuple[float, float]:
    """Wall and CPU seconds of one call, the interpreter's start included."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", "from gpu_scheduler.main import kubectl_gpu; kubectl_gpu()"]
        + [waits if word == WAITS else word for word in command.words],
        env={
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT / "operator"),
            **(_COMPLETION if command.completes else {}),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{command.words}: {said.decode()}")
    return wall, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
