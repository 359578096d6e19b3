"""Logging in by a program that the kubeconfig names."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.pem import CERTIFICATE, KEY
from tests.unit.kube.test_config import b64, write_kubeconfig

from gpu_scheduler.kube import config
from gpu_scheduler.kube.config import ConfigError, Connection
from gpu_scheduler.kube.exec_login import log_in

V1 = "client.authentication.k8s.io/v1"
SECRET = "secret-of-the-cloud"


def program(folder: Path, answer: object, *, code: int = 0) -> str:
    """A program that prints an answer, and notes what it was told."""
    path = folder / "login"
    text = answer if isinstance(answer, str) else json.dumps(answer)
    (folder / "answer").write_text(text)
    path.write_text(
        f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO $REGION $*" >{folder}/told\n'
        f"cat {folder}/answer\nexit {code}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def credential(**status: str) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": "ExecCredential", "status": status}


def load(folder: Path, **section: Any) -> Connection:
    user = {"exec": {"apiVersion": V1, **section}}
    path = write_kubeconfig(folder, user, **{"certificate-authority-data": b64(CERTIFICATE)})
    return config.load({"KUBECONFIG": str(path)}, login=log_in)


def test_its_token_is_used(tmp_path: Path):
    command = program(tmp_path, credential(token=SECRET))
    env = [{"name": "REGION", "value": "north"}]
    found = load(tmp_path, command=command, args=["get", "token"], env=env)
    assert (found.token, found.server) == (SECRET, "https://10.0.0.1:6443")
    assert SECRET not in repr(found)
    told, region, *arguments = (tmp_path / "told").read_text().rsplit(" ", 3)
    assert (region, arguments) == ("north", ["get", "token\n"])
    assert json.loads(told)["kind"] == "ExecCredential"
    assert "cluster" not in json.loads(told)["spec"]


def test_its_certificate_is_used(tmp_path: Path):
    pair = {"clientCertificateData": CERTIFICATE, "clientKeyData": KEY}
    found = load(tmp_path, command=program(tmp_path, credential(**pair)))
    assert (found.certificate_pem, found.key_pem, found.token) == (CERTIFICATE, KEY, "")


def test_it_is_told_of_the_cluster_if_it_wants_to_know(tmp_path: Path):
    command = program(tmp_path, credential(token=SECRET))
    load(tmp_path, command=command, provideClusterInfo=True)
    told = json.loads((tmp_path / "told").read_text())
    assert told["spec"]["cluster"] == {
        "server": "https://10.0.0.1:6443/",
        "certificate-authority-data": b64(CERTIFICATE),
    }


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (credential(token=SECRET), 3, "ended with 3"),
        (f"no JSON but {SECRET}", 0, "printed no ExecCredential"),
        ({"status": [SECRET]}, 0, "printed no ExecCredential"),
        (credential(clientCertificateData=SECRET), 0, "neither a token nor a certificate with key"),
    ],
)
def test_what_goes_wrong_is_said_without_what_it_printed(
    tmp_path: Path, answer: object, code: int, told: str
):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, command=program(tmp_path, answer, code=code))
    assert told in str(error.value)
    assert SECRET not in str(error.value)


def test_a_program_that_is_missing_comes_with_its_hint(tmp_path: Path):
    with pytest.raises(ConfigError, match="No such file or directory; get it from your cloud"):
        load(tmp_path, command="/nowhere/login", installHint="get it from your cloud\n")


def test_a_section_without_a_command_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"user\.exec: needs a command"):
        load(tmp_path)
