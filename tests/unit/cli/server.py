"""An API server in this process that answers what a test says, over real HTTP."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from click.testing import CliRunner, Result

from gpu_scheduler.cli.root import app

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    params: dict[str, str]
    accept: str
    body: Json


@dataclass(slots=True)
class Server:
    """Answers by path; a list of lines is a watch.

    Attributes:
        answers: by "METHOD path": a body, a function of the request, or a status code.
        requests: what was asked.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def answer(self, request: Request) -> tuple[int, Any]:
        self.requests.append(request)
        found = self.answers.get(f"{request.method} {request.path}", 404)
        if callable(found):
            found = found(request)
        if isinstance(found, int):
            name = request.path.rpartition("/")[2]
            details = {"name": name} if found != 404 or "/" in request.path else {}
            body = {"kind": "Status", "code": found, "message": f"no {name}", "details": details}
            return found, body | ({"reason": "AlreadyExists"} if found == 409 else {})
        return 200, found

    def kubeconfig(self, folder: Path) -> str:
        return kubeconfig(self.port, folder)

    def caller(self, folder: Path, *before: str) -> Callable[..., Result]:
        """``kubectl gpu`` on this server, with these words before those that are given."""
        env = {"KUBECONFIG": self.kubeconfig(folder)}
        return lambda *words: CliRunner().invoke(
            app, [*before, *words], prog_name="kubectl gpu", env=env
        )

    def sent(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.method == method]


def kubeconfig(port: int, folder: Path) -> str:
    """Leads to a server on this machine, with the namespace team-a."""
    path = folder / "kubeconfig"
    about = {"cluster": "c", "namespace": "team-a", "user": "u"}
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": about}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


@contextmanager
def serving(answers: dict[str, Any]) -> Iterator[Server]:
    server = Server(dict(answers))
    with listening(server.answer) as server.port:
        yield server


@contextmanager
def listening(answer: Callable[[Request], tuple[int, Any]]) -> Iterator[int]:
    """A port where requests are answered by a code and a body; a list of bodies is a watch."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait 40 ms for the acknowledged head

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            code, found = answer(
                Request(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query)),
                    self.headers.get("Accept", ""),
                    body,
                )
            )
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            if isinstance(found, list):
                self.stream(found)
                return
            data = json.dumps(found).encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, events: list[Any]) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                if isinstance(event, Callable):  # type: ignore[arg-type]
                    event()
                    continue
                data = json.dumps(event).encode() + b"\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield http.server_address[1]
        finally:
            http.shutdown()
            thread.join()
