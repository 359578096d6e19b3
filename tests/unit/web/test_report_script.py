"""The report.py of the examples, which users copy: it ends no training that nobody told to stop."""

import importlib.util
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "sweeps" / "report.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a kubelet projects into the pod."""
    file = tmp_path / "token"
    file.write_text("a.b.c")
    monkeypatch.setenv("GPUJOB_TOKEN_FILE", str(file))
    return file


@contextmanager
def answering(
    *answers: tuple[int, Any], tokens: list[str] | None = None
) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives these answers, one after the other; its address and what it was sent.

    ``tokens``: filled with what shows who it was.
    """
    left, seen = list(answers), []
    tokens = [] if tokens is None else tokens

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            tokens.append(self.headers["Authorization"])
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = left.pop(0)
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/reports/trials/u", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not left, "not all answers were asked for"


@pytest.mark.parametrize("stop", [True, False])
def test_it_says_what_it_was_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, stop: bool
) -> None:
    with answering((200, {"stop": stop})) as (url, seen):
        monkeypatch.setenv("GPUJOB_REPORT_URL", url)
        assert script.report(3, val_loss=0.4) is stop
    assert seen == [{"step": 3, "metrics": {"val_loss": 0.4}}]


def test_it_shows_the_token_that_is_in_the_file_now(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, token: Path
) -> None:
    tokens: list[str] = []
    with answering((503, {}), (200, {}), (200, {}), tokens=tokens) as (url, _):
        monkeypatch.setenv("GPUJOB_REPORT_URL", url)
        script.report(1, loss=1)
        token.write_text("d.e.f")
        script.report(2, loss=1)
    assert tokens == ["Bearer a.b.c", "Bearer a.b.c", "Bearer d.e.f"]


@pytest.mark.parametrize("there", [True, False])
def test_without_a_token_it_goes_on(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, token: Path, there: bool
) -> None:
    monkeypatch.setenv("GPUJOB_REPORT_URL", "http://127.0.0.1:1/reports/trials/u")
    if there:
        token.unlink()
    else:
        monkeypatch.delenv("GPUJOB_TOKEN_FILE")
    assert script.report(1, loss=1) is False


def test_it_tries_again_while_leaders_change(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering((503, {}), (503, {}), (200, {"stop": True})) as (url, _):
        monkeypatch.setenv("GPUJOB_REPORT_URL", url)
        assert script.report(1, loss=1) is True


@pytest.mark.parametrize(
    "answers",
    [[(503, {})] * 3, [(403, {"error": "no"})], [(500, b"oh")], [(200, b"?")], [(200, [])]],
)
def test_a_refusal_and_nonsense_mean_go_on(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, answers: list[Any]
) -> None:
    with answering(*answers) as (url, _):
        monkeypatch.setenv("GPUJOB_REPORT_URL", url)
        assert script.report(1, loss=1) is False


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:1/reports/trials/u", "nonsense"])
def test_without_an_address_that_answers_it_goes_on(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("GPUJOB_REPORT_URL", url)
    assert script.report(1, loss=1) is False


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"stop": tr',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
        b"HTTP/1.1 503 Wait\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_an_answer_that_breaks_off_ends_no_training(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    def answers(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answers, args=(server,))
        thread.start()
        monkeypatch.setenv("GPUJOB_REPORT_URL", f"http://127.0.0.1:{server.getsockname()[1]}/u/1/t")
        assert script.report(1, loss=1) is False
        thread.join()
