"""Sweeps at size: ``python -m tests.perf.bench_sweeps [--trials N] [--kills N]``.

A control plane with fake nodes, raised client limits and the operator with the chart's own rights.
First a sweep of 1,000 trials, then the large one, whose leader is killed (SIGKILL) as often as
asked, evenly over its trials; last one of 100,000 trials that is run for a while. A trial's result
is one of its parameters, so what is stored can be compared with what was to be tried. The bound on
writes counts those that were stored, not dry runs and refusals (``writes_per_trial`` has all).
Prints one JSON object; ends with 1 when a bound of the design is broken.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop
import yaml
from tests.perf import writes
from tests.perf.install import cluster, pids, say
from tests.perf.procfs import memory
from tests.perf.schedulers import OPERATOR, start_operator
from tests.perf.settings import RAISED_QPS, ROOT
from tests.perf.sweep_watch import JobEyes, Sized, TrialEyes, stored
from tests.perf.workload import IMAGE, NAMESPACE

from cluster import Running, process
from gpu_scheduler.api.names import API_VERSION, GROUP, HPARAMS, VERSION
from gpu_scheduler.api.sweep import SweepSpec
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.kube.reflector import Reflector
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.core.trials import parameters_of

SEARCH: dict[str, Any] = {
    "algorithm": "random",
    "seed": 7,
    "objective": {"metric": "lr", "goal": "minimize"},
    "parameters": {
        "lr": {"logUniform": [1e-6, 1.0]},
        "batch": {"values": [32, 64, 128]},
        "layers": {"int": [1, 12]},
        "dropout": {"uniform": [0, 0.5]},
    },
}
MOST_BYTES, MOST_RESULT_WRITES, MOST_POD_WRITES = 20_000, 0.2, 2.0
_LEASE = {
    "GPUSCHED_LEASE_SECONDS": "10",
    "GPUSCHED_RENEW_DEADLINE_SECONDS": "8",
    "GPUSCHED_RETRY_SECONDS": "0.5",
}
_STALLED_SECONDS = 120.0
_STARTS = 5
_KWOK = "kwok.x-k8s.io"


@dataclass(slots=True)
class Eyes:
    """What watches."""

    client: Client
    running: Running
    jobs: JobEyes
    trials: TrialEyes
    ended_by_itself: int = 0  # leaders that lost their Lease


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether all bounds hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_sweeps", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000, help="of the large sweep")
    parser.add_argument("--small", type=int, default=1_000, help="trials of the small one")
    parser.add_argument("--kills", type=int, default=10, help="of its leader")
    parser.add_argument("--parallelism", type=int, default=400, help="trials at once")
    parser.add_argument("--huge", type=int, default=100_000, help="trials that are accepted; 0: no")
    parser.add_argument("--run", type=int, default=2_000, help="and how many of them are run")
    parser.add_argument("--nodes", type=int, default=100, help="fake nodes of 8 GPUs")
    parser.add_argument("--name", default="bench-sweeps", help="of the cluster")
    options = parser.parse_args(arguments)
    with cluster(options.name, nodes=options.nodes, qps=RAISED_QPS) as running:
        result = uvloop.run(_measure(running, options))
    print(json.dumps(result, indent=1))  # noqa: T201
    return 1 if result["broken"] else 0


async def _measure(running: Running, options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"options": vars(options), "broken": []}
    async with _eyes(running) as eyes:
        await _start(running)
        result["memory_empty"] = asdict(memory(_pid(running)))
        width = options.parallelism
        result["small"] = await _sweep(eyes, "small", options.small, width, kills=0)
        result["large"] = await _sweep(eyes, "large", options.trials, width, options.kills)
        running.stop_process(OPERATOR)
        await _start(running)
        await asyncio.sleep(10)
        result["memory_restarted"] = asdict(memory(_pid(running)))
        if options.huge:
            result["huge"] = await _huge(eyes, options.huge, options.run, width)
        for name in ("small", "large", "huge"):
            broken = result.get(name, {}).get("broken", ())
            result["broken"] += [f"{name}: {each}" for each in broken]
        running.stop_process(OPERATOR)
    return result


@asynccontextmanager
async def _eyes(running: Running) -> AsyncIterator[Eyes]:
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-sweeps", timeout_seconds=60.0) as client:
        jobs, trials = JobEyes(), TrialEyes()
        gpujobs = of_group(GROUP, VERSION, "gpujobs", NAMESPACE)
        reflectors = (
            Reflector(client, gpujobs, Sized, jobs),
            Reflector(client, core("pods", NAMESPACE), Pod, trials),
        )
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        for each in reflectors:
            await each.synced.wait()
        try:
            yield Eyes(client, running, jobs, trials)
        finally:
            for task in tasks:
                task.cancel()


def body(name: str, trials: int, parallelism: int) -> dict[str, Any]:
    """A sweep whose trials say one of their parameters as their result."""
    notes = {f"{_KWOK}/run-seconds": "1", f"{_KWOK}/termination-message-of": HPARAMS}
    container = {"name": "main", "image": IMAGE, "args": ["--lr", "${hparam.lr}"]}
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "gpu": 0.5,
            "parallelism": parallelism,
            "completions": trials,
            "sweep": SEARCH,
            "template": {"metadata": {"annotations": notes}, "spec": {"containers": [container]}},
        },
    }


async def _sweep(
    eyes: Eyes, name: str, trials: int, parallelism: int, kills: int
) -> dict[str, Any]:
    """Run a sweep to its end."""
    before = await writes.settled(eyes.client)
    stored_before = await writes.read(eyes.client, stored=True)
    began = time.monotonic()
    gpujobs = of_group(GROUP, VERSION, "gpujobs", NAMESPACE)
    await eyes.client.create(gpujobs, body(name, trials, parallelism))
    at = [trials * (number + 1) // (kills + 1) for number in range(kills)]
    for number, ended in enumerate(at, start=1):
        await _until_ended(eyes, name, ended)
        say(f"  {name}: kill {number} after {ended} trials, {time.monotonic() - began:.0f} s")
        os.kill(_pid(eyes.running), signal.SIGKILL)
        eyes.running.stop_process(OPERATOR)
        await _start(eyes.running)
    await _until_ended(eyes, name, trials)
    await _until(lambda: eyes.jobs.status[name].phase == "Succeeded")
    seconds = time.monotonic() - began
    say(f"  {name}: {trials} trials in {seconds:.0f} s")
    written = await writes.settled(eyes.client, pause_seconds=6.0)  # results come 5 s later
    written.subtract(before)
    kept = await writes.read(eyes.client, stored=True)
    kept.subtract(stored_before)
    found, largest = await stored(eyes.client, name)
    used = asdict(memory(_pid(eyes.running)))
    ran = eyes.trials.of(name)
    search = SweepSpec.model_validate(SEARCH).search()
    wrong = [
        trial
        for trial, outcome in found.items()
        if outcome.state is not TrialState.SUCCEEDED
        or outcome.value != parameters_of(search, trial)["lr"]
    ]
    per_trial = {k: round(n / trials, 4) for k, n in sorted(writes.counted(written).items())}
    pods = sum(ran.values())
    pod_writes = (kept["POST pods"] + kept["POST pods/binding"]) / max(pods, 1)
    results = (written["POST configmaps"] + written["PATCH configmaps"]) / trials
    raw = await eyes.client.request("GET", of_group(GROUP, VERSION, "gpujobs", NAMESPACE, name))
    broken = [
        text
        for holds, text in (
            (set(found) == set(range(trials)), f"{trials - len(found)} trials are not stored"),
            (not wrong, f"wrong rows: {wrong[:10]}"),
            (ran.keys() == set(range(trials)), "trials without a pod"),
            (not eyes.trials.different, f"two values: {eyes.trials.different[:5]}"),
            (eyes.trials.at_once <= parallelism, f"{eyes.trials.at_once} pods at once"),
            (max(eyes.jobs.bytes_at_most[name], len(raw)) < MOST_BYTES, "the GPUJob is too large"),
            (pod_writes <= MOST_POD_WRITES, f"{pod_writes:.3f} writes per pod until bound"),
            (results <= MOST_RESULT_WRITES, f"{results:.3f} writes per trial for results"),
        )
        if not holds
    ]
    result = {
        "trials": trials,
        "kills": kills,
        "leaders_ended_by_themselves": eyes.ended_by_itself,
        "seconds": round(seconds, 1),
        "trials_per_second": round(trials / seconds, 1),
        "pods": pods,
        "trials_run_again": sum(1 for n in ran.values() if n > 1),
        "pods_at_once": eyes.trials.at_once,
        "gpujob_versions": eyes.jobs.versions[name],
        "gpujob_bytes_at_most": eyes.jobs.bytes_at_most[name],
        "gpujob_bytes_with_metadata": len(raw),
        "results_bytes_at_most": largest,
        "pod_writes_until_bound": round(pod_writes, 4),
        "result_writes_per_trial": round(results, 4),
        "writes_per_trial": per_trial,
        "memory": used,
        "broken": broken,
    }
    say(json.dumps(result))  # the next part may take long
    return result


async def _huge(eyes: Eyes, trials: int, run: int, parallelism: int) -> dict[str, Any]:
    """Accept a sweep that nobody will finish, run some of it, and weigh everything."""
    say(f"  huge: {trials} trials")
    name, began = "huge", time.monotonic()
    preview = await asyncio.to_thread(_preview, trials)
    gpujobs = of_group(GROUP, VERSION, "gpujobs", NAMESPACE)
    await eyes.client.create(gpujobs, body(name, trials, parallelism))
    await _until_ended(eyes, name, run)
    seconds = time.monotonic() - began
    path = of_group(GROUP, VERSION, "gpujobs", NAMESPACE, name)
    await eyes.client.merge_patch(path, {"spec": {"suspend": True}})
    await asyncio.sleep(6)
    found, largest = await stored(eyes.client, name)
    jobs = await eyes.client.get(job_path(NAMESPACE))
    own = [len(json.dumps(j)) for j in jobs["items"] if j["metadata"]["name"].startswith(name)]
    used = asdict(memory(_pid(eyes.running)))
    await eyes.client.delete(path, propagation="Background")
    broken = []
    if eyes.jobs.bytes_at_most[name] >= MOST_BYTES:
        broken.append("the GPUJob is too large")
    if len(own) > run // 1000 + 2:
        broken.append(f"{len(own)} Jobs for {run} trials")
    if eyes.trials.different:
        broken.append(f"two values: {eyes.trials.different[:5]}")
    return {
        "trials": trials,
        "run": len(found),
        "seconds": round(seconds, 1),
        "gpujob_bytes_at_most": eyes.jobs.bytes_at_most[name],
        "results_bytes_at_most": largest,
        "jobs": len(own),
        "job_bytes_at_most": max(own, default=0),
        "preview": preview,
        "memory": used,
        "broken": broken,
    }


def _preview(trials: int) -> dict[str, float]:
    """Time to show the first trials, and to show all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.yaml"
        path.write_text(yaml.safe_dump(body("huge", trials, 10)))
        found = {}
        for label, count in (("first_20_seconds", 20), ("all_seconds", trials)):
            began = time.monotonic()
            module = (sys.executable, "-m", "gpu_scheduler.main", "sweep", "preview")
            argv = (*module, "-f", str(path), "-n", str(count), "-o", "csv")
            env = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
            made = subprocess.run(argv, check=True, capture_output=True, text=True, env=env)
            found[label] = round(time.monotonic() - began, 2)
            assert len(made.stdout.splitlines()) == count + 1, made.stdout[:500]
    return found


