"""The demo's jobs, which are files in examples/ as they stand, and their submission.

frac05 and frac03 are there for everybody. hpo1 is not run as it is, since a machine with few
pretend GPUs cannot hold it beside them: examples/demo has it for fake servers, and for real
containers with half a GPU per trial. So what is tried of examples/ afterwards meets nothing of its
name.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from cluster import Running

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMESPACE = "team-a"
SHARING = ("frac05", "frac03")
SWEEP, HALF_SWEEP, WAITING = "demo/hpo1-servers", "demo/hpo1-half", "demo/whole-server"
RESULTS = Path("/tmp/hpo1-half")  # as the file has it

Json = dict[str, Any]


def example(name: str) -> Json:
    """The one object of an example file."""
    return dict(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))


def name_of(example: str) -> str:
    """What the job of an example file is called."""
    return example.rpartition("/")[2]


def whole_server(node: str, gpus: int) -> Json:
    """The job that wants all GPUs of the node on which frac05 and frac03 are.

    Without a real node that is one of the fake servers, and which, nobody knows before.
    """
    job = example(WAITING)
    job["spec"]["gpu"] = gpus
    job["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node
    return job


def submit(running: Running, job: Json) -> None:
    """Apply a job; one of that name that has ended is deleted first, to run again."""
    name = job["metadata"]["name"]
    phase = status(running, name).get("phase")
    if phase in ("Succeeded", "Failed"):
        remove(running, name)
    running.kubectl("apply", "-f", "-", input=json.dumps(job))


def remove(running: Running, name: str) -> None:
    """Delete a job, and wait until its pods are gone and its GPUs free."""
    running.kubectl("delete", "gj", name, "-n", NAMESPACE, "--ignore-not-found")
    running.kubectl(
        "wait", "--for=delete", "pod", "-n", NAMESPACE, "-l", f"gpu-scheduler.io/job={name}",
        "--timeout=60s",
    )  # fmt: skip


def status(running: Running, name: str) -> Json:
    """The job's status, empty when there is no such job."""
    answer = running.kubectl("get", "gj", name, "-n", NAMESPACE, "--ignore-not-found", "-o", "json")
    return dict(json.loads(answer.stdout).get("status", {})) if answer.stdout else {}
