"""What a command does not need it does not import: each in a fresh interpreter, on a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.server import Request, listening
from tests.unit.cli.server import kubeconfig as leading_to

from gpu_scheduler.api.names import API_VERSION

ROOT = Path(__file__).parents[3]
_KUBERNETES = {
    *("kubernetes.aio", "kubernetes.client.api", "kubernetes.client.api_client"),
    *("kubernetes.client.models", "kubernetes.config", "kubernetes.dynamic"),
    *("kubernetes.informer", "kubernetes.stream", "kubernetes.watch"),
}
NEVER = _KUBERNETES | {
    *("aiohttp", "google.auth", "kopf", "matplotlib", "oauthlib", "optuna", "prometheus_client"),
    *("requests", "requests_oauthlib", "rich", "uvloop", "websocket"),
}
"""By no command whose output is a pipe and whose credentials are in the kubeconfig."""
PLANNER = {"numpy", "gpu_scheduler.core.plan", "gpu_scheduler.runtime", "gpu_scheduler.state.queue"}
MODELS = {"pydantic", "gpu_scheduler.api.gpujob"}
LOOKING = NEVER | PLANNER | MODELS | {"asyncio", "re2"}
CLUSTER = {"kubernetes", "msgspec", "orjson", "urllib3", "yaml"}

COMMANDS = {
    "list": LOOKING,
    "list -A": LOOKING,
    "list -o name": LOOKING,
    "why runs": LOOKING,
    "why waits": NEVER,
    "describe runs": LOOKING,
    "top gpus": LOOKING,
    "top nodes": LOOKING,
    "top jobs": LOOKING,
    "top projects": LOOKING,
    "report runs": LOOKING,
    "report runs waits": LOOKING,
    "advise": LOOKING,
    "idle": LOOKING,
    "submit new --from runs -g 2 --dry-run=client": NEVER | PLANNER,
    "projects": LOOKING,
    "project describe team-a": LOOKING,
    "suspend runs": LOOKING,
    "delete runs --no-wait": LOOKING,
    "version": LOOKING | CLUSTER,
    "completion bash": LOOKING | CLUSTER,
}

PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from gpu_scheduler.main import app
app(prog_name="kubectl gpu")
"""


def body(kind: str, name: str, phase: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "team-a", "uid": name}
    meta |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"phase": phase, "reason": "WaitingForGPU" if phase == "Pending" else phase}
    version = "v1" if kind == "Pod" else API_VERSION
    return {"apiVersion": version, "kind": kind, "metadata": meta, "status": status, **more}


OURS = f"/apis/{API_VERSION}"
SPEC = {"image": "train:1", "gpu": 1}
RUNS = body("GPUJob", "runs", "Running", spec=SPEC)
WAITS = body("GPUJob", "waits", "Pending", spec=SPEC)
PROJECT = body("GPUProject", "team-a", "", spec={"namespaces": ["team-a"], "quota": 4})
TABLE = {
    "kind": "Table",
    "columnDefinitions": [{"name": name, "type": "string"} for name in ("Name", "Status")],
    "rows": [{"cells": ["runs", "Running"], "object": {"metadata": RUNS["metadata"]}}],
}
LISTS: dict[str, list[Any]] = {
    "gpujobs": [RUNS, WAITS],
    "gpuprojects": [PROJECT],
    "pods": [],
    "events": [],
}


def answer(request: Request) -> tuple[int, Any]:
    """Objects by their names, and collections."""
    *_, plural, name = request.path.split("/")
    found = next((each for each in LISTS.get(plural, ()) if each["metadata"]["name"] == name), None)
    if found is not None:
        return 200, found
    if name == "gpujobs" and "Table" in request.accept:
        return 200, TABLE
    return 200, {"items": LISTS.get(name, [])}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with listening(answer) as port:
        yield leading_to(port, tmp_path_factory.mktemp("imports"))


@pytest.mark.long(always=True)
@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_imports_no_more_than_it_needs(words: str, kubeconfig: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words.split()],
        env={
            "PYTHONPATH": str(ROOT / "operator"),
            "KUBECONFIG": kubeconfig,
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        check=False,
    )
    *said, imported = done.stderr.splitlines()
    assert done.returncode == 0, said
    assert COMMANDS[words] & {*json.loads(imported)} == set()
