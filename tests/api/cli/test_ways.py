"""Every way to a cluster, and every way in which there is none: one line, and its exit code."""

import base64
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.cli.connect_proxy import ConnectProxy
from tests.api.cli.program import Done, gpu, gpu_here, refused, write_kubeconfig
from tests.api.conftest import CRDS, administrator, bare_settings, cluster_of
from tests.api.tenant import Tenant

from cluster import Running

V1 = "client.authentication.k8s.io/v1"
SECRET = "not-for-a-screen"
OWN = "/apis/gpu-scheduler.io/v1alpha1"


def server_of(running: Running) -> dict[str, Any]:
    return {"server": running.server, "certificate-authority": str(running.ca_file)}


@pytest.fixture
def here(control_plane: Running) -> dict[str, Any]:
    return server_of(control_plane)


def program(folder: Path, text: str, code: int = 0) -> dict[str, Any]:
    """The ``exec`` section of a program that prints a text."""
    path = folder / "login"
    (folder / "answer").write_text(text)
    path.write_text(f"#!/bin/sh\ncat {folder}/answer\nexit {code}\n")
    path.chmod(stat.S_IRWXU)
    return {"apiVersion": V1, "command": str(path), "interactiveMode": "Never"}


def test_a_client_certificate_lets_in(
    control_plane: Running, here: dict[str, Any], tenant: Tenant, tmp_path: Path
) -> None:
    tenant.submit("job", gpu=0.5)
    pair = control_plane.folder / "apiserver-kubelet-client"
    files = {"client-certificate": f"{pair}.crt", "client-key": f"{pair}.key"}
    data = {
        f"{name}-data": base64.b64encode(Path(path).read_bytes()).decode()
        for name, path in files.items()
    }
    for ask, user in ((gpu, files), (gpu_here, data)):
        path = write_kubeconfig(tmp_path / "config", user, **here)
        done = ask(path, "list", "-n", tenant.name, "-o", "name")
        assert (done.returncode, done.stdout) == (0, "gpujob.gpu-scheduler.io/job\n"), done


def test_a_program_logs_in_and_one_that_fails_is_told_without_its_words(
    control_plane: Running, here: dict[str, Any], tmp_path: Path
) -> None:
    token = {"token": control_plane.token()}
    good = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": token})
    path = write_kubeconfig(tmp_path / "config", {"exec": program(tmp_path, good)}, **here)
    assert gpu(path, "list").returncode == 0
    section = {**program(tmp_path, SECRET, 3), "installHint": "get it from your cloud"}
    path = write_kubeconfig(tmp_path / "config", {"exec": section}, **here)
    said = refused(gpu_here(path, "list"))
    assert "exec gave no credentials; get it from your cloud" in said and SECRET not in said


def test_an_issuer_that_cannot_be_asked_is_named(here: dict[str, Any], tmp_path: Path) -> None:
    body = base64.urlsafe_b64encode(b'{"exp": 1}').decode().rstrip("=")
    about = {
        "idp-issuer-url": "https://127.0.0.1:9",
        "idp-certificate-authority": here["certificate-authority"],
        "client-id": "c",
        "client-secret": SECRET,
        "id-token": f"e30.{body}.c2ln",
        "refresh-token": SECRET,
    }
    user = {"auth-provider": {"name": "oidc", "config": about}}
    said = refused(gpu(write_kubeconfig(tmp_path / "config", user, **here), "list"))
    assert "config" in said and SECRET not in said


def test_a_proxy_is_gone_through(
    control_plane: Running, here: dict[str, Any], tmp_path: Path
) -> None:
    user = {"token": control_plane.token()}
    with ConnectProxy() as proxy:
        path = write_kubeconfig(tmp_path / "config", user, **here, **{"proxy-url": proxy.url})
        done = gpu(path, "list")
        assert done.returncode == 0, done
    assert proxy.tunnels == [control_plane.server.removeprefix("https://")]
    said = refused(gpu_here(path, "list"))
    assert "does not answer" in said and "Connection refused" in said


def test_a_context_is_chosen_by_name(
    control_plane: Running, here: dict[str, Any], tmp_path: Path
) -> None:
    bad = write_kubeconfig(tmp_path / "bad", {"token": SECRET}, **here)
    good = yaml.safe_load(
        write_kubeconfig(tmp_path / "good", {"token": control_plane.token()}, **here)
        .read_text()
        .replace("name: c\n", "name: other\n")
    )
    good["contexts"][0]["context"] = {"cluster": "other", "user": "u2"}
    good["users"][0]["name"] = "u2"
    del good["current-context"]
    (tmp_path / "good").write_text(yaml.safe_dump(good))
    both = os.pathsep.join((str(bad), str(tmp_path / "good")))
    said = refused(gpu(both, "list"))
    assert "does not accept the credentials of the kubeconfig; log in again" in said
    assert SECRET not in said
    assert gpu_here(both, "list", "--context", "other").returncode == 0
    assert gpu_here(bad, "list", "--context", "other", "--kubeconfig", both).returncode == 0
    assert "there are: c, other" in refused(gpu_here(both, "list", "--context", "third"))


