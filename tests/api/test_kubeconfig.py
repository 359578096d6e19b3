"""Kubeconfigs of several files and contexts mean to us what they mean to kubectl."""

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import Running
from gpu_scheduler.kube import config

ROOT = Path(__file__).parents[2]
V1 = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def files(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three files: a token, a program that prints it, and what comes too late to be heard."""
    folder = tmp_path_factory.mktemp("kubeconfigs")
    real = yaml.safe_load(control_plane.kubeconfig.read_text())
    cluster, token = real["clusters"][0]["cluster"], real["users"][0]["user"]["token"]
    (folder / "ca.crt").write_text(Path(cluster["certificate-authority"]).read_text())
    login = folder / "login"
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": token}}
    login.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    login.chmod(stat.S_IRWXU)
    program = {"apiVersion": V1, "command": str(login), "interactiveMode": "Never"}

    def write(name: str, user: dict[str, Any], server: str, **more: Any) -> str:
        path, about = folder / name, {"cluster": name, "user": name, "namespace": f"ns-{name}"}
        here = {"server": server, "certificate-authority": "ca.crt"}
        document = {
            "contexts": [{"name": name, "context": about}],
            "clusters": [{"name": name, "cluster": here}],
            "users": [{"name": name, "user": user}],
            **more,
        }
        path.write_text(yaml.safe_dump(document))
        return str(path)

    first = {"current-context": "program"}
    late = {"current-context": "plain", "contexts": [{"name": "program", "context": {}}]}
    return os.pathsep.join(
        (
            str(folder / "missing"),
            write("plain", {"token": token}, cluster["server"]),
            write("program", {"exec": program}, cluster["server"], **first),
            write("late", {"token": "wrong"}, "https://127.0.0.1:1", **late),
        )
    )


def environment(files: str) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": files, "PYTHONPATH": str(ROOT / "operator")}


@pytest.mark.parametrize("context", [None, "plain", "program"])
def test_a_context_is_what_kubectl_takes_it_for(
    control_plane: Running, files: str, context: str | None
) -> None:
    more = ["--context", context] if context else []
    shown = subprocess.run(
        [
            control_plane.binary("kubectl"),
            "config",
            "view",
            "--minify",
            "--flatten",
            "-o=json",
            *more,
        ],
        env=environment(files),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(shown.stdout)
    ours = config.load({"KUBECONFIG": files}, context=context, login=True)
    (cluster,), (about,) = theirs["clusters"], theirs["contexts"]
    assert theirs["current-context"] == (context or "program")
    assert ours.server == cluster["cluster"]["server"]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"])
    assert ours.ca_file is not None and ours.ca_file.read_bytes() == authority
    assert ours.namespace == about["context"]["namespace"]


def test_the_token_that_a_program_prints_is_taken_by_the_server(files: str) -> None:
    def run(*more: str) -> str:
        command = [sys.executable, "-m", "gpu_scheduler.main", "sweep", "trials", "nothing", *more]
        done = subprocess.run(
            command,
            env=environment(files),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        return done.stderr

    assert 'gpujobs.gpu-scheduler.io "nothing" not found' in run()
    assert 'gpujobs.gpu-scheduler.io "nothing" not found' in run("--context", "plain")
    assert "there are: plain, program" in run("--context", "nowhere")
