"""What ``kubectl gpu`` costs who types it: ``python -m tests.perf.bench_commands``.

A control plane of its own, 600 GPUs on fake nodes, an operator, and 1,000 GPUJobs of one namespace
of which those run that find room. Each command is a process of its own, as typed; they take turns,
round by round, a command and the ``kubectl get`` of what it reads one after the other. Prints JSON
and two tables: wall and CPU seconds, and CPU beside kubectl's. Ends with 1 when a goal is missed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_CPU_SECONDS = 0.7  # of a command that asks the cluster
_TIMES_KUBECTL, _MORE_SECONDS = 5, 0.3  # and beside kubectl's CPU for the same objects


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed, and what it may take; None: no goal.

    Attributes:
        words: behind ``kubectl gpu``.
        wall: seconds.
        cpu: seconds of CPU, of user and system.
        gets: what ``kubectl get`` is given to read the same objects, with which CPU is compared.
        completes: it is the completion of a word.
        finds: ends with 1 as well, as something is not well here: no agent runs.
    """

    words: tuple[str, ...]
    wall: float | None = None
    cpu: float | None = None
    gets: tuple[str, ...] = ()
    completes: bool = False
    finds: bool = False

    def __str__(self) -> str:
        return " ".join(self.words) or "TAB"


_HERE = ("-n", NAMESPACE)
_PLANNED = "gpuprojects,gpujobs,gpunodes,gpuclasses,nodes,jobs,pods"
COMMANDS = (
    Command(("--help",), cpu=0.15),
    Command(("submit", "--help"), cpu=0.15),
    Command((), cpu=0.15, completes=True),
    Command(("list", *_HERE), wall=1.0, cpu=_CPU_SECONDS, gets=("gpujobs", *_HERE)),
    Command(("list", "-A"), wall=1.0, cpu=_CPU_SECONDS, gets=("gpujobs", "-A")),
    Command(("why", WAITS, *_HERE), wall=1.0, cpu=_CPU_SECONDS, gets=(_PLANNED, "-A")),
    Command(("top", "gpus"), cpu=_CPU_SECONDS, gets=("nodes,gpunodes,pods", "-A")),
    Command(("top", "nodes"), cpu=_CPU_SECONDS, gets=("nodes,gpunodes,pods", "-A")),
    Command(("top", "jobs"), cpu=_CPU_SECONDS, gets=("nodes,gpunodes,pods", "-A")),
    Command(("top", "projects"), cpu=_CPU_SECONDS, gets=("nodes,gpunodes,pods,gpuprojects", "-A")),
    Command(("projects",), cpu=_CPU_SECONDS, gets=("gpuprojects",)),
    Command(("fit", "-g", "0.5")),
    Command(("simulate",)),
    Command(("check",), finds=True),
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
        result["commands"] = _measure(running, options.rounds, waits)
    found = result["commands"]
    print(json.dumps(result, indent=2))  # noqa: T201
    for each in (_seconds(found), _beside_kubectl(found)):
        print(each, end="\n\n")  # noqa: T201
    missed = [name for name, each in found.items() if each["missed"]]
    for name in missed:
        say(f"missed its goal: {name}")
    return 1 if missed else 0


def _seconds(found: Mapping[str, Any]) -> str:
    """A table of wall and CPU seconds of each command."""
    rows = (
        (f"`kubectl gpu {name}`", span(each["wall"], 2), span(each["cpu"], 2), each["goal"])
        for name, each in found.items()
    )
    return table(("command", "seconds", "of CPU", "goal"), rows)


def _beside_kubectl(found: Mapping[str, Any]) -> str:
    """A table of CPU seconds beside those of ``kubectl get``."""
    head = ("command", "of CPU", "`kubectl get`", "of CPU", "times", "at most", "held")
    rows = []
    for name, each in found.items():
        if get := each.get("kubectl"):
            own, theirs = span(each["cpu"], 2), span(get["cpu"], 2)
            held = "yes" if get["held"] else "no"
            times, bound = f"{get['times']:.1f}", f"{get['bound']:.2f}"
            rows.append((f"`{name}`", own, f"`{get['words']}`", theirs, times, bound, held))
    return table(head, rows)


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


def _measure(running: Running, rounds: int, waits: str) -> dict[str, Any]:
    """Figures of each command by its words; a missed goal is told there."""
    program = [sys.executable, "-c", "from gpu_scheduler.main import kubectl_gpu; kubectl_gpu()"]
    kubectl = str(running.binary("kubectl"))
    shared = {**os.environ, **running.environment, "PYTHONPATH": str(ROOT / "operator")}
    shared.pop("PYTHONDONTWRITEBYTECODE", None)
    own: dict[Command, list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    gets: dict[Command, list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    for number in range(rounds + 1):  # the first one fills caches and is not counted
        for command in COMMANDS:
            words = [waits if word == WAITS else word for word in command.words]
            environment = {**shared, **(_COMPLETION if command.completes else {})}
            took = _run([*program, *words], environment, ends=(0, 1) if command.finds else (0,))
            got = None
            if command.gets:
                got = _run([kubectl, "get", *command.gets], shared)
            if number:
                own[command].append(took)
                gets[command] += [got] if got else []
    return {str(command): _judged(command, own[command], gets[command]) for command in COMMANDS}


def _judged(
    command: Command, own: Sequence[tuple[float, float]], gets: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    """Wall and CPU seconds of a command's rounds, and whether it keeps to what it may take."""
    goals = [f"{command.wall:g} s"] if command.wall else []
    goals += [f"{command.cpu:g} s of CPU"] if command.cpu else []
    wall, cpu = (spread(each[part] for each in own) for part in (0, 1))
    missed = bool(command.wall and wall["median"] > command.wall) or bool(
        command.cpu and cpu["median"] > command.cpu
    )
    found: dict[str, Any] = {"wall": wall, "cpu": cpu, "goal": ", ".join(goals) or "–"}
    if gets:
        theirs = spread(each[1] for each in gets)
        beside = _TIMES_KUBECTL * theirs["median"] + _MORE_SECONDS
        bound = min(beside, command.cpu or beside)
        held = cpu["median"] <= bound
        found["kubectl"] = {
            "words": "kubectl get " + " ".join(command.gets),
            "wall": spread(each[0] for each in gets),
            "cpu": theirs,
            "times": cpu["median"] / theirs["median"],
            "bound": bound,
            "held": held,
        }
        missed = missed or not held
    return {**found, "missed": missed}


def _run(
    words: Sequence[str], environment: Mapping[str, str], ends: Sequence[int] = (0,)
) -> tuple[float, float]:
    """Wall and CPU seconds of one call, the program's start included."""
    began = time.perf_counter()
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ends:
        raise RuntimeError(f"{words}: {said.decode()}")
    return wall, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
