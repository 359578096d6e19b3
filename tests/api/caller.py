"""One user of the API server: a request is sent and the answer comes back, refusals included.

Tests ask often, so a connection is kept: a new one costs both sides more than most requests.
"""

import json
import ssl
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MERGE_PATCH = "application/merge-patch+json"
_ANSWER_SECONDS = 70  # the API server gives up a request after 60


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Caller:
    """Sends requests with one bearer token, over one connection for each thread."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        self._address = urlsplit(server).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._token = token
        self._of_thread = threading.local()

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def create(self, path: str, body: dict[str, Any]) -> Answer:
        return self.send("POST", path, body)

    def patch(self, path: str, body: dict[str, Any]) -> Answer:
        return self.send("PATCH", path, body, MERGE_PATCH)

    def may(self, verb: str, resource: str, namespace: str = "", *, group: str = "") -> bool:
        """What the API server's authorizer says about this user."""
        plural, _, subresource = resource.partition("/")
        attributes = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": namespace,
        }
        review = {"spec": {"resourceAttributes": attributes}}
        answer = self.create(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", **review},
        )
        assert answer.ok, answer.message
        return bool(answer.body["status"]["allowed"])

    def send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        connection = self._connection()
        again = connection.sock is not None  # the server may have gone since it was used
        try:
            return _exchange(connection, method, path, data, headers)
        except (ConnectionError, ssl.SSLEOFError):
            if not again:
                raise
            return _exchange(connection, method, path, data, headers)

    def watch(self, path: str, query: str) -> Iterator[dict[str, Any]]:
        """Its events, until the API server ends it."""
        connection = HTTPSConnection(self._address, timeout=60, context=self._tls)
        with closing(connection):
            headers = {"Authorization": f"Bearer {self._token}"}
            connection.request("GET", f"{path}?watch=1&{query}", headers=headers)
            yield from map(json.loads, connection.getresponse())

    def _connection(self) -> HTTPSConnection:
        found: HTTPSConnection | None = getattr(self._of_thread, "connection", None)
        if found is None:
            found = HTTPSConnection(self._address, timeout=_ANSWER_SECONDS, context=self._tls)
            weakref.finalize(self, found.close)
            self._of_thread.connection = found
        return found


def _exchange(
    connection: HTTPSConnection, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> Answer:
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        warnings = response.headers.get_all("Warning", ())
        return Answer(response.status, json.loads(response.read()), tuple(warnings))
    except BaseException:
        connection.close()  # half an answer would be read as the next one
        raise
