"""``suspend``, ``resume``, ``retry`` and ``delete``: what is sent, and how it ends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.cli.objects import job
from tests.unit.cli.server import Request, Server, serving

from gpu_scheduler.cli.again import fresh

JOBS = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({f"GET {JOBS}/x": job("x", "Running"), f"PATCH {JOBS}/x": {}}) as made:
        yield made


@pytest.fixture
def call(server: Server, tmp_path: Path) -> Any:
    return server.caller(tmp_path)


def test_suspend_and_resume_change_one_field(call: Any, server: Server) -> None:
    assert call("suspend", "x").stdout == "gpujob.gpu-scheduler.io/x suspended\n"
    server.answers[f"GET {JOBS}/x"] = job("x", "Suspended", suspend=True)
    assert call("resume", "gj/x", "-o", "name").stdout == "gpujob.gpu-scheduler.io/x\n"
    assert [r.body for r in server.sent("PATCH")] == [
        {"spec": {"suspend": True}},
        {"spec": {"suspend": False}},
    ]


def test_what_is_so_already_is_said_and_not_written(call: Any, server: Server) -> None:
    result = call("resume", "x")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "is not suspended" in result.stderr
    assert server.sent("PATCH") == []


def test_of_several_the_others_are_done_and_the_end_is_1(call: Any, server: Server) -> None:
    server.answers[f"GET {JOBS}/done"] = job("done", "Succeeded")
    result = call("suspend", "nope", "done", "x")
    assert result.exit_code == 1
    assert result.stdout == "gpujob.gpu-scheduler.io/x suspended\n"
    assert "no GPUJob called nope" in result.stderr and "done has ended" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        (["suspend", "deploy/web"], "kubectl scale deploy/web --replicas=0"),
        (["resume", "sts/web"], "kubectl scale sts/web --replicas=N"),
        (["suspend", "cj/night"], "kubectl patch cj/night"),
        (["suspend", "pod/p"], "kubectl delete pod/p"),
        (["delete", "deploy/web"], "kubectl delete deploy/web"),
        (["retry", "deploy/web"], "kubectl rollout restart deploy/web"),
    ],
)
def test_of_what_is_no_gpujob_kubectls_command_is_named(
    call: Any, server: Server, arguments: list[str], instead: str
) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout, server.requests) == (2, "", [])
    assert instead in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["delete"],
        ["delete", ""],
        ["delete", "gj/"],
        ["delete", "x", "--all"],
        ["delete", "--all", "-l", "a=b"],
        ["delete", "-l", ""],
        ["delete", "x?y"],
        ["delete", "../pods/x"],
        ["delete", "\u00fc"],
        ["delete", "a" * 300],
        ["suspend"],
        ["suspend", ""],
        ["retry", ""],
    ],
)
def test_a_word_that_could_mean_something_else_asks_nothing(
    call: Any, server: Server, arguments: list[str]
) -> None:
    result = call(*arguments)
    assert (result.exit_code, server.requests) == (2, []), result.stderr


def test_delete_waits_until_it_is_gone(call: Any, server: Server) -> None:
    left = [job("x"), job("x")]
    server.answers[f"DELETE {JOBS}/x"] = {}
    server.answers[f"GET {JOBS}/x"] = lambda _: left.pop() if left else 404
    result = call("delete", "x")
    assert (result.exit_code, result.stdout) == (0, "gpujob.gpu-scheduler.io/x deleted\n")
    assert left == []
    (sent,) = server.sent("DELETE")
    assert sent.params == {"propagationPolicy": "Background"}


def test_delete_by_labels_and_all(call: Any, server: Server) -> None:
    server.answers[f"GET {JOBS}"] = lambda request: {
        "items": [job("a"), job("b")] if request.params.get("labelSelector") == "t=1" else []
    }
    server.answers |= {f"DELETE {JOBS}/{name}": {} for name in "ab"}
    result = call("delete", "-l", "t=1", "--no-wait", "-o", "name")
    assert result.stdout == "gpujob.gpu-scheduler.io/a\ngpujob.gpu-scheduler.io/b\n"
    result = call("delete", "--all")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No jobs in namespace team-a." in result.stderr


def test_what_is_not_there_is_an_error_unless_said(call: Any) -> None:
    assert call("delete", "nope").exit_code == 1
    assert call("delete", "nope", "--ignore-not-found").exit_code == 0


def ended(**spec: Any) -> dict[str, Any]:
    body = job("x", "Failed", "ProgramFailed", **spec)
    body["metadata"] |= {
        "resourceVersion": "7",
        "generation": 2,
        "managedFields": [],
        "finalizers": ["f"],
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"team": "a"},
        "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    return body


def prepare(server: Server, body: dict[str, Any]) -> list[str]:
    """A job that goes when it is deleted; what happens is listed."""
    done: list[str] = []
    jobs = "/apis/batch/v1/namespaces/team-a/jobs"
    lists = (jobs, "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/configmaps")
    owned = [{"items": [{}]}, {"items": []}]

    def create(request: Request) -> Any:
        dry = "dryRun" in request.params
        early = len(owned) > 1  # a Job of the old one is still there
        done.append("dry run" if dry else "create too early" if early else "create")
        return 409 if dry else request.body

    def delete(request: Request) -> Any:
        done.append("delete")
        return {}

    server.answers |= {path_: {"items": []} for path_ in (f"GET {p}" for p in lists)}
    server.answers[f"GET {jobs}"] = lambda _: owned.pop(0) if len(owned) > 1 else owned[0]
    server.answers[f"GET {JOBS}/x"] = lambda _: 404 if "delete" in done else body
    server.answers[f"DELETE {JOBS}/x"] = delete
    server.answers[f"POST {JOBS}"] = create
    return done


def test_retry_makes_the_same_job_anew_when_all_of_the_old_is_gone(
    call: Any, server: Server
) -> None:
    done = prepare(server, ended(suspend=False))
    result = call("retry", "x")
    assert result.exit_code == 0, result.output
    assert result.stdout == "gpujob.gpu-scheduler.io/x created\n"
    assert "deleted and made again" in result.stderr
    assert done == ["dry run", "delete", "create"]
    assert server.sent("POST")[-1].body == {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {
            "name": "x",
            "namespace": "team-a",
            "labels": {"team": "a"},
            "annotations": {"note": "n"},
        },
        "spec": {"image": "img", "gpu": 0.5},
    }


def test_retry_leaves_alone_what_has_not_ended_or_would_be_refused(
    call: Any, server: Server
) -> None:
    assert "x is Running" in call("retry", "x").stderr
    done = prepare(server, ended())
    server.answers[f"POST {JOBS}"] = 403
    result = call("retry", "x")
    assert result.exit_code == 1 and "stays as it is" in result.stderr
    assert done == []


def test_retry_of_a_sweep_wants_a_yes(call: Any, server: Server) -> None:
    done = prepare(server, ended(sweep={"algorithm": "grid"}))
    result = call("retry", "x")
    assert result.exit_code == 1 and "--yes" in result.stderr and done == []
    assert call("retry", "x", "-y").exit_code == 0


def test_a_job_that_cannot_be_made_again_is_printed(call: Any, server: Server) -> None:
    done = prepare(server, ended())
    make = server.answers[f"POST {JOBS}"]
    server.answers[f"POST {JOBS}"] = lambda r: make(r) if "dryRun" in r.params else 500
    result = call("retry", "x")
    assert result.exit_code == 1 and done == ["dry run", "delete"]
    kept = yaml.safe_load(result.stderr.partition("create -f -:\n")[2])
    assert kept["spec"] == {"image": "img", "gpu": 0.5}


def test_fresh_keeps_an_owner_and_copes_with_little() -> None:
    body = {"apiVersion": "v", "kind": "K", "metadata": {"name": "x", "ownerReferences": [1]}}
    assert fresh(body) == {**body, "spec": {}}
