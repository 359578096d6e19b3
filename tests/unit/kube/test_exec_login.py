"""Logging in by a program that the kubeconfig names."""

import base64
import json
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.pem import CERTIFICATE, KEY
from tests.unit.kube.test_config import b64, write_kubeconfig

from gpu_scheduler.kube import config
from gpu_scheduler.kube.config import ConfigError, Connection

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
    return config.load({"KUBECONFIG": str(path)}, login=True)


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


def test_it_is_found_beside_the_file_that_names_it(tmp_path: Path):
    program(tmp_path, credential(token=SECRET))
    assert load(tmp_path, command="./login").token == SECRET


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
    ("answer", "code"),
    [
        (credential(token=SECRET), 3),
        (f"no JSON but {SECRET}", 0),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": [SECRET]}, 0),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": None}}, 0),
        (credential(clientCertificateData=SECRET), 0),
        ({"apiVersion": "other/v1", "kind": "ExecCredential", "status": {"token": SECRET}}, 0),
    ],
)
def test_a_login_that_fails_is_an_error_without_what_it_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], answer: object, code: int
):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, command=program(tmp_path, answer, code=code))
    assert r"users[u].user.exec gave no credentials; run " in str(error.value)
    assert SECRET not in str(error.value) + "".join(capfd.readouterr())


def test_a_program_that_is_missing_comes_with_its_hint(tmp_path: Path):
    with pytest.raises(ConfigError, match="exec gave no credentials; get it from your cloud$"):
        load(tmp_path, command="/nowhere/login", installHint="get it from your cloud\n")


def test_a_section_without_a_command_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"user\.exec gave no credentials"):
        load(tmp_path)


def test_its_key_is_in_no_file_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    pair = {"clientCertificateData": CERTIFICATE, "clientKeyData": KEY}
    for _ in range(2):  # the package remembers what it wrote
        found = load(tmp_path, command=program(tmp_path, credential(**pair)))
        assert found.key_pem == KEY
    assert not list((tmp_path / "tmp").iterdir())


def test_a_process_that_stays_runs_no_program(tmp_path: Path):
    path = write_kubeconfig(tmp_path, {"exec": {"apiVersion": V1, "command": "/bin/false"}})
    with pytest.raises(ConfigError, match=r"users\[u\]\.user\.exec is not supported; use token"):
        config.load({"KUBECONFIG": str(path)})


@pytest.mark.parametrize(
    "provider",
    [
        {"name": "oidc", "config": {"idp-issuer-url": "https://issuer", "id-token": SECRET}},
        {"name": "gcp", "config": {"cmd-path": "/bin/false"}},
    ],
)
def test_an_issuer_that_cannot_be_checked_is_not_asked(tmp_path: Path, provider: dict[str, Any]):
    path = write_kubeconfig(tmp_path, {"auth-provider": provider})
    with pytest.raises(ConfigError, match="idp-certificate-authority") as error:
        config.load({"KUBECONFIG": str(path)}, login=True)
    assert SECRET not in str(error.value)


def jwt(expires: int) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def test_an_oidc_token_that_is_good_is_used_and_one_that_cannot_be_renewed_says_so(tmp_path: Path):
    about = {"idp-issuer-url": "https://127.0.0.1:9", "idp-certificate-authority-data": b64("x")}
    user = {"auth-provider": {"name": "oidc", "config": about}}
    about["id-token"] = jwt(4_000_000_000)
    path = write_kubeconfig(tmp_path, user)
    found = config.load({"KUBECONFIG": str(path)}, login=True)
    assert found.token == about["id-token"]
    about["id-token"] = jwt(1)
    # In a file: of data the package makes one that it does not close before the program ends.
    del about["idp-certificate-authority-data"]
    (tmp_path / "issuer.crt").write_text("x")
    about["idp-certificate-authority"] = str(tmp_path / "issuer.crt")
    path = write_kubeconfig(tmp_path, user)
    with pytest.raises(ConfigError) as error:
        config.load({"KUBECONFIG": str(path)}, login=True)
    assert str(path) in str(error.value) and about["id-token"] not in str(error.value)
