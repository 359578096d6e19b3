"""``kubectl gpu sweep`` on a real API server: the GPUJob and its results, page by page."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.conftest import administrator
from tests.api.forked import Done, command
from tests.api.tenant import until
from tests.unit.api.sweep_cases import sweep

from cluster import Running
from gpu_scheduler.api.names import API_VERSION, LABEL_JOB, RESULTS_KEY, results_name
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import Header, encode

NAMESPACE = "sweep-cli"
SEGMENTS = 23  # more than one page


@pytest.fixture(scope="module")
def cli(control_plane: Running) -> Any:
    def run(*arguments: str, kubeconfig: str = "") -> Done:
        environment = os.environ | {"KUBECONFIG": kubeconfig or str(control_plane.kubeconfig)}
        return command(["sweep", *arguments], environment)

    return run


@pytest.fixture(scope="module", autouse=True)
def recorded(control_plane: Running) -> Iterator[None]:
    """A sweep of 23 segments, each with two results; one without results; a job without a sweep."""
    admin = administrator(control_plane)

    def create(path: str, kind: str, version: str, meta: dict[str, Any], **rest: Any) -> None:
        body = {"apiVersion": version, "kind": kind, "metadata": meta} | rest
        answer = admin.create(path, body)
        assert answer.ok, answer.message

    create("/api/v1/namespaces", "Namespace", "v1", {"name": NAMESPACE})
    jobs = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/gpujobs"
    spec = sweep("random", 100_000)
    create(jobs, "GPUJob", API_VERSION, {"name": "search"}, spec=spec)
    create(jobs, "GPUJob", API_VERSION, {"name": "young"}, spec=spec)
    create(jobs, "GPUJob", API_VERSION, {"name": "plain"}, spec={"image": "a", "gpu": 1})
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    for number in range(SEGMENTS):
        first = 1000 * number
        outcomes = [
            Outcome(first, TrialState.SUCCEEDED, 1.0 / (number + 1)),
            Outcome(first + 1, TrialState.FAILED, message="exit code 1"),
        ]
        meta = {"name": results_name("search", number), "labels": {LABEL_JOB: "search"}}
        text = encode(Header(number, ("val_loss",)), outcomes)
        create(maps, "ConfigMap", "v1", meta, data={RESULTS_KEY: text})
    yield
    path = f"/api/v1/namespaces/{NAMESPACE}"
    assert admin.send("DELETE", path).ok
    until(lambda: admin.get(path).status == 404, "nothing is left of it")


def test_all_trials_of_all_segments_are_there(cli):
    done = cli("trials", "search", "-n", NAMESPACE, "-o", "csv")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "trial,state,val_loss,lr,message"
    assert [int(line.split(",")[0]) for line in lines[1:]] == [
        1000 * number + i for number in range(SEGMENTS) for i in (0, 1)
    ]
    assert lines[2].endswith(",exit code 1")


def test_the_best_trial_has_the_parameters_of_the_preview(cli, tmp_path):
    best = json.loads(cli("best", "search", "-n", NAMESPACE, "-o", "json").stdout)
    assert (best["trial"], best["metrics"]) == (22_000, {"val_loss": 1 / 23})
    path = tmp_path / "sweep.json"
    body = {"kind": "GPUJob", "metadata": {"name": "search"}, "spec": sweep("random", 100_000)}
    path.write_text(json.dumps(body))
    shown = json.loads(cli("preview", "-f", str(path), "-n", "22001", "-o", "json").stdout)
    assert shown[22_000] == {"trial": 22_000, "parameters": best["parameters"]}


def test_a_picture_of_it(cli, tmp_path):
    path = tmp_path / "search.svg"
    done = cli("plot", "search", "-n", NAMESPACE, "-o", str(path))
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("young", "has no results yet"),
        ("plain", "has no spec.sweep"),
        ("nobody", 'gpujobs.gpu-scheduler.io "nobody" not found'),
    ],
)
def test_what_has_nothing_to_show_says_so_in_one_line(cli, name, says):
    done = cli("best", name, "-n", NAMESPACE)
    assert (done.returncode, done.stdout) == (1, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_cluster_it_says_so(cli):
    done = cli("best", "search", kubeconfig="/nowhere/config")
    assert done.returncode == 1
    assert "KUBECONFIG=/nowhere/config: no such file" in done.stderr
