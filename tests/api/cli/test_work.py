"""Work from the command line on a real API server: what is made, shown, changed and handed over."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.cli.program import ROOT, Done, gpu, gpu_here, refused
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import Tenant, runs, template, until

from cluster import Running

IMAGE = "example/placeholder:1"


@pytest.fixture(scope="module")
def scheduled(control_plane: Running) -> Iterator[Running]:
    with operating(control_plane, CALM_LEASE):
        yield control_plane


@pytest.fixture
def call(scheduled: Running, tenant: Tenant) -> Any:
    """``kubectl gpu`` in the tenant's namespace."""

    def run(command: str, *arguments: str) -> Done:
        return gpu_here(scheduled.kubeconfig, command, "-n", tenant.name, *arguments)

    return run


def fine(done: Done) -> str:
    assert done.returncode == 0, done
    return done.stdout


def columns(text: str) -> dict[str, list[str]]:
    """The words of each line by its first."""
    return {line.split()[0]: line.split() for line in text.splitlines()}


def test_what_is_submitted_is_what_was_printed_and_runs(
    call: Any, scheduled: Running, tenant: Tenant
) -> None:
    said = ("one", "-i", IMAGE, "-g", "0.5", "-e", "A=b", "--", "--epochs", "3", "-g", "9")
    printed = yaml.safe_load(fine(call("submit", "--dry-run=client", "-o", "yaml", *said)))
    assert fine(call("submit", "--dry-run=server", *said)).endswith("(server dry run)\n")
    assert tenant.job("one")["kind"] == "Status", "nothing was made"
    done = gpu(scheduled.kubeconfig, "submit", "-n", tenant.name, *said)
    assert fine(done) == "gpujob.gpu-scheduler.io/one created\n"
    made = tenant.job("one")["spec"]
    assert printed["spec"].items() <= made.items()
    tenant.wait_placed("one")
    (container,) = tenant.pods("one")[0]["spec"]["containers"]
    assert container["args"] == ["--epochs", "3", "-g", "9"]
    assert "already" in refused(call("submit", *said))


def test_volumes_become_a_template_that_the_server_takes(call: Any, tenant: Tenant) -> None:
    more = ("-v", "/data:/data:ro", "--large-shm", "--cpu", "1", "--job-dir", "/runs/1")
    fine(call("submit", "vol", "-i", IMAGE, "-g", "0.5", *more))
    tenant.wait_placed("vol")
    pod = tenant.pods("vol")[0]["spec"]
    main = next(each for each in pod["containers"] if each["name"] == "main")
    places = {mount["mountPath"] for mount in main["volumeMounts"]}
    assert {"/data", "/dev/shm"} <= places
    assert main["args"] == ["--job-dir", "/runs/1"]
    assert {"name": "JOB_DIR", "value": "/runs/1"} in main["env"]


def test_parameters_are_trials(call: Any, tenant: Tenant) -> None:
    fine(
        call("submit", "lr", "-i", IMAGE, "-g", "0.25", "--param", "lr=0.1,0.01", "--parallelism=2")
    )
    tenant.wait_placed("lr", 2)
    values = {
        pod["metadata"]["annotations"]["gpu-scheduler.io/hparam.lr"] for pod in tenant.pods("lr")
    }
    assert values == {"0.1", "0.01"}


def test_a_field_that_the_server_does_not_know_is_refused_and_not_dropped(
    call: Any, tenant: Tenant, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "typo"},
        "spec": {"image": IMAGE, "gpu": 0.5, "checkpoint": {"mountpath": "/x"}},
    }
    path.write_text(yaml.safe_dump(body))
    done = call("submit", "-f", str(path))
    assert done.returncode != 0 and done.stderr
    assert tenant.job("typo")["kind"] == "Status"


def test_a_project_names_its_namespace(call: Any, tenant: Tenant, scheduled: Running) -> None:
    words = ("submit", "in-project", "-i", IMAGE, "-g", "0.5", "-p", tenant.name)
    fine(gpu_here(scheduled.kubeconfig, *words))
    assert tenant.job("in-project")["kind"] == "GPUJob"
    other = Tenant(tenant.admin).create()
    tenant.set_project(namespaces=[tenant.name, other.name])
    done = gpu_here(scheduled.kubeconfig, *words)
    assert done.returncode == 2 and tenant.name in done.stderr and other.name in done.stderr
    assert "-n NAMESPACE" in done.stderr
    assert "none of project" in refused(call("submit", *words[1:-1], tenant.name, "-n", "default"))
    tenant.set_project(namespaces=[tenant.name])
    assert other.admin.send("DELETE", f"/api/v1/namespaces/{other.name}").ok


