"""``top gpus --processes``: which agents are asked, how, and what is printed of what they say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.server import Server, serving

from gpu_scheduler.cli.root import app

PODS = "/api/v1/namespaces/gpu-scheduler/pods"
ROW = {
    "gpu": 0,
    "uuid": "GPU-1",
    "pid": 4711,
    "command": "python",
    "memoryMiB": 2048,
    "namespace": "team-a",
    "pod": "train-0",
    "container": "main",
}
STRANGER = {**dict.fromkeys(ROW), "gpu": 1, "pid": 7, "command": "miner"}


def agent(node: str, phase: str = "Running") -> dict[str, Any]:
    meta = {"name": f"agent-{node}", "labels": {"gpu-scheduler.io/component": "agent"}}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({}) as made:
        pods = [agent("b"), agent("a"), agent("c", "Pending")]
        made.answers[f"GET {PODS}"] = {"metadata": {"resourceVersion": "1"}, "items": pods}
        yield made


@pytest.fixture
def call(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*arguments: str, a: str = "", b: str = "") -> Result:
        """What the programs in the pods of two agents do: shell."""
        program = tmp_path / "kubectl"
        said = f'echo "$@" >> {tmp_path}/said\ncase "$*" in *agent-a*) {a};; *) {b};; esac\n'
        program.write_text(f"#!/bin/sh\n{said}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        words = ["top", "gpus", "--processes", *arguments]
        env = {"KUBECONFIG": server.kubeconfig(tmp_path)}
        return CliRunner().invoke(app, words, prog_name="kubectl gpu", env=env)

    return run


def says(*rows: dict[str, Any]) -> str:
    return f"echo '{json.dumps(rows)}'"


def test_every_agent_that_runs_is_asked_and_each_process_has_a_line(
    call: Any, tmp_path: Path
) -> None:
    assert call(a=says(ROW), b=says(STRANGER)).output.splitlines() == [
        "GPU   PID    MEMORY    NAMESPACE/POD    CONTAINER   COMMAND",
        "a/0   4711   2.0 GiB   team-a/train-0   main        python",
        "b/1   7      -         -                -           miner",
    ]
    said = sorted((tmp_path / "said").read_text().splitlines())
    assert said == [
        f"exec --namespace=gpu-scheduler pod/agent-{node} --container=agent -- "
        "python3 -m gpu_scheduler.main agent processes"
        for node in ("a", "b")
    ]


def test_programs_get_all_of_it_and_what_is_missing(call: Any) -> None:
    found = json.loads(call("-o", "json", a=says(ROW), b="echo gone >&2; exit 1").output)
    assert found == {
        "processes": [{"node": "a", **ROW}],
        "notShown": ["b: kubectl exec: gone"],
    }


def test_what_cannot_be_read_costs_its_node_alone(call: Any) -> None:
    lines = call(a=says(ROW), b="echo '{}'").output.splitlines()
    assert lines[1].startswith("a/0")
    assert lines[-1] == "b: its agent says nothing that can be read"


@pytest.mark.parametrize("may_list", [True, False])
def test_a_tenant_is_told_in_one_sentence_what_it_may_not_see(
    call: Any, server: Server, may_list: bool
) -> None:
    if not may_list:
        server.answers[f"GET {PODS}"] = 403
    forbidden = "echo 'Error from server (Forbidden): pods is forbidden' >&2; exit 1"
    result = call(a=forbidden, b=forbidden)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "create pods/exec in namespace gpu-scheduler), which you may not" in result.stderr


def test_without_agents_that_is_said(call: Any, server: Server) -> None:
    server.answers[f"GET {PODS}"] = {"metadata": {"resourceVersion": "1"}, "items": []}
    assert "no agent runs in namespace gpu-scheduler" in call().stderr
