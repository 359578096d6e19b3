"""The demo's jobs are files of examples/, and nothing of their names is in anybody's way."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.credentials import REAL_NODE_NAME
from demo import install, jobs
from demo.environment import FAKE_LABEL, GPUS, SERVER_GPUS, TAINT

DEMO = jobs.EXAMPLES / "demo"
APPLIED = (*jobs.SHARING, jobs.SWEEP, jobs.HALF_SWEEP, jobs.WAITING)


class Kubectl:
    """Notes what is applied; nothing has run before."""

    def __init__(self) -> None:
        self.applied: list[Any] = []

    def kubectl(self, *args: str, input: str | None = None, check: bool = True) -> Any:
        if args[0] == "apply":
            self.applied.append(json.loads(input or ""))
        return subprocess.CompletedProcess(args, 0, "", "")


@pytest.mark.parametrize("example", APPLIED)
def test_what_is_applied_is_the_file(example: str) -> None:
    running = Kubectl()
    jobs.submit(running, jobs.example(example))  # type: ignore[arg-type]
    file = yaml.safe_load((jobs.EXAMPLES / f"{example}.yaml").read_text())
    assert running.applied == [file]
    assert file["metadata"]["name"] == jobs.name_of(example)


def test_the_job_that_waits_is_the_file_on_a_real_node() -> None:
    assert jobs.whole_server(REAL_NODE_NAME, GPUS) == jobs.example(jobs.WAITING)


def test_elsewhere_it_wants_a_whole_fake_server() -> None:
    spec = jobs.whole_server("r7525-0", SERVER_GPUS)["spec"]
    assert spec["gpu"] == 2
    assert spec["template"]["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "r7525-0"}


def test_every_other_example_can_be_applied_beside_them() -> None:
    others = set(jobs.EXAMPLES.rglob("*.yaml")) - {jobs.EXAMPLES / f"{n}.yaml" for n in APPLIED}
    names = {
        body["metadata"]["name"]
        for path in others
        for body in yaml.safe_load_all(path.read_text())
        if body["kind"] == "GPUJob"
    }
    assert "hpo1" in names
    assert names.isdisjoint(jobs.name_of(example) for example in APPLIED)


def test_its_folder_holds_nothing_else() -> None:
    files = {f"demo/{path.stem}" for path in DEMO.glob("*.yaml")}
    assert files - {"demo/projects"} == set(APPLIED) - set(jobs.SHARING)


def test_the_search_on_fake_servers_goes_there_alone() -> None:
    pod = jobs.example(jobs.SWEEP)["spec"]["template"]["spec"]
    assert (pod["nodeSelector"], pod["tolerations"]) == (FAKE_LABEL, [TAINT])


def test_its_results_are_where_its_file_says() -> None:
    (volume,) = jobs.example(jobs.HALF_SWEEP)["spec"]["template"]["spec"]["volumes"]
    assert volume["hostPath"]["path"] == str(jobs.RESULTS)


class Programs:
    """A cluster as far as its folder of programs goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def link_programs(self) -> Path:
        return self.folder


def test_the_shell_of_the_demo_has_the_command(tmp_path: Path) -> None:
    install.command(Programs(tmp_path))  # type: ignore[arg-type]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        return subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert "Usage: kubectl gpu " in run("kubectl-gpu", "--help")
    assert "simulate" in run("gpu-scheduler", "--help")
    assert run("kubectl_complete-gpu", "simul").startswith("simulate")
