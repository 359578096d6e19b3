"""The benchmark: ``python -m tests.perf``, or ``make bench``.

Brings up a control plane with fake nodes, measures throughput, writes, latency and the operator's
own needs on it, and writes build/bench/, docs/measurements/ and docs/benchmarks.md. What it started
is stopped at the end, also after Ctrl-C.
"""

import argparse
import asyncio
import json
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop
from tests.perf import (
    admission,
    audit,
    bench_gpucap,
    bench_planner,
    contenders,
    latency,
    queues,
    report,
    scale,
)
from tests.perf.bound import BoundWatch
from tests.perf.install import cluster, say, set_qps
from tests.perf.machine import machine
from tests.perf.schedulers import (
    AUTO,
    CORE_VARIANTS,
    SHARE,
    STOCK,
    VARIANTS,
    Variant,
    check_alive,
)
from tests.perf.settings import FULL, PARTS, QUICK, RAISED_QPS, ROOT, Settings, Sizes
from tests.perf.throughput import Bench
from tests.perf.workload import NAMESPACE

from cluster import ClusterError, Running
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.errors import ApiError
from gpu_scheduler.kube.kubeconfig import from_kubeconfig

PAGE = ROOT / "docs" / "benchmarks.md"
_RAW, _KEPT = ROOT / "build" / "bench", ROOT / "docs" / "measurements"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and write it down."""
    options = _parser().parse_args(arguments)
    sizes = _sizes(options)
    settings = Settings(
        options.name, sizes, tuple(options.parts), tuple(options.variants), tuple(options.scenes)
    )
    rivals = options.operator or [contenders.parse(str(ROOT))]
    if not options.no_stock:
        rivals = [*rivals, contenders.STOCK]
    # A service that is stopped should clean up like a user who presses Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    result: dict[str, Any] = {}
    try:
        measure(settings, rivals, result)
    except (ClusterError, ApiError, TimeoutError, RuntimeError) as error:
        say(f"error: {type(error).__name__}: {error}")
        return _unfinished(result, 1)
    except KeyboardInterrupt:
        say("interrupted; what was started has been stopped")
        return _unfinished(result, 130)
    whole = settings.parts == PARTS and not (settings.variants or options.scenes) and sizes == FULL
    paths = write(result, publish=whole)
    print(report.page(result))  # noqa: T201
    say("written: " + ", ".join(str(path.relative_to(ROOT)) for path in paths))
    return 0


def measure(
    settings: Settings, rivals: Sequence[contenders.Contender], result: dict[str, Any]
) -> None:
    """Put all figures into ``result``, as JSON, each as soon as it is there."""
    sizes = settings.sizes
    began = datetime.now(UTC)
    result |= {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "settings": {
            "command": " ".join(["python -m tests.perf", *map(_without_folder, sys.argv[1:])]),
            "raised_qps": RAISED_QPS,
            **{name: getattr(sizes, name) for name in sizes.__slots__},
        },
    }
    if "caps" in settings.parts:
        say("libgpucap against the bare pretended driver")
        result["caps"] = bench_gpucap.measure()
    if "planner" in settings.parts:
        say("the planner alone")
        result["planner"] = bench_planner.figures(repeat=5)
    if set(settings.parts) & {"raised", "default", "latency", "scale"}:
        with cluster(settings.name, nodes=sizes.nodes, qps=RAISED_QPS) as running:
            uvloop.run(_on_one_control_plane(running, settings, result))
    if "audit" in settings.parts:
        name = f"{settings.name}-audit"
        with cluster(name, nodes=sizes.nodes, qps=RAISED_QPS, audit=True) as running:
            uvloop.run(_writes_by_client(running, settings, result))
    if "admission" in settings.parts:
        with cluster(f"{settings.name}-admission", nodes=1, qps=RAISED_QPS) as running:
            uvloop.run(_cost_of_policies(running, settings, result))
    if "queues" in settings.parts:
        say("many jobs that wait")
        part = result.setdefault("queues", {})
        queues.measure(settings, rivals, part, lambda: write(result, publish=False))
    result["seconds"] = round((datetime.now(UTC) - began).total_seconds())


async def _on_one_control_plane(
    running: Running, settings: Settings, result: dict[str, Any]
) -> None:
    sizes, parts = settings.sizes, settings.parts
    async with _bench(running, settings) as bench:
        for part, qps, rounds, candidates in (
            ("raised", RAISED_QPS, sizes.rounds_raised, VARIANTS),
            ("default", None, sizes.rounds_default, CORE_VARIANTS),
        ):
            if part == "default" and {"default", "latency"} & set(parts):
                await asyncio.to_thread(set_qps, running, qps)
            if part in parts:
                say(f"throughput, client limits {qps or 'as they come'}")
                variants = _chosen(settings, candidates)
                runs: list[dict[str, Any]] = []
                async for run in bench.rounds(variants, rounds):
                    runs.append(run.to_json())
                    result[part] = {"runs": runs, "summary": report.summary(runs)}
        if "latency" in parts:
            say("latency")
            result["latency"] = {
                variant.title: await latency.measure(bench, variant) for variant in (AUTO, STOCK)
            }
        if "scale" in parts:
            say("scale")
            await asyncio.to_thread(set_qps, running, RAISED_QPS)
            result["scale"] = await scale.measure(bench)


async def _writes_by_client(running: Running, settings: Settings, result: dict[str, Any]) -> None:
    say("writes by client, from the audit log")
    log = running.log_file("audit")
    found = {}
    async with _bench(running, settings) as bench:
        for variant in _chosen(settings, (*CORE_VARIANTS, SHARE)):
            run = await bench.run(variant, 0)
            counts = audit.by_client(log, run.began, run.ended)
            found[variant.name] = {who: n / run.pods for who, n in counts.most_common()}
    result["writes_by_client"] = found


async def _cost_of_policies(running: Running, settings: Settings, result: dict[str, Any]) -> None:
    say("what the policies for pods that ask cost")
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-harness", timeout_seconds=30.0) as client:
        result["admission"] = await admission.measure(running, client, settings.sizes)


def _chosen(settings: Settings, candidates: Sequence[Variant]) -> Sequence[Variant]:
    """The variants that were named, or else these."""
    return [v for v in VARIANTS if v.name in settings.variants] or candidates


@asynccontextmanager
async def _bench(running: Running, settings: Settings) -> AsyncIterator[Bench]:
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-harness", timeout_seconds=30.0) as client:
        watch = BoundWatch(client, NAMESPACE, lambda: check_alive(running))
        watching = asyncio.create_task(watch.reflector.run())
        try:
            await watch.reflector.synced.wait()
            yield Bench(running, client, watch, settings.sizes)
        finally:
            watching.cancel()


def _unfinished(result: dict[str, Any], code: int) -> int:
    if set(result) & {*PARTS}:
        say("what there is so far: " + str(write(result, publish=False)[0].relative_to(ROOT)))
    return code


def write(result: dict[str, Any], *, publish: bool) -> list[Path]:
    """Write the figures; only a complete, full run becomes the published one."""
    folders = [_RAW, _KEPT] if publish else [_RAW]
    paths = []
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(folder / f"bench-{result['date']}.json")
        paths[-1].write_text(json.dumps(result, indent=1) + "\n")
    if publish:
        report.write_page(PAGE, report.page(result))
        paths.append(PAGE)
    return paths


def _sizes(options: argparse.Namespace) -> Sizes:
    """How much is measured, with what was named in place of the usual."""
    sizes = QUICK if options.quick else FULL
    if options.pods:
        sizes = replace(sizes, pods=options.pods)
    if options.rounds:
        names = ("rounds_raised", "rounds_default", "admission_rounds", "queue_rounds")
        sizes = replace(sizes, **dict.fromkeys(names, options.rounds))
    return sizes


def _checkout(text: str) -> contenders.Contender:
    try:
        return contenders.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _without_folder(argument: str) -> str:
    """An argument as it is published: where a checkout lies on this machine is of no interest."""
    name, equals, path = argument.rpartition("=")
    return shlex.quote(f"{name}{equals}{Path(path).name if '/' in path else path}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, to try the harness")
    parser.add_argument("--name", default="bench", help="of the cluster, default bench")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, help="only these; nothing is published"
    )
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--variants", nargs="+", choices=names, default=[], help="only these")
    parser.add_argument("--pods", type=int, help="of the one Job or Deployment of a run")
    parser.add_argument(
        "--rounds", type=int, help="how often each variant runs, each scene is played"
    )
    of_queues = parser.add_argument_group("the part queues")
    of_queues.add_argument(
        "--operator",
        nargs="+",
        type=_checkout,
        metavar="[NAME=]PATH",
        help="checkouts whose operator and chart are measured side by side; default: this one",
    )
    of_queues.add_argument(
        "--scenes", nargs="+", choices=queues.NAMES, default=[], help="only these"
    )
    of_queues.add_argument("--no-stock", action="store_true", help="without the stock scheduler")
    return parser


if __name__ == "__main__":
    sys.exit(main())
