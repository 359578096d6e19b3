"""``logs``, ``exec``, ``bash``, ``port-forward``: which pod is meant, and what kubectl is told."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.objects import Json, job, pod
from tests.unit.cli.server import Server, serving

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.one_pod.choosing import Wanted, choose
from gpu_scheduler.cli.submission.attach import first_pod
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusDetails

JOBS = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs"
PODS = "/api/v1/namespaces/team-a/pods"


def chosen(pods: list[Json], **wanted: Any) -> str | None:
    found, _ = choose(pods, Wanted(**wanted))
    return None if found is None else str(found["metadata"]["name"])


def test_the_first_that_runs_is_taken_whatever_the_order() -> None:
    pods = [pod("b", index=10), pod("c", index=2), pod("a", "Pending", index=0)]
    assert chosen(pods) == "c"
    assert len(choose(pods, Wanted())[1]) == 2


def test_of_an_index_that_was_tried_again_the_newest_counts() -> None:
    pods = [pod("old", "Failed", index=0), pod("new", "Running", index=0)]
    assert chosen(pods, ended=True) == "new"
    assert chosen([pods[1], pods[0]], index=0) is None, "the newest has ended"
    assert chosen([pods[1], pods[0]], index=0, ended=True) == "old"


def test_pods_that_have_ended_can_be_read_and_not_entered() -> None:
    pods = [pod("done", "Succeeded", index=0), pod("waits", "Pending", index=1)]
    assert chosen(pods, ended=True) == "done"
    assert chosen(pods) is None


def test_trials_roles_and_indexes_are_told_apart() -> None:
    pods = [
        pod("w0", role="worker", index=0),
        pod("w1", role="worker", index=1),
        pod("m", role="master", index=0),
        pod("t7", trial=7, index=3),
    ]
    assert chosen(pods, role="worker", index=1) == "w1"
    assert chosen(pods, role="master") == "m"
    assert chosen(pods, trial=7) == "t7"
    assert chosen(pods, trial=3) is None


def test_a_pod_that_is_being_deleted_is_not_entered() -> None:
    going = pod("x")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert chosen([going]) is None


def test_odd_pods_break_nothing() -> None:
    bare = {"metadata": {"name": "x"}}
    odd = pod("y", index=0)
    odd["metadata"]["labels"] = None
    odd["metadata"]["annotations"] = {"gpu-scheduler.io/trial": "9" * 40}
    assert chosen([bare, odd], ended=True) == "y"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({}) as made:
        yield made


class Kubectl:
    """What would be run; the real execvp never comes back."""

    def __init__(self) -> None:
        self.argv: list[str] = []

    def run(self, program: str, argv: list[str]) -> None:
        self.argv = argv
        raise SystemExit(0)


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kubectl:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    made = Kubectl()
    monkeypatch.setattr(os, "execvp", made.run)
    return made


@pytest.fixture
def call(server: Server, tmp_path: Path) -> Any:
    return server.caller(tmp_path)


def has(server: Server, body: Json, *pods: Json) -> None:
    server.answers[f"GET {JOBS}/{body['metadata']['name']}"] = body
    server.answers[f"GET {PODS}"] = {"items": list(pods)}


def test_logs_are_handed_over(call: Any, server: Server, kubectl: Kubectl, tmp_path: Path) -> None:
    has(server, job("x", "Running"), pod("x-0", index=0))
    call(
        "logs", "x", "-f", "--tail", "5", "-c", "main", "--kubeconfig", server.kubeconfig(tmp_path)
    )
    assert kubectl.argv == [
        "kubectl",
        f"--kubeconfig={tmp_path}/kubeconfig",
        "logs",
        "pod/x-0",
        "--namespace=team-a",
        "--container=main",
        "-f",
        "--tail=5",
    ]


def test_exec_and_bash_and_ports_are_handed_over(
    call: Any, server: Server, kubectl: Kubectl
) -> None:
    has(server, job("x", "Running"), pod("x-0", index=0))
    call("exec", "x", "-it", "--context", "c", "--", "ls", "-la", "--", "-c")
    common = ["pod/x-0", "--namespace=team-a"]
    assert kubectl.argv == [
        *("kubectl", "--context=c", "exec", *common, "-i", "-t", "--", "ls", "-la", "--", "-c"),
    ]
    call("bash", "x")
    assert kubectl.argv[:5] == ["kubectl", "exec", *common, "-i"]
    assert "exec bash || exec sh" in kubectl.argv[-1]
    call("port-forward", "x", "8888:80", "9", "--address", "0.0.0.0")
    assert kubectl.argv == ["kubectl", "port-forward", *common, "--address=0.0.0.0", "8888:80", "9"]


def test_of_several_it_is_said_which(call: Any, server: Server, kubectl: Kubectl) -> None:
    has(server, job("x", "Running"), pod("x-1", index=1), pod("x-0", index=0))
    result = call("logs", "x")
    assert "x has 2 pods, this is x-0; --index N" in result.stderr
    assert call("logs", "x", "--index", "1").stderr == ""
    assert "pod/x-1" in kubectl.argv


def test_without_kubectl_there_is_one_line(
    call: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    has(server, job("x", "Running"), pod("x-0", index=0))
    result = call("logs", "x")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "kubectl is not in $PATH" in result.stderr and "logs pod/x-0" in result.stderr


@pytest.mark.parametrize(
    ("body", "pods", "arguments", "words"),
    [
        (job("x", "Pending", "WaitingForGPU"), [], [], ("WaitingForGPU", "kubectl gpu why x")),
        (job("x", "Pending"), [pod("x-0", "Pending", index=0)], [], ("no pod", "why x")),
        (job("x", "Succeeded"), [], [], ("has ended (Succeeded)", "pods are gone")),
        (job("x", "Running", parallelism=2), [], ["--index", "7"], ("no index 7", "0 to 1")),
        (job("x", "Running"), [], ["--trial", "0"], ("no sweep",)),
        (job("x", "Running"), [], ["--role", "w"], ("no role 'w'", "it has no roles")),
        (
            job("x", "Running", roles=[{"name": "m", "replicas": 1}]),
            [],
            ["--role", "w"],
            ("its roles are m",),
        ),
    ],
)
def test_without_a_pod_it_is_said_why(
    call: Any,
    server: Server,
    kubectl: Kubectl,
    body: Json,
    pods: list[Json],
    arguments: list[str],
    words: tuple[str, ...],
) -> None:
    has(server, body, *pods)
    result = call("logs", "x", *arguments)
    assert (result.exit_code, result.stderr.count("\n"), kubectl.argv) == (1, 1, [])
    assert all(word in result.stderr for word in words), result.stderr


def test_a_trial_whose_pod_is_gone_says_how_it_ended(
    call: Any, server: Server, kubectl: Kubectl
) -> None:
    sweep = {"algorithm": "grid", "parameters": {"lr": {"values": [1, 2, 3]}}}
    sweep["objective"] = {"metric": "loss"}
    has(server, job("x", "Running", "WaitingForGPU", sweep=sweep))
    rows = '{"v":1,"segment":0,"metrics":["loss"]}\n[1,"Pruned",null,[]]\n'
    configmaps = "/api/v1/namespaces/team-a/configmaps"
    server.answers[f"GET {configmaps}"] = {"items": [{"data": {"trials": rows}}]}
    said = call("logs", "x", "--trial", "1").stderr
    assert "trial 1 of x has ended (Pruned) and its pod is gone" in said
    assert (
        "no pod of trial 2 that runs yet (WaitingForGPU)"
        in call("logs", "x", "--trial", "2").stderr
    )
    assert "numbered 0 to 2" in call("logs", "x", "--trial", "3").stderr
    server.answers[f"GET {configmaps}"] = 403
    assert "no pod of trial 1" in call("logs", "x", "--trial", "1").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["logs", ""],
        ["logs", "a b"],
        ["logs", "deploy/"],
        ["logs", "x?limit=1"],
        ["logs", "x", "--index", "-1"],
        ["logs", "x", "--index", "9" * 30],
        ["logs", "x", "--tail", "many"],
        ["logs", "x", "--trial", "\u0661x"],
        ["exec", "x"],
        ["port-forward", "x"],
        ["port-forward", "x", "80", "-c", "main"],
    ],
)
def test_odd_words_ask_nothing(
    call: Any, server: Server, kubectl: Kubectl, arguments: list[str]
) -> None:
    result = call(*arguments)
    assert (result.exit_code, server.requests, kubectl.argv) == (2, [], []), result.stderr


class ChangingClient:
    """A client that shows a job as it is each time somebody looks."""

    def __init__(self, *jobs: Json | None, pods: list[list[Json]]) -> None:
        self.jobs, self.pods = list(jobs), pods

    def get(self, path: str, **_: str) -> Json:
        body = self.jobs.pop(0)
        if body is None:
            raise errors.NotFound(404, "NotFound", "", StatusDetails(name="x"))
        return body

    def items(self, path: str, selector: str = "") -> Iterator[Json]:
        assert selector == "gpu-scheduler.io/job=x"
        yield from self.pods.pop(0)


def test_attach_waits_for_a_pod_and_says_each_reason_once() -> None:
    waiting = job("x", "Pending", "WaitingForGPU")
    client: Any = ChangingClient(
        waiting,
        waiting,
        job("x", "Pending", "Starting"),
        job("x", "Running"),
        pods=[[], [], [pod("x-0", "Pending")], [pod("x-0", "Running")]],
    )
    said: list[str] = []
    assert (
        first_pod(ClusterAccess(client, "team-a"), "x", say=said.append, wait=lambda _: None)
        == "x-0"
    )
    assert said == ["x waits: WaitingForGPU", "x waits: Starting"]


@pytest.mark.parametrize(
    ("last", "word"), [(None, "gone"), (job("x", "Failed", "JobFailed"), "has ended (JobFailed)")]
)
def test_attach_ends_with_a_job_that_never_started(last: Json | None, word: str) -> None:
    client: Any = ChangingClient(job("x"), last, pods=[[], []])
    with pytest.raises(Failed) as failed:
        first_pod(ClusterAccess(client, "team-a"), "x", say=lambda _: None, wait=lambda _: None)
    assert word in str(failed.value)