async def _start(running: Running) -> None:
    """Start the operator; on a machine that is too busy for it, again."""
    for attempt in range(_STARTS):
        try:
            await start_operator(running, _LEASE)
            return
        except (TimeoutError, RuntimeError) as error:
            if attempt == _STARTS - 1:
                raise
            say(f"  the operator did not start: {type(error).__name__}; again")
            running.stop_process(OPERATOR)


async def _keep_running(eyes: Eyes) -> None:
    """Start an operator that has lost its Lease again, as a kubelet would."""
    if not process.is_alive(eyes.running.processes[OPERATOR]):
        say("  the operator has ended by itself (a busy machine?): starting it again")
        eyes.ended_by_itself += 1
        eyes.running.stop_process(OPERATOR)
        await _start(eyes.running)


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(int(_STALLED_SECONDS / 0.1)):
        if condition():
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("the sweep does not end")


async def _until_ended(eyes: Eyes, name: str, trials: int) -> None:
    """Until so many trials have ended; an error when nothing goes on."""
    last, since, said = -1, time.monotonic(), 0
    while (ended := eyes.jobs.ended(name)) < trials:
        await _keep_running(eyes)
        if ended != last:
            last, since = ended, time.monotonic()
        if time.monotonic() - since > _STALLED_SECONDS:
            raise TimeoutError(f"{name}: nothing has ended since {ended} trials")
        if ended // 1000 > said:
            said = ended // 1000
            say(f"  {name}: {ended} trials have ended")
        await asyncio.sleep(0.05)


def _pid(running: Running) -> int:
    return pids(running)[OPERATOR]


if __name__ == "__main__":
    sys.exit(main())
