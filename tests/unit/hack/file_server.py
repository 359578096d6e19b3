"""A web server on loopback whose files behave as a test says: cut, slow, redirected, endless."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.unit.kube.issued import FIRST

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One request; answers write to it."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.headers.append(dict(self.headers))
        self.server.first.set()
        self.close_connection = True
        answer = self.server.answers.get(self.path, status(404))
        try:
            answer(self)
        except ConnectionError:
            pass

    def do_CONNECT(self) -> None:
        self.do_GET()

    def begin(self, length: int | None, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Answers by path; what nobody set is 404. `first` is set once
    something was asked; `over` ends the answers that never end.
    """

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._scheme = "https" if tls else "http"
        if tls:  # each connection shakes hands in its own thread
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.first, self.over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.host}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def behind_tls(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """What a server shows, and the file of the authority that a client is to trust."""
    pair, authority = folder / "pair", folder / "authority"
    pair.write_text(FIRST.certificate + FIRST.key)
    authority.write_text(FIRST.authority)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair)
    return tls, authority


def right(content: bytes) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(len(content))
        handler.wfile.write(content)

    return answer


def without_length(content: bytes) -> Answer:
    """Its end is the connection's end, so a cut one looks complete."""

    def answer(handler: Handler) -> None:
        handler.begin(None)
        handler.wfile.write(content)

    return answer


def says_length(content: bytes, length: int) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(length)
        handler.wfile.write(content)

    return answer


def status(code: int, content: bytes = b"no") -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(len(content), code)
        handler.wfile.write(content)

    return answer


def page(text: bytes = b"<html>log in first</html>") -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(len(text), Content_Type="text/html")
        handler.wfile.write(text)

    return answer


def redirect(location: str, code: int = 302) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(0, code, Location=location)

    return answer


def stalled(content: bytes, length: int, code: int = 200, **headers: str) -> Answer:
    """Sends a part and then nothing, with the connection open."""

    def answer(handler: Handler) -> None:
        handler.begin(length, code, **headers)
        handler.wfile.write(content)
        handler.wfile.flush()
        handler.server.over.wait()

    return answer


def silent(handler: Handler) -> None:
    """Takes the request and never answers."""
    handler.server.over.wait()


def dripping(content: bytes, every_seconds: float) -> Answer:
    """One byte at a time, so that it never stalls."""

    def answer(handler: Handler) -> None:
        handler.begin(len(content))
        for number in range(len(content)):
            handler.wfile.write(content[number : number + 1])
            handler.wfile.flush()
            if handler.server.over.wait(every_seconds):
                return

    return answer


def dripping_chunk_header(handler: Handler) -> None:
    """A chunked answer whose first chunk's length never ends."""
    handler.begin(None, Transfer_Encoding="chunked")
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b"0")
        handler.wfile.flush()


def endless(handler: Handler) -> None:
    handler.begin(None)
    while not handler.server.over.is_set():
        handler.wfile.write(bytes(65536))


def compressed(content: bytes) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(len(content), Content_Encoding="gzip")
        handler.wfile.write(content)

    return answer


def garbage(handler: Handler) -> None:
    handler.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
