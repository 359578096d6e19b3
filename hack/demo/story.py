"""The demo itself: what happens in which order, and what is shown of it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

from cluster import ClusterError, Running
from demo import bars, dashboard, jobs, living
from demo.environment import GPUS, NAME, SERVER_GPUS, Prepared, prepare
from demo.observer import JOBS, Observer
from demo.terminal import BOLD, DIM, heading, paint, step, taken

# What a container prints about itself: name and value, a line each.
INSIDE = """
echo "NVIDIA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES"
echo "GPUs that are there=$(ls /dev/fakegpu 2>/dev/null | xargs)"
echo "GPU_MEMORY_LIMIT_MIB=$GPU_MEMORY_LIMIT_MIB"
echo "/etc/gpu-scheduler/memory-limit-mib=$(cat /etc/gpu-scheduler/memory-limit-mib)"
echo "CUPY_GPU_MEMORY_LIMIT=$CUPY_GPU_MEMORY_LIMIT"
"""


def tell() -> None:
    """Set everything up, run the jobs and show what there is to see.

    Raises:
        ClusterError: a part did not start, or a job did not do what it should.
    """
    # What `make` did before, on a new machine the virtual environment, is part of the wait.
    started = float(os.environ.get("STARTED") or time.time())
    before = time.time() - started
    print(paint("GPU scheduler: two jobs share one GPU, on a Kubernetes of this machine", BOLD))
    with ThreadPoolExecutor(max_workers=8) as beside:
        prepared = prepare(beside)
        try:
            _tell(prepared, before, started)
        finally:
            if prepared.dashboard:
                prepared.dashboard.give_up()


def _tell(prepared: Prepared, before: float, started: float) -> None:
    running = prepared.running
    seen = Observer(running.client())
    real = running.state.real_node
    waiting = jobs.name_of(jobs.WAITING)

    with step("frac05 and frac03 run"):
        jobs.remove(running, waiting)  # else it might be first, now that it fits
        for name in jobs.SHARING:
            jobs.submit(running, jobs.example(name))
        for name in jobs.SHARING:
            seen.until(lambda job=name: bool(seen.running(job)), f"{name} runs")  # type: ignore[misc]
    node = str(seen.running("frac05")[0]["spec"]["nodeName"])
    files = (jobs.HALF_SWEEP, jobs.SWEEP) if real else (jobs.SWEEP,)
    sweeps = [jobs.name_of(file) for file in files]
    with step(f"hpo1 in short: two of four trials run of {' and '.join(sweeps)}"):
        for file in files:
            jobs.submit(running, jobs.example(file))
        jobs.submit(running, jobs.whole_server(node, GPUS if real else SERVER_GPUS))
        seen.until(lambda: bool(seen.status(waiting).get("reason")), f"{waiting} has a verdict")
        seen.until(
            lambda: all(len(seen.running(name)) == 2 for name in sweeps),
            "two trials of hpo1 run",
        )
    _show_gpus(seen)
    picture = time.time() - started
    if prepared.dashboard:
        prepared.dashboard.go_on()
    _show_caps(running, seen)
    _show_waiting(seen)
    heading("hpo1: four trials, two at a time")
    for name in sweeps:
        _show_sweep(seen, name)
    if real:
        written = " ".join(sorted(path.name for path in jobs.RESULTS.iterdir()))
        print(f"  files that the containers wrote to their shared folder: {written}")
    why_not = _with_dashboard(prepared)
    _show_how_to_go_on(waiting if why_not else living.NEXT)
    _show_times(before, picture, time.time() - started)
    _show_dashboard(running, why_not)


def show(running: Running) -> None:
    """The GPUs, caps and waiting jobs as they are now."""
    seen = Observer(running.client())
    _show_gpus(seen)
    _show_caps(running, seen)
    _show_waiting(seen)
    served = dashboard.is_served(running)
    _show_how_to_go_on(living.NEXT if served else jobs.name_of(jobs.WAITING))
    _show_dashboard(running, "" if served else "this cluster is installed without it")


def _with_dashboard(prepared: Prepared) -> str:
    """The dashboard, and jobs that stay; why there is none, else empty."""
    if prepared.dashboard is None:
        return "a pod serves it, and no pod runs for real without root on Linux"
    if why := prepared.dashboard.add(prepared.running):
        return why
    with step("jobs that stay: vision and speech work, search, idle and wait"):
        living.start(prepared.running)
    return ""


def _show_dashboard(running: Running, why_not: str) -> None:
    heading("The dashboard")
    if why_not:
        print(f"  There is none: {why_not}")
        return
    for command, what in (
        ("make demo-dashboard", f"opens {dashboard.address(running)}, until Ctrl-C"),
        ("make demo-dashboard OPTIONS=--no-browser", "the same, for a browser elsewhere"),
        ("make demo-dashboard OPTIONS=--print-token", "what to paste there"),
    ):
        print(f"  {command:<53} {paint('# ' + what, DIM)}")


def _show_gpus(seen: Observer) -> None:
    found = seen.gpus()
    shown = [gpu for gpu in found if gpu.held or not gpu.fake]
    heading("Who holds what")
    print("\n".join(bars.lines(shown)))
    if len(found) > len(shown):
        print(paint(f"  and {len(found) - len(shown)} GPUs of fake servers, all free", DIM))


def _show_caps(running: Running, seen: Observer) -> None:
    if not running.state.real_node:
        heading("What the containers see", "on fake nodes: what they would be given")
        for name in jobs.SHARING:
            for pod in seen.running(name):
                for key, value in sorted(pod["metadata"]["annotations"].items()):
                    if key.startswith("gpu-scheduler.io/c0-"):
                        print(f"  {name}  {key:<36}  {value}")
        return
    heading("What the containers see", "kubectl exec; each GPU has 40448 MiB that may be used")
    for name in jobs.SHARING:
        for pod in seen.running(name):
            answer = running.kubectl(
                "exec", "-n", jobs.NAMESPACE, pod["metadata"]["name"], "--", "sh", "-c", INSIDE
            )
            label = name
            for line in answer.stdout.splitlines():
                key, _, value = line.partition("=")
                print(f"  {label:<7} {key:<36} {value}")
                label = ""


def _show_waiting(seen: Observer) -> None:
    heading("What waits, and why")
    for job in seen.items(JOBS):
        status = job.get("status", {})
        if status.get("phase") == "Pending" and status.get("reason"):
            print(f"  {job['metadata']['name']}  {paint(status['reason'], BOLD)}")
            print(f"    {status.get('message', '')}")


def _show_sweep(seen: Observer, name: str) -> None:
    fake = name == jobs.name_of(jobs.SWEEP)
    with step(f"{name} on fake servers" if fake else f"{name} in real containers") as said:
        seen.until(
            lambda: seen.status(name).get("phase") in ("Succeeded", "Failed"), f"{name} ends"
        )
        succeeded = seen.status(name)["pods"]["succeeded"]
        most, milli = seen.peaks.pods[name], seen.peaks.milli[name]
        said.append(f"{succeeded} of 4 succeeded, {most} at most at once")
        if succeeded != 4 or most != 2:
            raise ClusterError(f"{name}: expected 4 successes and 2 trials at once: {said[-1]}")
        said.append(f"{milli / 1000:g} GPU" + ("s" if milli > 1000 else ""))


def _show_times(before: float, picture: float, whole: float) -> None:
    """Where the time went, the longest first; what took no second is left out."""
    heading("Where the time went", f"{picture:.0f} s to the picture, {whole:.0f} s in all")
    steps = [("make setup", before), *taken]
    for text, seconds in sorted(steps, key=lambda each: -each[1]):
        if seconds >= 1:
            print(f"  {seconds:5.0f} s  {text}")


def _show_how_to_go_on(next_one: str) -> None:
    """Commands to try; ``next_one``: the job that starts where frac05 and frac03 were."""
    heading("How to go on")
    print(f'  eval "$(PYTHONPATH=hack .venv/bin/python -m cluster env --name {NAME})"')
    for command, what in (
        ("kubectl get gj -A", "all jobs"),
        (f"kubectl gpu why {next_one} -n {jobs.NAMESPACE}", "why it waits"),
        (f"kubectl delete gj {' '.join(jobs.SHARING)} -n {jobs.NAMESPACE}", "and it starts"),
        ("kubectl apply -f examples/hpo1.yaml", "any of examples/ may come beside them"),
        ("kubectl gpu simulate -f examples/whole-gpu.yaml", "what would happen if"),
        ("make down", "stops all of it"),
    ):
        print(f"  {command:<53} {paint('# ' + what, DIM)}")
