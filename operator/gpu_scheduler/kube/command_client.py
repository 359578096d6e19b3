"""The API server as commands use it, through the kubernetes package.

The package opens connections (certificates, names, proxies); paths, errors and kubeconfigs are
those of the operator (``paths``, ``errors``, ``config``). Bodies are plain JSON, so a server that
knows more fields or fewer than we do is no error. Nothing is tried again: a person is watching.
"""

import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Self
from urllib.parse import urlencode

import msgspec
import orjson

from gpu_scheduler import __version__
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.connection import ConfigError, Connection, Token
from gpu_scheduler.kube.media_types import JSON, MERGE_PATCH
from gpu_scheduler.kube.objects import Status
from gpu_scheduler.kube.package_parts import parts_alone

Json = dict[str, Any]

_TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
_CONNECT_SECONDS, _READ_SECONDS = 10.0, 60.0
_PAGE = 500  # objects per answer


class CommandClient:
    """A context manager; every method raises ``errors.ApiError`` for a refusal.

    Attributes:
        connection: where the server is, and who we are.

    Raises:
        ConfigError: the kubernetes package is missing, or cannot use the connection.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._token = Token(connection, monotonic)
        self._open = ExitStack()
        try:
            with parts_alone():
                from kubernetes.client.configuration import Configuration
                from kubernetes.client.rest import RESTClientObject
            from urllib3.exceptions import InsecureRequestWarning
        except ImportError:
            raise ConfigError("the package kubernetes is missing: pip install '.[cli]'") from None
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="gpu-")))
        settings: Any = Configuration(host=connection.server)
        settings.verify_ssl = connection.verify
        if not connection.verify:  # who wrote insecure-skip-tls-verify need not be told each time
            warnings.simplefilter("ignore", InsecureRequestWarning)
        settings.ssl_ca_cert = _file(connection.ca_pem, connection.ca_file, folder / "ca")
        settings.cert_file = _file(
            connection.certificate_pem, connection.certificate_file, folder / "certificate"
        )
        settings.key_file = _file(connection.key_pem, connection.key_file, folder / "key")
        if connection.server_name:
            settings.tls_server_name = connection.server_name
        if connection.proxy:
            settings.proxy = connection.proxy
        self._pool: Any = RESTClientObject(settings).pool_manager
        self._open.callback(self._pool.clear)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def get(self, path: str, **params: str) -> Json:
        """An object or a list."""
        return self._json("GET", path, params=params)

    def table(self, path: str, **params: str) -> Json:
        """An object or a list as the server's Table: ``columnDefinitions`` and ``rows``."""
        return self._json("GET", path, params=params, accept=f"{_TABLE},{JSON}")

    def items(self, path: str, selector: str = "", *, page: int = _PAGE) -> Iterator[Json]:
        """All objects of a collection, so many an answer."""
        params = {"limit": str(page)}
        if selector:
            params["labelSelector"] = selector
        while True:
            part = self.get(path, **params)
            kind, version = str(part.get("kind", "")), str(part.get("apiVersion", ""))
            for item in part.get("items") or ():
                item.setdefault("kind", kind.removesuffix("List"))
                item.setdefault("apiVersion", version)
                yield item
            more = (part.get("metadata") or {}).get("continue")
            if not more:
                return
            params["continue"] = str(more)

    def watch(self, path: str, *, as_table: bool = False, **params: str) -> Iterator[Json]:
        """Events of a watch, ``type`` and ``object``, until the server or the way to it ends it."""
        from urllib3.exceptions import HTTPError

        params["watch"] = "true"
        answer = self._send("GET", path, params=params, accept=_TABLE if as_table else JSON)
        rest = b""
        try:
            for piece in answer.stream(amt=None):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    event = orjson.loads(line)
                    if event.get("type") == "ERROR":
                        status = msgspec.convert(event["object"], Status)
                        raise errors.from_status(status)
                    yield event
        except HTTPError:
            return  # it broke while it was read; whoever wants more goes on from the last event
        finally:
            answer.close()

    def create(self, path: str, body: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        """POST.

        Args:
            path: of the collection.
            body: the object.
            dry_run: admission and validation alone.
            strict: a field that the server does not know is refused, not dropped.
        """
        params = {"dryRun": "All"} if dry_run else {}
        params |= {"fieldValidation": "Strict"} if strict else {}
        return self._json("POST", path, params=params, body=body)

    def merge_patch(self, path: str, body: Json) -> Json:
        """PATCH with a merge patch."""
        return self._json("PATCH", path, body=body, content=MERGE_PATCH)

    def delete(self, path: str) -> Json:
        """DELETE; what the object owns goes after it."""
        return self._json("DELETE", path, params={"propagationPolicy": "Background"})

    def _json(self, method: str, path: str, **more: Any) -> Json:
        answer = self._send(method, path, **more)
        try:
            found = orjson.loads(answer.data)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise errors.ApiError(
                answer.status, "", f"{path}: the answer is no object of Kubernetes"
            )
        return found

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Json | None = None,
        accept: str = JSON,
        content: str = JSON,
    ) -> Any:
        from urllib3.exceptions import HTTPError
        from urllib3.util import Timeout

        headers = {"Accept": accept, "User-Agent": f"kubectl-gpu/{__version__}"}
        if token := self._token.current():
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = content
        query = f"?{urlencode(params)}" if params else ""
        watched = params is not None and "watch" in params
        try:
            answer = self._pool.request(
                method,
                f"{self.connection.server}{path}{query}",
                headers=headers,
                body=None if body is None else orjson.dumps(body),
                preload_content=False,
                retries=False,
                redirect=False,
                timeout=Timeout(_CONNECT_SECONDS, None if watched else _READ_SECONDS),
            )
            if answer.status >= 300:
                raise errors.from_answer(answer.status, answer.data)
            if not watched:
                _ = answer.data  # read here: it may break
        except HTTPError as error:
            raise errors.Unavailable(message=_plainly(error)) from None
        return answer


def _file(pem: str, file: Path | None, target: Path) -> str | None:
    """Where a certificate or key is: the package reads files alone."""
    if not pem:
        return None if file is None else str(file)
    target.touch(mode=0o600)
    target.write_text(pem)
    return str(target)


def _plainly(error: Exception) -> str:
    """What went wrong on the way, without the objects that urllib3 shows."""
    inner: object = (
        getattr(error, "original_error", None) or getattr(error, "reason", None) or error
    )
    text = str(inner)
    text = re.sub(r"^(<[^>]*>|\w+\([^)]*\)): ", "", text)
    text = re.sub(r"^Failed to (?:establish a new connection|resolve [^(]*)[: ]*", "", text)
    return re.sub(r"\[Errno -?\d+\] ", "", text).strip(" ()") or type(error).__name__