def test_no_cluster_and_no_kubeconfig_are_told(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"}, server="https://127.0.0.1:1")
    assert "https://127.0.0.1:1 does not answer (Connection refused)" in refused(gpu(path, "list"))
    path = write_kubeconfig(tmp_path / "config", {"token": "t"}, server="https://none.invalid")
    assert "https://none.invalid does not answer" in refused(gpu_here(path, "list"))
    assert "no such file" in refused(gpu_here(tmp_path / "nothing", "list"))
    done = gpu("", "list", HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="")
    assert "KUBECONFIG is not set" in refused(done)


READING = (
    ("list",),
    ("list", "-A"),
    ("why", "job"),
    ("describe", "job"),
    ("top", "gpus"),
    ("top", "jobs"),
    ("projects",),
    ("project", "describe", "p"),
    ("simulate",),
    ("fit", "-g", "0.5"),
    ("report", "job"),
    ("sweep", "trials", "job"),
    ("logs", "job"),
    ("suspend", "job"),
    ("delete", "job"),
    ("submit", "job", "-i", "image", "-g", "0.5"),
)
# The first stands for what the program makes of a refusal; the second would become kubectl.
AS_A_PROGRAM = (("list",), ("logs", "job"))


def read(kubeconfig: Path, arguments: tuple[str, ...], *more: str) -> Done:
    ask = gpu if arguments in AS_A_PROGRAM else gpu_here
    return ask(kubeconfig, *arguments, *more)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_nobody_is_shown_a_traceback_where_nothing_may_be_done(
    control_plane: Running, here: dict[str, Any], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A user who has no rights at all."""
    token = control_plane.kubectl("create", "token", "default", "-n", "default").stdout.strip()
    path = write_kubeconfig(tmp_path / "config", {"token": token}, **here)
    said = refused(read(path, arguments))
    if arguments[0] == "top":
        assert "you may read neither gpunodes.gpu-scheduler.io nor nodes" in said
    else:
        assert "forbidden" in said and "system:serviceaccount:default:default" in said


@pytest.fixture(scope="module")
def bare() -> Iterator[Running]:
    """A control plane without our kinds."""
    with cluster_of(bare_settings("bare")) as running:
        yield running


@pytest.mark.parametrize(
    "arguments", [each for each in READING if each[0] not in ("logs",)], ids=" ".join
)
def test_a_cluster_without_our_kinds_is_told(bare: Running, arguments: tuple[str, ...]) -> None:
    assert "its CRDs are not installed there; helm install" in refused(
        read(bare.kubeconfig, arguments)
    )


@pytest.mark.parametrize("version", ["older", "newer"])
def test_an_operator_of_another_version_is_shown_as_it_is(bare: Running, version: str) -> None:
    """Its kinds have other fields and columns, and its status says what we have no word for."""
    admin = administrator(bare)
    for path in CRDS:
        crd = yaml.safe_load(path.read_text())
        for served in crd["spec"]["versions"]:
            served["schema"]["openAPIV3Schema"] = {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
            if version == "older":
                served["additionalPrinterColumns"] = served.get("additionalPrinterColumns", [])[:3]
            else:
                column = {"name": "MOOD", "type": "string", "jsonPath": ".status.mood"}
                served.setdefault("additionalPrinterColumns", []).append(column)
        bare.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.dump(crd))
    for path in CRDS:
        name = yaml.safe_load(path.read_text())["metadata"]["name"]
        bare.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
    tenant = Tenant(admin).create()
    admin.create(
        f"{OWN}/gpuprojects",
        {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUProject",
            "metadata": {"name": tenant.name},
            "spec": {"quota": 1, "namespaces": [tenant.name], "season": "spring"},
        },
    )
    tenant.submit("job", gpu=0.5, flavour="strange")
    if version == "newer":
        status = {"phase": "Dreaming", "reason": "FullMoon", "message": "wait", "mood": "calm"}
        path = f"{OWN}/namespaces/{tenant.name}/gpujobs/job"
        answer = admin.patch(f"{path}/status", {"status": status})
        assert answer.ok or admin.patch(path, {"status": status}).ok, answer
    shown = {
        each: read(bare.kubeconfig, each, "-n", tenant.name)
        for each in READING
        if each[0] in ("list", "why", "describe", "top", "projects", "report", "suspend")
    }
    for arguments, done in shown.items():
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done)
    listed = shown["list",].stdout
    assert ("MOOD" in listed and "calm" in listed) == (version == "newer")
    assert ("FullMoon" in shown["why", "job"].stdout) == (version == "newer")
