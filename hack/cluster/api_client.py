"""A small client of the API server, enough to set a cluster up with the standard library.

One object keeps one connection and belongs to one thread. Programs of the product use
their own client; this one only serves `hack/cluster`.
"""

import http.client
import json
import ssl
from pathlib import Path
from typing import Self, cast
from urllib.parse import urlsplit

from cluster.errors import ClusterError

Object = dict[str, object]


class ApiClient:
    """Speaks JSON with one server as one user."""

    def __init__(self, server: str, *, ca_file: Path, token: str | None = None) -> None:
        """Opens no connection yet."""
        address = urlsplit(server)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "",
            address.port,
            timeout=30,
            context=ssl.create_default_context(cafile=str(ca_file)),
        )
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: Object | None = None) -> tuple[int, bytes]:
        """Status code and body of one request.

        Raises:
            OSError: the server could not be reached or hung up.
        """
        data = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, data, self._headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(str(error)) from error
        except OSError:
            self._connection.close()
            raise

    def get(self, path: str) -> Object:
        """The object or list at `path`.

        Raises:
            ClusterError: the server refused.
        """
        return self._checked("GET", path, None)

    def items(self, path: str) -> list[Object]:
        """The objects of the list at `path`, as the API server's cache has them.

        Raises:
            ClusterError: the server refused.
        """
        return cast(list[Object], self.get(f"{path}?resourceVersion=0")["items"])

    def is_ok(self, path: str) -> bool:
        """Whether the server can be reached and answers `path` with 200."""
        try:
            return self.request("GET", path)[0] == 200
        except OSError:
            return False

    def create(self, path: str, body: Object) -> bool:
        """Creates `body`; False when an object of that name is already there.

        Raises:
            ClusterError: the server refused.
        """
        return self._checked("POST", path, body).get("reason") != "AlreadyExists"

    def _checked(self, method: str, path: str, body: Object | None) -> Object:
        status, data = self.request(method, path, body)
        answer = json.loads(data)
        if not isinstance(answer, dict):
            raise ClusterError(f"{method} {path}: not an object: {answer!r}")
        if status >= 400 and answer.get("reason") != "AlreadyExists":
            raise ClusterError(f"{method} {path}: {status} {answer.get('message')}")
        return answer
