"""The port for reports, over HTTP: nothing but reports, and none for long."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from gpu_scheduler.api.search import MAX_REPORT_BYTES
from gpu_scheduler.runtime.reports.answer import Answer
from gpu_scheduler.runtime.reports.report_tokens import Sender
from gpu_scheduler.web import reports as module
from gpu_scheduler.web.admin import app as admin_app
from gpu_scheduler.web.bounded import Listener
from gpu_scheduler.web.reports import app

HttpClient = TestClient[web.Request, web.Application]
PATH = "/reports/trials/pod-uid"
SAVED = "/reports/checkpoints/pod-uid"
TOKEN = {"Authorization": "Bearer secret-token"}
SENDER = Sender("Bearer secret-token", "127.0.0.1")


class Judge:
    """Stands in for the runtime: remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.refused: Answer | None = None  # whoever it is
        self.senders: list[Sender] = []
        self.asked: list[tuple[str, bytes]] = []

    async def refusal(self, uid: str, sender: Sender) -> Answer | None:
        self.senders.append(sender)
        return self.refused

    async def take(self, uid: str, body: bytes) -> Answer:
        self.asked.append((uid, body))
        return self.answer


def leader(judge: Judge | None) -> Any:
    """A leader whose reports of every kind this one judges."""
    if judge is None:
        return None
    sweeping, reports = SimpleNamespace(reports=judge), SimpleNamespace(checkpoints=judge)
    return SimpleNamespace(sweeping=sweeping, reports=reports)


@asynccontextmanager
async def served(judge: Judge | None) -> AsyncIterator[HttpClient]:
    leading: Any = lambda: leader(judge)  # noqa: E731
    async with TestClient(TestServer(app(leading))) as client:
        yield client


async def test_a_report_is_judged_by_what_its_address_and_body_say() -> None:
    judge = Judge(Answer(200, {"stop": True}))
    async with served(judge) as client:
        answer = await client.post(PATH, data=b'{"step": 1}', headers=TOKEN)
        assert (answer.status, await answer.json()) == (200, {"stop": True})
        assert "Retry-After" not in answer.headers
    assert judge.asked == [("pod-uid", b'{"step": 1}')]
    assert judge.senders == [SENDER]


async def test_who_is_behind_the_port_of_a_listener_is_known_by_its_address() -> None:
    judge = Judge(Answer(200, {}))
    leading: Any = lambda: leader(judge)  # noqa: E731
    listener = Listener(app(leading))
    port = await listener.start("127.0.0.1", 0)
    async with ClientSession() as session:
        await session.post(f"http://127.0.0.1:{port}{PATH}", headers=TOKEN)
    await listener.cleanup()
    assert judge.senders == [SENDER]


async def test_a_checkpoint_is_judged_by_what_its_address_and_body_say() -> None:
    judge = Judge(Answer(200, {"checkpointedAt": "x"}))
    async with served(judge) as client:
        answer = await client.post(SAVED, data=b"")
        assert (answer.status, await answer.json()) == (200, {"checkpointedAt": "x"})
        assert (await client.post(SAVED)).status == 200, "without a body"
        assert (await client.get(SAVED)).status == 405
    assert judge.asked == [("pod-uid", b"")] * 2


@pytest.mark.parametrize("path", ["uid-1/3/0123abcd", "checkpoints/pod-uid/0123abcd"])
async def test_an_address_of_an_earlier_version_is_answered_in_words(path: str) -> None:
    judge = Judge(Answer(200, {}))
    async with served(judge) as client:
        answer = await client.post(f"/reports/{path}", data=b"{}")
        assert answer.status == 410
        assert "earlier version" in (await answer.json())["error"]
    assert judge.asked == judge.senders == []


async def test_who_shows_no_token_is_told_which_kind_is_wanted() -> None:
    judge = Judge(Answer(200, {}))
    judge.refused = Answer(401, {"error": "no token"})
    async with served(judge) as client:
        answer = await client.post(PATH)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


async def test_any_content_type_will_do() -> None:
    judge = Judge(Answer(200, {"stop": False}))
    async with served(judge) as client:
        for kind in ("application/x-www-form-urlencoded", "application/json", "x/y"):
            answer = await client.post(PATH, data=b"{}", headers={"Content-Type": kind})
            assert answer.status == 200
    assert [body for *_, body in judge.asked] == [b"{}"] * 3


async def test_a_refusal_says_why_and_when_to_try_again() -> None:
    async with served(Judge(Answer(429, {"error": "too often"}, 7))) as client:
        answer = await client.post(PATH, data=b"{}")
        assert (answer.status, await answer.json()) == (429, {"error": "too often"})
        assert answer.headers["Retry-After"] == "7"


