"""Strangers can take up the port, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientError, ClientSession, web

from gpu_scheduler.web.bounded import Listener

CONNECTIONS = 3


@asynccontextmanager
async def listening(max_seconds: float = 30.0) -> AsyncIterator[int]:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    application = web.Application()
    application.add_routes([web.get("/", hello)])
    listener = Listener(application, CONNECTIONS)
    try:
        yield await listener.start("127.0.0.1", 0, max_seconds)
    finally:
        await listener.cleanup()


async def says_hello(port: int) -> bool:
    async with ClientSession() as session:
        try:
            async with session.get(f"http://127.0.0.1:{port}/") as answer:
                return await answer.text() == "hello"
        except (ClientError, OSError):
            return False


async def test_whoever_comes_is_served() -> None:
    async with listening() as port:
        assert [await says_hello(port) for _ in range(10)] == [True] * 10


async def test_above_the_limit_a_connection_is_closed_at_once() -> None:
    async with listening() as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
        try:
            assert not await says_hello(port)
            _, writer = silent.pop()
            writer.close()
            await writer.wait_closed()
            async with asyncio.timeout(5):
                while not await says_hello(port):
                    pass
        finally:
            for _, writer in silent:
                writer.close()


async def test_who_says_nothing_is_closed_and_makes_room() -> None:
    async with listening(max_seconds=0.1) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
        async with asyncio.timeout(5):
            for reader, writer in silent:
                assert await reader.read() == b""
                writer.close()
        assert await says_hello(port)


async def test_nobody_is_served_after_the_end() -> None:
    async with listening() as port:
        assert await says_hello(port)
    assert not await says_hello(port)
