"""What strangers at its ports cost the operator: ``python -m tests.perf.bench_ports``.

A control plane, 2,000 GPUs on fake nodes, the operator with its default Lease, and trials whose
reports are sent from one address while ``ports_load`` attacks from others: 200 scrapes at a time,
1,000 connections that say nothing, a flood of made-up tokens, and all of it. For each, how late the
Lease was renewed, how long the event loop stood still (the operator's own histogram), what became
of the honest reports, and how often the API server was asked whose a token is. Then, in this
process, logs that are dear to search. Prints JSON and a table; ends with 1 when the Lease was over
a second late, or an honest report was lost.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

import uvloop
from tests.api.free_port import free_port
from tests.perf.install import RELEASE, cluster, pids, say
from tests.perf.machine import machine
from tests.perf.procfs import cpu_seconds, memory
from tests.perf.schedulers import OPERATOR, start_operator
from tests.perf.settings import GPUS_PER_NODE, RAISED_QPS, ROOT
from tests.perf.workload import IMAGE, NAMESPACE

from cluster import Running
from gpu_scheduler.api.names import (
    API_VERSION,
    GROUP,
    LEASE,
    REPORT_AUDIENCE,
    REPORT_URL,
    VERSION,
)
from gpu_scheduler.api.search import Objective
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import core, lease, of_group
from gpu_scheduler.sweeps.runtime.log_search import SearchThread

HONEST = "127.0.0.9"
_TRIALS = 20
_RETRY_SECONDS = 2.0  # the Lease is renewed this often
_LATE_SECONDS = 1.0
_REPORT_SECONDS = 5.0
_TOKEN_SECONDS = 3600
_STALL = "gpusched_event_loop_stall_seconds"
_REVIEWS = "gpusched_token_reviews_total"
ATTACKS: dict[str, dict[str, int]] = {
    "nothing": {},
    "200 scrapes at a time": {"scrapes": 200},
    "1,000 idle connections": {"idle": 1000},
    "50 senders of made-up tokens": {"flood": 50},
    "all of it": {"scrapes": 200, "idle": 1000, "flood": 50},
}
DEAR = "(?:(?:(?:(?:a{0,30}){0,30}b?)c?){0,1}d?)*val=([0-9.]+)"
LOGS = {
    "244 lines, a dear expression": b"\n".join([b"a" * 4096] * 244),
    "1 MB of \\r": b"\r" * 10**6,
}


@dataclass(frozen=True, slots=True)
class Trial:
    """A pod that reports: where, and with which token."""

    uid: str
    path: str
    token: str


@dataclass(slots=True)
class Reports:
    """Honest ones."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_ports", description=__doc__)
    parser.add_argument("--gpus", type=int, default=2000, help="on fake nodes of 8")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each attack")
    parser.add_argument("--name", default="bench-ports", help="of the cluster")
    options = parser.parse_args(arguments)
    nodes = options.gpus // GPUS_PER_NODE
    result: dict[str, Any] = {"machine": machine(), "options": vars(options), "attacks": {}}
    with cluster(options.name, nodes=nodes, qps=RAISED_QPS) as running:
        uvloop.run(_measure(running, options.seconds, result["attacks"]))
    result["logs"] = uvloop.run(_logs())
    result["broken"] = [
        f"{name}: {text}"
        for name, found in result["attacks"].items()
        for holds, text in (
            (found["lease_late_seconds"] <= _LATE_SECONDS, "the Lease was renewed too late"),
            (set(found["reports"]) == {"200"}, f"reports were lost: {found['reports']}"),
            (not found["leaders_lost"], "the leader has ended"),
        )
        if not holds
    ]
    print(json.dumps(result, indent=1))  # noqa: T201
    print(table(result))  # noqa: T201
    return 1 if result["broken"] else 0