def test_list_shows_jobs_and_other_workloads(call: Any, tenant: Tenant) -> None:
    empty = call("list")
    assert (empty.returncode, empty.stdout) == (0, "")
    assert empty.stderr == f"No jobs in namespace {tenant.name}.\n"
    tenant.submit("a", gpu=0.5)
    tenant.submit("b", gpu=9)
    tenant.wait_phase("a", "Running")
    tenant.wait_reason("b", "Unsatisfiable")
    pod = {
        "metadata": {
            "name": "p",
            "labels": {"gpu-scheduler.io/share": "true"},
            "annotations": {"gpu-scheduler.io/asked": "0:gpu-scheduler.io/gpu=0.5"},
        },
        "spec": template()["spec"] | {"schedulerName": "nobody"},
    }
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/pods", pod).ok
    found = columns(fine(call("list")))
    assert found["NAME"][:4] == ["NAME", "PROJECT", "TYPE", "STATUS"]
    assert found["a"][1:5] == [tenant.name, "training", "Running", "0.5/0.5"]
    assert "Unsatisfiable" in found["b"]
    assert found["pod/p"][1:5] == [tenant.name, "interactive", "Pending", "0/0.5"]
    assert set(columns(fine(call("ls", "--status", "pending", "--no-headers")))) == {"b", "pod/p"}
    names = fine(call("list", "-o", "name")).splitlines()
    assert names == ["gpujob.gpu-scheduler.io/a", "gpujob.gpu-scheduler.io/b", "pod/p"]
    kinds = {each["kind"] for each in json.loads(fine(call("list", "-o", "json")))["items"]}
    assert kinds == {"GPUJob", "Pod"}


def test_a_watch_appends_a_line_for_each_change(
    call: Any, tenant: Tenant, scheduled: Running
) -> None:
    tenant.submit("early", gpu=0.5)
    tenant.wait_phase("early", "Running")
    with watching(scheduled, tenant) as lines:
        until(lambda: any("early" in line for line in lines()), "it shows what there is")
        tenant.submit("late", gpu=0.5)
        until(lambda: any("late" in x and "Running" in x for x in lines()), lines)
        tenant.remove("late")
        until(lambda: any("late" in x and "Deleted" in x for x in lines()), lines)
        assert sum("early" in line for line in lines()) == 1