async def test_a_stand_by_asks_to_try_again() -> None:
    async with served(None) as client:
        answer = await client.post(PATH, data=b"{}")
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_is_refused_before_it_is_judged(chunked: bool) -> None:
    judge = Judge(Answer(200, {}))
    body = b"x" * (MAX_REPORT_BYTES + 1)

    async def stream() -> AsyncIterator[bytes]:
        yield body

    async with served(judge) as client:
        answer = await client.post(PATH, data=stream() if chunked else body)
        assert answer.status == 413
        assert f"{MAX_REPORT_BYTES:,}" in (await answer.json())["error"]
    assert judge.asked == []


async def test_a_body_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_BODY_SECONDS", 0.05)
    judge, never = Judge(Answer(200, {})), asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    async with served(judge) as client:
        answer = await client.post(PATH, data=stalled())
        assert answer.status == 408
    assert judge.asked == []


@pytest.mark.parametrize(
    "path",
    ["/reports", "/reports/trials", "/reports/other/u", "/reports/trials/u/x/y", "/metrics"],
)
async def test_what_is_no_address_is_not_found(path: str) -> None:
    judge = Judge(Answer(200, {}))
    async with served(judge) as client:
        assert (await client.post(path, data=b"{}")).status == 404
    assert judge.asked == []


def test_the_ports_of_operator_and_agent_have_no_other_addresses() -> None:
    """A new one belongs into the table of tests/api/test_viewer.py."""
    admin = admin_app(CollectorRegistry(), ready=lambda: "", state=lambda: "")
    routes = [*admin.router.routes(), *app(lambda: None).router.routes()]
    assert {(r.method, r.resource.canonical) for r in routes if r.resource is not None} == {
        *((m, p) for m in ("GET", "HEAD") for p in ("/healthz", "/readyz", "/metrics")),
        ("POST", "/reports/trials/{pod}"),
        ("POST", "/reports/checkpoints/{pod}"),
        ("POST", "/reports/{sweep}/{trial}/{token}"),
    }


async def test_nothing_can_be_read() -> None:
    async with served(Judge(Answer(200, {}))) as client:
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            assert (await client.request(method, PATH)).status == 405


async def test_who_is_refused_is_not_waited_for() -> None:
    judge, never = Judge(Answer(200, {})), asyncio.Event()
    judge.refused = Answer(403, {"error": "not the token"})

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    async with served(judge) as client:
        answer = await client.post(PATH, data=stalled())
        assert (answer.status, await answer.json()) == (403, {"error": "not the token"})
    assert judge.asked == []


SEGMENTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60)
HOSTILE = st.one_of(
    st.binary(max_size=300),
    st.lists(SEGMENTS, min_size=1, max_size=5).map(lambda s: ("/reports/" + "/".join(s)).encode()),
    SEGMENTS.map(lambda s: f"/reports/trials/{s}".encode()),
    st.sampled_from([b"/reports/" + b"x" * 9000, b"/reports/trials/%ff", b"/reports/../1/..//"]),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(HOSTILE, min_size=1, max_size=5))
def test_no_address_makes_it_fail(paths: list[bytes]) -> None:
    async def run() -> None:
        judge = Judge(Answer(200, {}))
        judge.refused = Answer(410, {"error": "this pod does not run"})
        leading: Any = lambda: leader(judge)  # noqa: E731
        listener = Listener(app(leading))
        port = await listener.start("127.0.0.1", 0)
        for path in paths:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            writer.write_eof()
            with suppress(ConnectionError):
                answer = await reader.read()
                assert not answer or 400 <= int(answer.split()[1]) < 500, answer
            writer.close()
        await listener.cleanup()
        assert judge.asked == []

    uvloop.run(run())


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 10\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\nx\r\n{",
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8b\x08xx",
    ],
)
async def test_a_body_that_breaks_off_is_no_error_of_ours(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    judge = Judge(Answer(200, {}))
    leading: Any = lambda: leader(judge)  # noqa: E731
    listener = Listener(app(leading))
    port = await listener.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: a\r\n".encode() + body)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    with suppress(ConnectionError):
        await reader.read()
    writer.close()
    await listener.cleanup()
    assert not [record for record in caplog.records if record.exc_info]


class Broken(Judge):
    async def take(self, uid: str, body: bytes) -> Answer:
        raise RuntimeError("a defect")


@pytest.mark.parametrize(
    "judge", [Judge(Answer(200, {})), Judge(Answer(403, {})), Broken(Answer(200, {})), None]
)
async def test_tokens_reach_no_log(judge: Judge | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leading: Any = lambda: leader(judge)  # noqa: E731
    listener = Listener(app(leading))
    port = await listener.start("127.0.0.1", 0)
    async with ClientSession() as session:
        where = f"http://127.0.0.1:{port}{PATH}"
        async with session.post(where, data=b"{}", headers=TOKEN) as answer:
            assert answer.status in (200, 403, 500, 503)
    await listener.cleanup()
    assert "secret-token" not in caplog.text
    if isinstance(judge, Broken):
        assert "a defect" in caplog.text, "the log is looked at"
