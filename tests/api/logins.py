"""Ways for a person into a cluster: by token, by client certificate, by a program that logs in.

Each is a kubeconfig for the command line, and what a program of their own would send.
"""

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.api import forked
from tests.api.caller import Caller
from tests.api.cli.program import write_kubeconfig
from tests.api.forked import Done
from tests.api.replica import ROOT
from tests.api.tenant import Json, until

from cluster import Running

CHART = ROOT / "charts" / "gpu-scheduler"
WAYS = ("token", "certificate", "program")
_RBAC = "rbac.authorization.k8s.io"
_V1 = "client.authentication.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Login:
    """Somebody who is known to the cluster; with neither token nor certificate: nobody.

    Attributes:
        server: address of the API server.
        ca_file: by which it is known.
        kubeconfig: how they log in; None for nobody.
        token: that they send.
        pair: certificate and key that they show.
    """

    server: str
    ca_file: Path
    kubeconfig: Path | None = None
    token: str = ""
    pair: tuple[Path, Path] | None = None

    @contextmanager
    def asking(self) -> Iterator[Callable[[str], tuple[int, str]]]:
        """What the API server answers to a path: status and text."""
        tls = ssl.create_default_context(cafile=str(self.ca_file))
        if self.pair is not None:
            tls.load_cert_chain(*self.pair)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with closing(HTTPSConnection(urlsplit(self.server).netloc, timeout=60, context=tls)) as to:

            def get(path: str) -> tuple[int, str]:
                to.request("GET", path, headers=headers)
                answer = to.getresponse()
                return answer.status, answer.read().decode(errors="replace")

            yield get

    def get(self, path: str) -> tuple[int, str]:
        """The same once."""
        with self.asking() as get:
            return get(path)

    def gpu(self, *words: str) -> Done:
        """What ``kubectl gpu WORDS`` prints, and how it ends."""
        environment = {"KUBECONFIG": str(self.kubeconfig), "PYTHONPATH": str(ROOT / "operator")}
        return forked.command(words, {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **environment})


@contextmanager
def logins(running: Running, admin: Caller, namespace: str, folder: Path) -> Iterator[list[Login]]:
    """One by each of ``WAYS``, in their order; each may view a namespace, and nothing else."""
    person = f"certified-{namespace}"
    at = {"server": running.server, "certificate-authority": str(running.ca_file)}
    known = running.server, running.ca_file
    accounts = [_account(admin, namespace, name) for name in ("by-token", "by-program")]
    subjects: list[Json] = [
        {"kind": "ServiceAccount", "name": name, "namespace": namespace} for name, _ in accounts
    ]
    subjects.append({"apiGroup": _RBAC, "kind": "User", "name": person})
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"}
    body = {"metadata": {"name": "viewers"}, "roleRef": role, "subjects": subjects}
    assert admin.create(f"/apis/{_RBAC}/v1/namespaces/{namespace}/rolebindings", body).ok
    by_token, by_program = (token for _, token in accounts)

    def kubeconfig(name: str, user: dict[str, Any]) -> Path:
        return write_kubeconfig(folder / name, user, **at)

    with _trusted(running, folder) as sign:
        pair = sign(person)
        files = dict(zip(("client-certificate", "client-key"), map(str, pair), strict=True))
        program = _program(folder, by_program)
        found = [
            Login(*known, kubeconfig("token", {"token": by_token}), by_token),
            Login(*known, kubeconfig("certificate", files), pair=pair),
            Login(*known, kubeconfig("program", {"exec": program}), by_program),
        ]
        path = f"/api/v1/namespaces/{namespace}/pods"
        for each in found:
            until(partial(_may_look, each, path), "they are known, and may look")
        yield found


def _may_look(login: Login, path: str) -> bool:
    return login.get(path)[0] == 200


def _account(admin: Caller, namespace: str, name: str) -> tuple[str, str]:
    """Name and token of a new ServiceAccount."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert admin.create(path, {"metadata": {"name": name}}).ok
    asked: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return name, admin.create(f"{path}/{name}/token", asked).body["status"]["token"]


def _program(folder: Path, token: str) -> Json:
    """The ``exec`` section of a program that prints a token."""
    answer = {"apiVersion": _V1, "kind": "ExecCredential", "status": {"token": token}}
    path = folder / "login"
    path.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    path.chmod(0o700)
    return {"apiVersion": _V1, "command": str(path), "interactiveMode": "Never"}


@contextmanager
def _trusted(running: Running, folder: Path) -> Iterator[Any]:
    """A CA whose clients the API server knows; signs pairs for names.

    The key of the cluster's own CA is thrown away when it is made. The API server reads the file
    of those that it trusts again when it changes.
    """
    ca, key = folder / "ca.crt", folder / "ca.key"
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")

    def run(*words: object) -> None:
        subprocess.run([str(word) for word in words], check=True, capture_output=True)

    def sign(name: str) -> tuple[Path, Path]:
        request, own, certificate = (folder / f"{name}.{kind}" for kind in ("csr", "key", "crt"))
        extensions = folder / "extensions"
        extensions.write_text("extendedKeyUsage=clientAuth\n")
        run(*new, "-keyout", own, "-out", request, "-subj", f"/CN={name}")
        by = ("-CA", ca, "-CAkey", key, "-CAcreateserial", "-days", 1, "-extfile", extensions)
        run("openssl", "x509", "-req", "-in", request, "-out", certificate, *by)
        return certificate, own

    run(*new, "-x509", "-keyout", key, "-out", ca, "-days", 1, "-subj", "/CN=of-people")
    before = running.ca_file.read_text()
    running.ca_file.write_text(before + ca.read_text())
    try:
        yield sign
    finally:
        running.ca_file.write_text(before)
