"""The demo's jobs, made of the files in examples/, and their submission.

frac05 and frac03 are the files as they are. hpo1 comes twice: as it is (two GPUs per trial, two
trials at once) on the fake servers, for a machine with two pretend GPUs cannot hold it; and with
half a GPU per trial as `hpo1-half` in real containers.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from cluster import Running
from demo.environment import FAKE_LABEL, TAINT

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMESPACE = "team-a"
SHARING = ("frac05", "frac03")
SWEEP, HALF_SWEEP, WAITING = "hpo1", "hpo1-half", "whole-server"

Json = dict[str, Any]


def example(name: str) -> Json:
    """The one object of an example file."""
    return dict(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))


def sweep_on_fake_servers() -> Json:
    """hpo1 as the fixtures have it; kwok ends each trial after some seconds."""
    job = example(SWEEP)
    template = job["spec"]["template"]
    template["metadata"] = {"annotations": {"kwok.x-k8s.io/run-seconds": "4"}}
    template["spec"]["nodeSelector"] = dict(FAKE_LABEL)
    template["spec"]["tolerations"] = [TAINT]
    return job


def sweep_for_real(results: Path) -> Json:
    """hpo1 with half a GPU per trial; each writes a file into the folder `results`."""
    job = example(SWEEP)
    job["metadata"]["name"] = HALF_SWEEP
    job["spec"]["gpu"] = 0.5
    pod = job["spec"]["template"]["spec"]
    pod["volumes"][0]["hostPath"]["path"] = str(results)
    command = pod["containers"][0]["command"]
    command[-1] = command[-1].replace("quickstart 10", "quickstart 4")
    return job


def whole_server(node: str) -> Json:
    """A job that wants both GPUs of the node that frac05 and frac03 share."""
    job = example("whole-gpu")
    job["metadata"]["name"] = WAITING
    spec = job["spec"]
    job["spec"] = {
        "gpu": 2,
        "template": {
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "containers": [
                    {"name": "main", "image": spec["image"], "command": spec["command"]}
                ],
            }
        },
    }
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
