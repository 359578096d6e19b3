"""The admin port, over HTTP."""

import asyncio
import threading
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Gauge

from gpu_scheduler.web import exposition
from gpu_scheduler.web.admin import LIMITS, AdminPort, app
from gpu_scheduler.web.bounded import Listener
from gpu_scheduler.web.own_thread import asking

HttpClient = TestClient[web.Request, web.Application]


@asynccontextmanager
async def admin(missing: str = "", state: str = "leader") -> AsyncIterator[HttpClient]:
    registry = CollectorRegistry()
    Gauge("gpusched_answer", "Of everything.", registry=registry).set(42)
    application = app(registry, ready=lambda: missing, state=lambda: state)
    async with TestClient(TestServer(application)) as client:
        yield client


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("state", ["leader", "standby"])
async def test_a_leader_and_a_stand_by_are_healthy_and_ready(path: str, state: str) -> None:
    async with admin(state=state) as client:
        answer = await client.get(path)
        assert (answer.status, await answer.text()) == (200, f"ok {state}\n")


async def test_what_is_missing_is_said_and_does_not_make_it_sick() -> None:
    async with admin(missing="no lease yet") as client:
        ready, healthy = await client.get("/readyz"), await client.get("/healthz")
        assert (ready.status, await ready.text()) == (503, "no lease yet")
        assert healthy.status == 200


async def test_metrics_come_in_the_format_of_prometheus() -> None:
    async with admin() as client:
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert "gpusched_answer 42.0\n" in await answer.text()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_nothing_can_be_changed(path: str) -> None:
    async with admin() as client:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await client.request(method, path)).status == 405
        assert (await client.get("/other")).status == 404


async def test_it_listens_where_it_is_told_and_stops() -> None:
    application = app(CollectorRegistry(), ready=lambda: "", state=lambda: "leader")
    listener = Listener(application, LIMITS)
    host, port = "127.0.0.1", await listener.start("127.0.0.1", 0)
    async with ClientSession() as session:
        async with session.get(f"http://{host}:{port}/healthz") as answer:
            assert answer.status == 200
        await listener.cleanup()
        with pytest.raises(OSError):
            await session.get(f"http://{host}:{port}/healthz")


async def test_one_who_does_not_wait_for_the_metrics_leaves_no_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = CollectorRegistry()
    listener = Listener(app(registry, ready=lambda: "", state=lambda: "leader"), LIMITS)
    port = await listener.start("127.0.0.1", 0)
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        await writer.drain()
        writer.transport.abort()
        await asyncio.sleep(0)
    async with ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.get("/metrics") as answer:
            assert answer.status == 200
    await listener.cleanup()
    assert not [record for record in caplog.records if record.exc_info]


async def test_metrics_come_whole_however_many_there_are() -> None:
    registry = CollectorRegistry()
    many = Gauge("gpusched_many", "Of them.", ["number"], registry=registry)
    for number in range(5000):
        many.labels(str(number)).set(number)
    listener = Listener(app(registry, ready=lambda: "", state=lambda: "leader"), LIMITS)
    port = await listener.start("127.0.0.1", 0)
    async with ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.get("/metrics") as answer:
            text = await answer.text()
        assert len(text) > 64 << 10 and text.count("\ngpusched_many{") == 5000
        async with session.head("/metrics") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
            assert int(answer.headers["Content-Length"]) == len(text)
        async with session.get("/healthz") as answer:
            assert answer.status == 200, "the connection goes on"
    await listener.cleanup()


def _threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("admin")


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


@asynccontextmanager
async def admin_port(asked: list[int]) -> AsyncIterator[str]:
    """Its address; ``asked`` gets the threads that were asked for the state."""

    def state() -> str:
        asked.append(threading.get_ident())
        return "leader"

    registry = CollectorRegistry()
    Gauge("gpusched_answer", "Of everything.", registry=registry).set(42)
    ask = asking(asyncio.get_running_loop())
    port = AdminPort(app(registry, ready=lambda: "", state=state, ask=ask))
    number = await port.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{number}"
    finally:
        await port.cleanup()
    assert _threads() == 0


async def test_metrics_that_were_made_come_while_the_main_loop_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exposition, "KEPT_SECONDS", float("inf"))
    async with admin_port([]) as url:
        made = await asyncio.to_thread(_get, f"{url}/metrics")
        found: list[str] = []
        scraping = threading.Thread(target=lambda: found.append(_get(f"{url}/metrics")))
        scraping.start()
        scraping.join()  # the main loop stands still until it has its answer
        assert found == [made] and "gpusched_answer 42.0\n" in made


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_is_that_of_the_main_loop(path: str) -> None:
    asked: list[int] = []
    async with admin_port(asked) as url:
        assert await asyncio.to_thread(_get, url + path) == "ok leader\n"
    assert asked == [threading.get_ident()]


async def test_a_port_that_is_taken_is_said_and_leaves_no_thread() -> None:
    async with admin_port([]) as url:
        taken = AdminPort(app(CollectorRegistry(), ready=lambda: "", state=lambda: ""))
        with pytest.raises(OSError):
            await taken.start("127.0.0.1", int(url.rpartition(":")[2]))
        assert _threads() == 1, "that of the one who listens"