def table(result: dict[str, Any]) -> str:
    """For people."""
    lines = [
        "| attack | Lease late by | loop stood still | reports: ok, median, slowest | CPU |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, found in result["attacks"].items():
        ok = found["reports"].get("200", 0)
        lines.append(
            f"| {name} | {found['lease_late_seconds'] * 1000:.0f} ms | {found['stall']} | "
            f"{ok} of {sum(found['reports'].values())}, {found['report_median_ms']:.0f} ms, "
            f"{found['report_slowest_ms']:.0f} ms | {found['cpu_percent']:.0f} % |"
        )
    lines += ["", "| log | searched for | event loop late by at most |", "| --- | --- | --- |"]
    for name, log in result["logs"].items():
        lines.append(f"| {name} | {log['seconds']:.2f} s | {log['late_ms']:.1f} ms |")
    return "\n".join(lines)


async def _measure(running: Running, seconds: float, found: dict[str, Any]) -> None:
    admin, reports = free_port(), free_port()
    settings = {
        "GPUSCHED_ADMIN_PORT": str(admin),
        "GPUSCHED_REPORT_PORT": str(reports),
        "GPUSCHED_REPORT_HOST": "127.0.0.1",
        "GPUSCHED_REPORT_URL": f"http://127.0.0.1:{reports}/reports",
    }
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-ports", timeout_seconds=30.0) as client:
        await start_operator(running, settings)
        trials = await _trials(client)
        for name, attack in ATTACKS.items():
            say(f"  {name}")
            found[name] = await _under(running, client, admin, reports, trials, attack, seconds)
            say(f"  {json.dumps(found[name])}")
            await asyncio.sleep(5)
    running.stop_process(OPERATOR)


async def _under(
    running: Running,
    client: Client,
    admin: int,
    port: int,
    trials: list[Trial],
    attack: dict[str, int],
    seconds: float,
) -> dict[str, Any]:
    pid = pids(running)[OPERATOR]
    more = [f"--{kind}={count}" for kind, count in attack.items()]
    reviews = sum((await _metric(admin, _REVIEWS)).values())
    load = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.perf.ports_load", f"--admin={admin}", f"--reports={port}"),
        *(f"--pod={trials[0].uid}", *more),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    await asyncio.sleep(3 if attack else 0)  # until it has begun
    before, cpu, began = await _stalls(admin), cpu_seconds(pid), time.monotonic()
    renewals: list[float] = []
    holders: set[str] = set()
    reports = Reports()
    tasks = [asyncio.create_task(_watch_lease(client, renewals, holders))]
    tasks += [asyncio.create_task(_report(port, trial, reports)) for trial in trials]
    await asyncio.sleep(seconds)
    took, used = time.monotonic() - began, cpu_seconds(pid) - cpu
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    after = await _stalls(admin)
    attacked, _ = await load.communicate(b"")
    gaps = [late - early for early, late in zip(renewals, renewals[1:], strict=False)]
    gaps.append(began + took - renewals[-1] if renewals else took)
    slow = sorted(reports.seconds) or [0.0]
    return {
        "lease_renewals": len(renewals),
        "lease_late_seconds": round(max(0.0, max(gaps) - _RETRY_SECONDS), 3),
        "leaders_lost": len(holders) - 1,
        "stall": _longest(before, after),
        "stalls": {le: after[le] - before.get(le, 0) for le in after},
        "reports": dict(reports.answers),
        "report_median_ms": round(slow[len(slow) // 2] * 1000, 1),
        "report_p99_ms": round(_p99(slow) * 1000, 1),
        "report_slowest_ms": round(slow[-1] * 1000, 1),
        "token_reviews": sum((await _metric(admin, _REVIEWS)).values()) - reviews,
        "attack": json.loads(attacked),
        "cpu_percent": round(used / took * 100, 1),
        "rss_mib": round(memory(pid).rss_mib),
    }


async def _trials(client: Client) -> list[Trial]:
    """Trials that run, with the tokens that their kubelets would have got."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": "honest", "namespace": NAMESPACE},
        "spec": {
            "gpu": 0.5,
            "image": IMAGE,
            "parallelism": _TRIALS,
            "completions": _TRIALS,
            "sweep": {
                "algorithm": "random",
                "objective": {"metric": "loss"},
                "parameters": {"lr": {"uniform": [0, 1]}},
                "earlyStopping": {"type": "median", "minTrials": 5},
            },
        },
    }
    await client.create(of_group(GROUP, VERSION, "gpujobs", NAMESPACE), body)
    async with asyncio.timeout(120):
        while True:
            pods = (await client.get(core("pods", NAMESPACE)))["items"]
            running = sum(pod["status"].get("phase") == "Running" for pod in pods)
            if len(pods) == running == _TRIALS:
                return [await _trial(client, pod) for pod in pods]
            await asyncio.sleep(0.2)


async def _trial(client: Client, pod: dict[str, Any]) -> Trial:
    meta, account = pod["metadata"], pod["spec"]["serviceAccountName"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    spec = {
        "audiences": [REPORT_AUDIENCE],
        "expirationSeconds": _TOKEN_SECONDS,
        "boundObjectRef": bound,
    }
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = core("serviceaccounts", meta["namespace"], account, "token")
    answer = await client.create(path, body, dict)
    url = meta["annotations"][REPORT_URL]
    return Trial(meta["uid"], "/" + url.split("/", 3)[3], answer["status"]["token"])


async def _report(port: int, trial: Trial, reports: Reports) -> None:
    """Report every second, each time on a connection of its own, as the examples do."""
    step = 0
    while True:
        step += 1
        body = json.dumps({"step": step, "metrics": {"loss": 1 / step}})
        head = f"POST {trial.path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        head += f"Authorization: Bearer {trial.token}\r\n"
        began = time.monotonic()
        try:
            async with asyncio.timeout(_REPORT_SECONDS):
                text = f"{head}Content-Length: {len(body)}\r\n\r\n{body}"
                answer = await _exchange(port, text)
            reports.answers[answer.split()[1].decode() if answer else "closed"] += 1
        except (OSError, TimeoutError) as error:
            reports.answers[type(error).__name__] += 1
        reports.seconds.append(time.monotonic() - began)
        await asyncio.sleep(1)


async def _exchange(port: int, request: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(HONEST, 0))
    try:
        writer.write(request.encode())
        return await reader.read()
    finally:
        writer.close()


async def _watch_lease(client: Client, renewals: list[float], holders: set[str]) -> None:
    """Note when the Lease's renewTime changes; the times are ours."""
    path, last = lease(RELEASE, LEASE), ""
    while True:
        spec = (await client.get(path))["spec"]
        holders.add(spec["holderIdentity"])
        if spec["renewTime"] != last:
            last = spec["renewTime"]
            renewals.append(time.monotonic())
        await asyncio.sleep(0.02)


async def _stalls(admin: int) -> dict[str, float]:
    """Rings of the operator's own watch by how late they were at most; empty when it has none."""
    return await _metric(admin, f"{_STALL}_bucket")


async def _metric(admin: int, name: str) -> dict[str, float]:
    """Figures of a metric by its first label."""
    request = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    text = (await _exchange(admin, request)).decode()
    found = {}
    for line in text.splitlines():
        if line.startswith(f"{name}{{"):
            found[line.split('"')[1]] = float(line.split()[-1])
    return found


def _longest(before: dict[str, float], after: dict[str, float]) -> str:
    """The bucket of the longest stall between two looks."""
    if not after:
        return "not measured"
    rings = after["+Inf"] - before["+Inf"]
    bound = next(le for le in after if after[le] - before[le] >= rings)
    return (
        f"above {list(after)[-2]} s" if bound == "+Inf" else f"at most {float(bound) * 1000:g} ms"
    )


async def _logs() -> dict[str, dict[str, float]]:
    """Search dear logs as the operator does, and see how late a timer of 5 ms rings meanwhile."""
    found = {}
    thread = SearchThread()
    for name, log in LOGS.items():
        late: list[float] = []
        ticker = asyncio.create_task(_tick(late))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        (reading, _) = await thread(log, DEAR, Objective("val"))
        seconds = time.monotonic() - began
        ticker.cancel()
        with suppress(asyncio.CancelledError):
            await ticker
        assert reading.message, "it has no result"
        found[name] = {"seconds": round(seconds, 3), "late_ms": round(max(late) * 1000, 1)}
    thread.close()
    return found


async def _tick(late: list[float]) -> None:
    while True:
        due = time.monotonic() + 0.005
        await asyncio.sleep(0.005)
        late.append(time.monotonic() - due)


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98] if len(values) > 1 else values[0]


if __name__ == "__main__":
    sys.exit(main())
