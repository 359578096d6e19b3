"""One user of the API server: a request is sent and the answer comes back, refusals included."""

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Caller:
    """Sends requests with one bearer token."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._token = token

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
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        request = urllib.request.Request(
            self._server + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": content_type},
        )
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as response:
                return Answer(response.status, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.load(error))
