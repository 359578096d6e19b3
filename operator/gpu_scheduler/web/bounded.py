"""A listener for strangers: so many connections and no more, and none of them for long.

The operator needs its file descriptors for the API server. Whoever opens connections and says
nothing can keep others from this port, and nothing else. Used for the port of reports.
"""

import asyncio
from typing import NoReturn

from aiohttp import web

MAX_CONNECTIONS = 1000
MAX_SECONDS = 30.0  # a connection is closed after half of this at the earliest


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class Listener:
    """An application that listens; end it with ``cleanup``."""

    def __init__(self, application: web.Application, max_connections: int = MAX_CONNECTIONS):
        """Nothing listens yet."""
        self._runner = web.AppRunner(application, access_log=None)
        self._max_connections = max_connections
        self._sockets: asyncio.Server | None = None
        self._closing: asyncio.Task[NoReturn] | None = None

    async def start(self, host: str, port: int, max_seconds: float = MAX_SECONDS) -> int:
        """Begin to listen; the port, also where 0 was asked for.

        Raises:
            OSError: somebody else listens there.
        """
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._sockets = await loop.create_server(self._accept, host, port)
        self._closing = loop.create_task(self._close_old(max_seconds / 2))
        found: int = self._sockets.sockets[0].getsockname()[1]
        return found

    async def cleanup(self) -> None:
        """Listen no more, and close what is open."""
        if self._closing is not None:
            self._closing.cancel()
        if self._sockets is not None:
            self._sockets.close()
        await self._runner.cleanup()

    def _accept(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        if len(server.connections) >= self._max_connections:
            return _Refused()
        return server()

    async def _close_old(self, seconds: float) -> NoReturn:
        server = self._runner.server
        assert server is not None
        before: set[object] = set()
        while True:
            await asyncio.sleep(seconds)
            now = set(server.connections)
            for connection in now:
                if connection in before:
                    connection.force_close()
            before = {each for each in now if each not in before}
