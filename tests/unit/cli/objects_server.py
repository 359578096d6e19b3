"""An API server that knows only what it was given: GET of objects and lists, over HTTP."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Body = dict[str, Any]


@dataclass
class Objects:
    """What it knows: lists of bodies by path, a body by its own, and paths that it refuses.

    A list at ``/api/v1/pods`` answers for each namespace and each name, too.
    """

    lists: dict[str, list[Body]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    created: list[tuple[str, Body]] = field(default_factory=list)

    def answer(self, path: str, selector: str) -> tuple[int, Body]:
        if path in self.forbidden:
            return 403, _status(403, "Forbidden", f"you cannot list {path}")
        for known, bodies in self.lists.items():
            root, _, plural = known.rpartition("/")
            if path == known:
                return 200, {"items": [b for b in bodies if _selected(b, selector)]}
            prefix = f"{root}/namespaces/"
            if path.startswith(prefix):
                namespace, _, rest = path.removeprefix(prefix).partition("/")
                there = [b for b in bodies if b["metadata"].get("namespace") == namespace]
                if rest == plural:
                    return 200, {"items": [b for b in there if _selected(b, selector)]}
                if rest.startswith(f"{plural}/"):
                    return _one(there, rest.removeprefix(f"{plural}/"))
            if path.startswith(f"{known}/"):
                return _one(bodies, path.removeprefix(f"{known}/"))
        return 404, _status(404, "NotFound", "the server could not find the requested resource")


def _one(bodies: Sequence[Body], name: str) -> tuple[int, Body]:
    found = next((b for b in bodies if b["metadata"]["name"] == name), None)
    if found is None:
        details = {"name": name}
        return 404, _status(404, "NotFound", f'"{name}" not found') | {"details": details}
    return 200, found


def _selected(body: Mapping[str, Any], selector: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    for part in filter(None, selector.split(",")):
        key, equals, value = part.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    return True


def _status(code: int, reason: str, message: str) -> Body:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


@contextmanager
def serving(objects: Objects, folder: Path) -> Iterator[str]:
    """A server and the kubeconfig that leads there, with the namespace team-a."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            selector = parse_qs(url.query).get("labelSelector", [""])[0]
            self._say(*objects.answer(url.path, selector))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            objects.created.append((self.path, body))
            self._say(201, body)

        def _say(self, code: int, body: Body) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "users": [],
                "clusters": [
                    {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
                ],
                "contexts": [{"name": "x", "context": {"cluster": "c", "namespace": "team-a"}}],
            }
        )
    )
    try:
        yield str(path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
