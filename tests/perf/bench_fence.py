"""What the fence at the API server costs: ``python -m tests.perf.bench_fence [--rounds N]``.

Paired runs with the policy on terms in force and with its bindings deleted, on one control plane;
the order turns from round to round, and ratios are taken within a round. Placing writes name the
pod's version in both, so what is compared is the policy. Besides the rate there is the mean time of
a placing request and of the policy alone, from the API server's own histograms. Prints one JSON
object.
"""

import argparse
import asyncio
import json
import re
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import uvloop
from tests.perf.bindings import Bindings
from tests.perf.bound import BoundWatch
from tests.perf.install import RELEASE, cluster, say
from tests.perf.machine import machine
from tests.perf.schedulers import BIND, GATE, Variant, check_alive
from tests.perf.settings import FULL, QUICK, RAISED_QPS, Sizes
from tests.perf.throughput import Bench
from tests.perf.workload import NAMESPACE

from cluster import Running
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig

_POLICY = f"{RELEASE}-term"
_BINDINGS = tuple(f"validatingadmissionpolicybinding/{_POLICY}-{path}" for path in ("bind", "gate"))
_IN_FORCE_SECONDS = 5.0  # until the API server has read what was changed of its policies
_LINE = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_REQUEST = "apiserver_request_duration_seconds"
_CHECK = "apiserver_validating_admission_policy_check_duration_seconds"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="to try the harness")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else FULL
    with cluster("bench-fence", nodes=sizes.nodes, qps=RAISED_QPS) as running:
        found = uvloop.run(_measure(running, sizes, options.rounds))
    command = " ".join(["python -m tests.perf.bench_fence", *(arguments or sys.argv[1:])])
    result = {"machine": machine(), "command": command, "pods": sizes.pods, **found}
    print(json.dumps(result, indent=1))  # noqa: T201


async def _measure(running: Running, sizes: Sizes, rounds: int) -> dict[str, Any]:
    bindings = Bindings(running, *_BINDINGS)
    runs: list[dict[str, Any]] = []
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-harness", timeout_seconds=30.0) as client:
        watch = BoundWatch(client, NAMESPACE, lambda: check_alive(running))
        watching = asyncio.create_task(watch.reflector.run())
        await watch.reflector.synced.wait()
        bench = Bench(running, client, watch, sizes)
        for number in range(rounds):
            for fenced in (True, False) if number % 2 == 0 else (False, True):
                await asyncio.to_thread(bindings.put_back if fenced else bindings.take_away)
                await asyncio.sleep(_IN_FORCE_SECONDS)
                runs += [await _run(bench, client, v, number, fenced) for v in (BIND, GATE)]
        watching.cancel()
    return {"runs": runs, "summary": {v.name: summary(runs, v.name) for v in (BIND, GATE)}}


async def _run(
    bench: Bench, client: Client, variant: Variant, number: int, fenced: bool
) -> dict[str, Any]:
    before = await _histograms(client)
    run = await bench.run(variant, number)
    after = await _histograms(client)
    verb, subresource = ("POST", "binding") if variant is BIND else ("PATCH", "")
    figures = {
        "path": variant.name,
        "round": number,
        "fenced": fenced,
        "pods_per_second": run.pods_per_second,
        "placing_request_ms": mean_ms(before, after, f"request {verb} {subresource}".strip()),
        "policy_ms": mean_ms(before, after, "policy"),
    }
    say("  " + json.dumps(figures))
    return figures


def summary(runs: Sequence[dict[str, Any]], path: str) -> dict[str, Any]:
    """Medians with and without, and of the ratios within each round (with / without)."""
    of_path = [run for run in runs if run["path"] == path]
    by = {(run["round"], run["fenced"]): run for run in of_path}
    ratios = sorted(
        by[n, True]["pods_per_second"] / by[n, False]["pods_per_second"]
        for n in {run["round"] for run in of_path}
    )
    found: dict[str, Any] = {
        "ratio": statistics.median(ratios),
        "ratio_least": ratios[0],
        "ratio_most": ratios[-1],
    }
    for fenced, word in ((True, "with"), (False, "without")):
        for key in ("pods_per_second", "placing_request_ms", "policy_ms"):
            values = [r[key] for r in of_path if r["fenced"] is fenced and r[key] is not None]
            found[f"{key}_{word}"] = statistics.median(values) if values else None
    return found


async def _histograms(client: Client) -> dict[str, tuple[float, float]]:
    """Sum of seconds and count, of placing requests by verb and of the policy."""
    text = (await client.request("GET", "/metrics", accept="text/plain")).decode()
    return histograms(text)


def histograms(text: str) -> dict[str, tuple[float, float]]:
    """The same, of the text of /metrics."""
    found: dict[str, list[float]] = {}
    for line in _LINE.finditer(text):
        name, _, part = line["name"].rpartition("_")
        if name not in (_REQUEST, _CHECK) or part not in ("sum", "count"):
            continue
        labels = dict(_LABEL.findall(line["labels"]))
        if name == _CHECK:
            if labels.get("policy") != _POLICY:
                continue
            key = "policy"
        elif labels.get("resource") == "pods" and labels.get("dry_run", "") == "":
            key = f"request {labels.get('verb')} {labels.get('subresource', '')}".strip()
        else:
            continue
        sums = found.setdefault(key, [0.0, 0.0])
        sums[part == "count"] += float(line["value"])
    return {key: (total, count) for key, (total, count) in found.items()}


def mean_ms(
    before: dict[str, tuple[float, float]], after: dict[str, tuple[float, float]], key: str
) -> float | None:
    """Mean milliseconds of what happened in between; None when nothing did."""
    (s0, n0), (s1, n1) = before.get(key, (0.0, 0.0)), after.get(key, (0.0, 0.0))
    return 1000 * (s1 - s0) / (n1 - n0) if n1 > n0 else None


if __name__ == "__main__":
    main()
