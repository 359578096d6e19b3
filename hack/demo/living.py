"""Jobs that stay when the demo has ended, so that every page of the dashboard has something to say.

Two teams, vision and speech, and the rest of team-a: some work, some hold a GPU and do not use it,
some search, some wait, each for a reason of its own. They are files of examples/demo; programs
sleep between their steps.
"""

import json
import time
from pathlib import Path
from typing import Any

import yaml

from cluster import ClusterError, Running
from demo.jobs import EXAMPLES

DEMO = EXAMPLES / "demo"
PROJECTS = DEMO / "projects.yaml"
RUNNING, WAITING = DEMO / "running", DEMO / "waiting"
PROGRAMS = (*sorted((DEMO / "programs").glob("*.py")), EXAMPLES / "sweeps" / "report.py")
NEXT = "eval-next"  # fits where frac05 and frac03 are
TEAM = "vision"  # whose pods mount the programs
GPUJOBS = "/apis/gpu-scheduler.io/v1alpha1/gpujobs"
SECONDS = 120.0

Json = dict[str, Any]


def programs() -> Json:
    """The ConfigMap with what their containers run."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "programs", "namespace": TEAM},
        "data": {path.name: path.read_text() for path in PROGRAMS},
    }


def start(running: Running) -> None:
    """Those that run, and once they do those that wait: so nobody takes what another needs.

    Raises:
        ClusterError: one does not start.
    """
    running.kubectl("apply", "-f", str(PROJECTS))
    running.kubectl("apply", "-f", "-", input=json.dumps(programs()))
    running.kubectl("apply", "-f", str(RUNNING))
    _until_started(running, names(RUNNING))
    running.kubectl("apply", "-f", str(WAITING))


def clear(running: Running) -> None:
    """Take them away: a story that is told again needs the GPUs that it was first told with."""
    jobs = names(RUNNING) | names(WAITING)
    for namespace in sorted({namespace for namespace, _ in jobs}):
        theirs = sorted(name for of, name in jobs if of == namespace)
        running.kubectl("delete", "gj", *theirs, "-n", namespace, "--ignore-not-found", check=False)


def names(folder: Path) -> set[tuple[str, str]]:
    """Namespace and name of each job of a folder."""
    bodies = [yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml")]
    return {(body["metadata"]["namespace"], body["metadata"]["name"]) for body in bodies}


def _until_started(running: Running, wanted: set[tuple[str, str]]) -> None:
    deadline = time.monotonic() + SECONDS
    with running.client() as client:
        while True:
            waiting = {job: why for job, why in _waiting(client.items(GPUJOBS)) if job in wanted}
            if not waiting:
                return
            if time.monotonic() > deadline:
                lines = [f"  {name}: {why}" for (_, name), why in waiting.items()]
                raise ClusterError("\n".join([f"not within {SECONDS:.0f} s: jobs start", *lines]))
            time.sleep(0.5)


def _waiting(jobs: list[Json]) -> list[tuple[tuple[str, str], str]]:
    """Jobs that have not started, and what is said of them."""
    found = []
    for job in jobs:
        status = job.get("status") or {}
        if status.get("phase", "Pending") == "Pending":
            meta = job["metadata"]
            found.append(((meta["namespace"], meta["name"]), str(status.get("message", ""))))
    return found
