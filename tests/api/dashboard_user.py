"""Somebody who has a token and looks at the dashboard."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote

from tests.api.caller import Caller
from tests.api.tenant import GIVE_UP_SECONDS

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer of the dashboard."""

    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class Live:
    """An open stream."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    def event(self) -> tuple[str, Any]:
        """The next one; its name is empty where the stream has ended without a word."""
        name, data = "", "null"
        try:
            while line := self._answer.readline().decode():
                if line == "\n" and name:
                    return name, json.loads(data)
                kind, _, said = line.rstrip("\n").partition(": ")
                name = said if kind == "event" else name
                data = said if kind == "data" else data
        except (OSError, HTTPException):
            pass
        return "", None


@dataclass(slots=True)
class DashboardUser:
    """Their token, and the port."""

    token: str
    port: int

    def get(self, path: str) -> Shown:
        return self.send("GET", path)

    def send(
        self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> Shown:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP_SECONDS)
        with closing(connection):
            more = {"Content-Type": "application/json"} if body is not None else {}
            more |= {"Origin": f"http://127.0.0.1:{self.port}", **self._authorization(), **headers}
            data = json.dumps(body) if body is not None else None
            connection.request(method, f"/api/v1/{path}", data, more)
            answer = connection.getresponse()
            return Shown(answer.status, answer.read().decode(), dict(answer.headers))

    @contextmanager
    def live(self, view: str) -> Iterator[Live]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP_SECONDS)
        with closing(connection):
            path = f"/api/v1/stream?view={quote(view, safe='')}"
            connection.request("GET", path, headers=self._authorization())
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield Live(answer)

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def account(admin: Caller, namespace: str, name: str) -> str:
    """One more ServiceAccount; its token."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert admin.create(path, {"metadata": {"name": name}}).ok
    return token(admin, namespace, name)


def token(admin: Caller, namespace: str, name: str, **spec: Any) -> str:
    """A token of an account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = admin.create(path, body)
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


def bind(admin: Caller, namespace: str, of: tuple[str, str], role: str) -> str:
    """Give an account a role in a namespace; the path of the binding."""
    path = f"{RBAC}/namespaces/{namespace}/rolebindings"
    name = f"{of[1]}-{role}"
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": of[0], "name": of[1]}],
    }
    assert admin.create(path, body).ok
    return f"{path}/{name}"
