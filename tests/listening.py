"""Servers of tests: they listen on loopback, and are not closed over a connection half made.

asyncio's own loop accepts a connection in one turn and makes its transport in the next. Where the
server is closed between them that fails unseen, and the socket stays open (aiohttp's sites do so).
"""

import asyncio
import ssl

from aiohttp import web

_TURNS = 2  # of the loop, from a connection in the queue to its transport


async def listen(
    runner: web.AppRunner, tls: ssl.SSLContext | None = None
) -> tuple[asyncio.Server, int]:
    """Begin, on any port; which one that is. ``runner`` has been set up."""
    assert runner.server is not None
    loop = asyncio.get_running_loop()
    server = await loop.create_server(runner.server, "127.0.0.1", 0, ssl=tls)
    return server, server.sockets[0].getsockname()[1]


async def listen_no_more(server: asyncio.Server) -> None:
    """Who has connected is the runner's; clean it up next."""
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening)
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    server.close()
