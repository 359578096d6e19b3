"""Strangers can take up the port, and nothing else."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import uvloop
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_scheduler.web.bounded import ConnectionLimits, Listener

CONNECTIONS = 3
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def listening(
    limits: ConnectionLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
    served: list[str] | None = None,
) -> AsyncIterator["Port"]:
    async def hello(request: web.Request) -> web.Response:
        if served is not None:
            served.append(str(request.remote))
        return web.Response(text="hello")

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["code"]))

    application = web.Application()
    application.add_routes([web.get("/", hello), web.get("/{code:[0-9]+}", refuse)])
    listener = Listener(application, limits or ConnectionLimits(connections=CONNECTIONS), clock)
    port = Port(await listener.start("127.0.0.1", 0))
    try:
        yield port
    finally:
        await listener.cleanup()
        await port.leave()


class Port:
    """Where it listens, and who has come."""

    def __init__(self, number: int) -> None:
        self._number, self._came = number, list[asyncio.StreamWriter]()

    async def connect(self, source: str = "127.0.0.1") -> Pair:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._number, local_addr=(source, 0)
        )
        self._came.append(writer)
        return reader, writer

    async def leave(self) -> None:
        for writer in self._came:
            writer.close()
        await asyncio.gather(*(w.wait_closed() for w in self._came), return_exceptions=True)


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether a request on this connection is."""
    try:
        writer.write(REQUEST)
        return b" 200 " in await reader.readuntil(b"hello")
    except (OSError, asyncio.IncompleteReadError):
        return False


async def status(port: Port, source: str, request: bytes) -> int | None:
    """What a request on a connection of its own is answered; None: it is closed without."""
    reader, writer = await port.connect(source)
    try:
        writer.write(request)
        return int((await reader.readuntil(b"\r\n")).split()[1])
    except (OSError, asyncio.IncompleteReadError):
        return None
    finally:
        writer.close()


async def says_hello(port: Port, source: str = "127.0.0.1") -> bool:
    return await status(port, source, REQUEST) == 200


async def test_whoever_comes_is_served() -> None:
    async with listening() as port:
        assert [await says_hello(port) for _ in range(10)] == [True] * 10


async def test_who_says_nothing_gives_way_to_who_comes() -> None:
    async with listening() as port:
        silent = [await port.connect() for _ in range(CONNECTIONS)]
        assert [await says_hello(port) for _ in range(5)] == [True] * 5
        assert await silent[0][0].read() == b"", "the oldest one was closed"


async def test_one_source_cannot_hold_what_others_need() -> None:
    async with listening() as port:
        for _ in range(CONNECTIONS * 4):
            await port.connect("127.0.0.2")
        mine = await port.connect("127.0.0.3")
        assert await says_hello(port, "127.0.0.4")
        assert await answered(*mine), "its only connection was not taken from it"


async def test_half_a_request_is_no_request() -> None:
    async with listening() as port:
        for _ in range(CONNECTIONS):
            _, writer = await port.connect("127.0.0.2")
            writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert await says_hello(port, "127.0.0.3")


async def test_requests_of_others_come_before_the_rest_of_a_heap() -> None:
    served: list[str] = []
    async with listening(served=served, limits=ConnectionLimits(connections=200)) as port:
        heap = [await port.connect("127.0.0.2") for _ in range(100)]
        other = await port.connect("127.0.0.3")
        for _, writer in [*heap, other]:
            writer.write(REQUEST)
        assert await answered(*other)
        assert served.index("127.0.0.3") < 80, "not after all of the heap"


async def test_who_brings_nothing_but_failures_is_turned_away_for_a_while() -> None:
    clock = Clock()
    limits = ConnectionLimits(failures_per_second=1, failures_burst=5)
    async with listening(limits=limits, clock=clock) as port:
        for _ in range(5):
            assert await status(port, "127.0.0.2", b"GET /other HTTP/1.1\r\nHost: a\r\n\r\n") == 404
        assert await status(port, "127.0.0.2", REQUEST) is None
        assert await status(port, "127.0.0.3", REQUEST) == 200, "another is not to blame"
        clock.now += 2
        assert await status(port, "127.0.0.2", REQUEST) == 200
        assert await status(port, "127.0.0.2", REQUEST) == 200, "good ones cost nothing"


@pytest.mark.parametrize("code", [403, 404, 503])
async def test_a_failure_ends_its_connection_unless_we_asked_to_try_again(code: int) -> None:
    limits = ConnectionLimits(failures_per_second=1, failures_burst=5)
    async with listening(limits=limits) as port:
        reader, writer = await port.connect("127.0.0.2")
        writer.write(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % code)
        head = await reader.readuntil(b"\r\n\r\n")
        assert f" {code} ".encode() in head
        assert (b"connection: close" in head.lower()) == (code != 503)


async def test_a_head_without_end_is_cut_off() -> None:
    async with listening() as port:
        reader, writer = await port.connect("127.0.0.2")
        writer.write(b"GET / HTTP/1.1\r\n")
        with suppress(ConnectionError):
            for number in range(100_000):
                writer.write(b"X-%d: %s\r\n" % (number, b"x" * 100))
                await writer.drain()
            raise AssertionError("it was listened to for ever")


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=8))
def test_after_anything_at_all_others_are_served(pieces: list[bytes]) -> None:
    async def run() -> None:
        limits = ConnectionLimits(failures_burst=1e9)
        async with listening(limits=limits) as port:
            for begin in (b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n"):
                reader, writer = await port.connect("127.0.0.2")
                with suppress(ConnectionError):
                    for piece in (begin, *pieces):
                        writer.write(piece)
                        await writer.drain()
                assert await says_hello(port, "127.0.0.3")

    uvloop.run(run())


async def test_who_says_nothing_is_closed_and_makes_room() -> None:
    async with listening(ConnectionLimits(connections=CONNECTIONS, seconds=0.1)) as port:
        silent = [await port.connect() for _ in range(CONNECTIONS)]
        async with asyncio.timeout(60):
            for reader, _ in silent:
                assert await reader.read() == b""
        assert await says_hello(port)


async def test_nobody_is_served_after_the_end() -> None:
    async with listening() as port:
        assert await says_hello(port)
    with pytest.raises(ConnectionRefusedError):
        await port.connect("127.0.0.1")


@pytest.mark.parametrize("gone", [True, False])
async def test_only_mistakes_of_ours_are_told_in_the_log(
    gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: web.Request) -> web.Response:
        if gone:
            assert request.transport is not None
            request.transport.abort()
        raise RuntimeError("the handler is closed")  # as uvloop says to whoever writes then

    application = web.Application()
    application.add_routes([web.get("/", fail)])
    listener = Listener(application)
    port = Port(await listener.start("127.0.0.1", 0))
    assert await status(port, "127.0.0.2", REQUEST) == (None if gone else 500)
    await listener.cleanup()
    await port.leave()
    assert bool([record for record in caplog.records if record.exc_info]) != gone