class watching:  # noqa: N801 - reads as a verb
    """``kubectl gpu list -w`` while something happens; ends it as ^C does."""

    def __init__(self, running: Running, tenant: Tenant) -> None:
        # What runs in the background of a shell ignores ^C, and so do its children.
        listens = ["env", "--default-signal=INT", sys.executable, "-u", "-m", "gpu_scheduler.main"]
        words = [*listens, "list", "-w", "-n", tenant.name]
        environment = {
            **os.environ,
            "KUBECONFIG": str(running.kubeconfig),
            "PYTHONPATH": str(ROOT / "operator"),
        }
        self._file = running.folder / f"watch-{tenant.name}.txt"
        with self._file.open("wb") as file:
            self._process = subprocess.Popen(words, env=environment, stdout=file, stderr=file)

    def __enter__(self) -> Any:
        return lambda: self._file.read_text().splitlines()

    def __exit__(self, kind: Any, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(20)
        text = self._file.read_text()
        self._file.unlink()
        if kind is None:
            assert (code, "Traceback" in text, "Aborted" in text) == (130, False, False), text


def test_suspend_resume_and_delete(call: Any, tenant: Tenant) -> None:
    tenant.submit("s", gpu=0.5)
    tenant.wait_placed("s")
    assert fine(call("suspend", "s")) == "gpujob.gpu-scheduler.io/s suspended\n"
    tenant.wait_phase("s", "Suspended")
    again = call("suspend", "s")
    assert (again.returncode, again.stdout) == (0, "") and "already" in again.stderr
    assert fine(call("resume", "s", "-o", "name")) == "gpujob.gpu-scheduler.io/s\n"
    tenant.wait_phase("s", "Running")
    assert fine(call("delete", "s")) == "gpujob.gpu-scheduler.io/s deleted\n"
    assert tenant.job("s")["kind"] == "Status"
    assert "no GPUJob called s" in refused(call("delete", "s"))
    tenant.submit("x", gpu=0.5)
    tenant.submit("y", gpu=0.5)
    for way in ([""], ["--all", "x"], ["-l", ""]):
        assert call("delete", *way).returncode == 2
    assert tenant.job("x")["kind"] == tenant.job("y")["kind"] == "GPUJob"
    assert set(fine(call("delete", "--all", "-o", "name")).split()) == {
        "gpujob.gpu-scheduler.io/x",
        "gpujob.gpu-scheduler.io/y",
    }


def test_retry_runs_an_ended_job_once_more(call: Any, tenant: Tenant) -> None:
    tenant.submit("r", gpu=0.5, retries=0, template=template(runs(1)))
    tenant.wait_phase("r", "Succeeded")
    before = tenant.job("r")
    done = call("retry", "r")
    assert fine(done) == "gpujob.gpu-scheduler.io/r created\n"
    assert "deleted and made again" in done.stderr
    after = tenant.job("r")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"] == before["spec"]
    assert tenant.wait_phase("r", "Succeeded")["pods"]["succeeded"] == 1
    tenant.submit("long", gpu=0.5)
    tenant.wait_phase("long", "Running")
    assert "is for jobs that have ended" in refused(call("retry", "long"))


def test_describe_shows_pods_devices_and_events(call: Any, tenant: Tenant) -> None:
    tenant.submit("d", gpu=0.5)
    tenant.wait_phase("d", "Running")
    (placed,) = tenant.allocations("d")
    pod = tenant.pods("d")[0]["metadata"]["name"]
    text = fine(call("describe", "d"))
    assert f"on {placed.node}" in text and f"  {pod}\n" in text
    assert f"    {placed.devices[0].device}: 0.5 of it, at most " in text
    assert "Made by:       gpujob/d" in fine(call("describe", f"pod/{pod}"))
    assert json.loads(fine(call("describe", "d", "-o", "json")))["kind"] == "GPUJob"
    tenant.submit("never", gpu=9)
    tenant.wait_event("never", "Unsatisfiable")
    text = fine(call("describe", "never"))
    assert "Pending: Unsatisfiable" in text and "Warning Unsatisfiable gpujob/never" in text


def test_kubectl_is_told_the_pod(scheduled: Running, tenant: Tenant, tmp_path: Path) -> None:
    """A kubectl that says what it was told, for fake nodes run nothing that could be entered."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    kubectl.chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    path = f"{tmp_path}:{os.environ['PATH']}"

    def call(*arguments: str) -> Done:
        words = (arguments[0], "-n", tenant.name, *arguments[1:])
        return gpu(scheduled.kubeconfig, *words, PATH=path, TMPDIR=str(temporary))

    tenant.submit("k", gpu=0.25, parallelism=2)
    tenant.wait_placed("k", 2)
    until(lambda: tenant.status("k")["pods"]["running"] == 2, "both run")
    second = next(
        pod["metadata"]["name"]
        for pod in tenant.pods("k")
        if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    )
    told = fine(call("logs", "k", "--index", "1", "-f")).splitlines()
    assert told == ["logs", f"pod/{second}", f"--namespace={tenant.name}", "-f"]
    told = fine(call("exec", f"pod/{second}", "--", "nvidia-smi", "-L")).splitlines()
    assert told[-3:] == ["--", "nvidia-smi", "-L"] and f"pod/{second}" in told
    assert "2 pods" in call("bash", "k").stderr
    assert "logs\n-f\npod/" in fine(call("submit", "at", "-i", IMAGE, "-g", "0.25", "--attach"))
    tenant.submit("w", gpu=9)
    tenant.wait_reason("w", "Unsatisfiable")
    assert "Unsatisfiable" in refused(call("logs", "w"))
    assert list(temporary.iterdir()) == [], "no credentials stay when this process is kubectl"


def test_names_are_completed(scheduled: Running, tenant: Tenant) -> None:
    tenant.submit("completed", gpu=0.5)
    script = (
        "from gpu_scheduler.cli.commands import completion; completion.PATIENCE_SECONDS = 60.0; "
        "from gpu_scheduler.main import kubectl_complete; kubectl_complete()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "logs", "-n", tenant.name, "comp"],
        env={
            **os.environ,
            "KUBECONFIG": str(scheduled.kubeconfig),
            "PYTHONPATH": str(ROOT / "operator"),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["completed", ":4"]


def test_the_version_of_the_server(call: Any, tenant: Tenant) -> None:
    assert "server  none" in fine(call("version", "--server"))
    labels = {"app.kubernetes.io/part-of": "gpu-scheduler", "app.kubernetes.io/version": "9.8.7"}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": template()["spec"]}
    body = {
        "metadata": {"name": "operator", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }
    path = f"/apis/apps/v1/namespaces/{tenant.name}/deployments"
    assert tenant.admin.create(path, body).ok
    assert f"server  9.8.7  {tenant.name}/operator" in fine(call("version", "--server"))
