"""A port for strangers: bounded connections, none for long, and requests by turns of their sources.

The operator needs its event loop for the Lease and its file descriptors for the API server. So a
few connections are accepted and a few requests are begun in each turn of the loop; when there is no
room the one who holds most gives way (``connections``); and who brings nothing but failures is
turned away for a while. Used for the ports of administration, of reports and of the dashboard.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, cast

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.web.connections import Connections, FullError, HeldConnection

log = logging.getLogger(__name__)
_http = logging.getLogger(f"{__name__}.http")


def _ours(record: logging.LogRecord) -> bool:
    """Whether a line of aiohttp tells of us; a stranger's nonsense, tokens included, does not."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | ConnectionError)


_http.addFilter(_ours)

_A_TURN = 16  # connections accepted, and pieces of requests read, in one turn of the loop
_MOST_BYTES = 512 << 10  # that a connection may bring in its life; headers have aiohttp's bounds
_LINGER_SECONDS = 1.0  # for the rest of a body that nobody wants
_BACKLOG = 512
_GREETING_SECONDS = 10.0  # a TLS handshake
_PAUSE_SECONDS = 0.5  # after the system could not give us a connection


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What strangers may take up.

    Attributes:
        connections: at a time.
        connections_of_one: of these, of one source address.
        seconds: life of a connection; it is closed after half of this at the earliest.
        failures_per_second: connections of one source that bring no good answer, for long.
        failures_burst: of these at once, after a rest.
        long_seconds: life of a connection with an answer that ``lives_long``; 0: none may.
        gives_notice: whether an answer on a connection that is older than a quarter of its life
            says that it is the last: a proxy that keeps connections then never meets a closed one.
    """

    connections: int = 1000
    connections_of_one: int = 500
    seconds: float = 30.0
    failures_per_second: float = 20.0
    failures_burst: float = 1000.0
    long_seconds: float = 0.0
    gives_notice: bool = False


_LONG = web.RequestKey("lives long", bool)


def lives_long(request: web.Request) -> None:
    """This answer goes on for long: its connection may live for ``long_seconds``."""
    request[_LONG] = True


class Listener:
    """An application that listens; end it with ``cleanup``."""

    def __init__(
        self,
        application: web.Application,
        limits: ConnectionLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing listens yet."""
        self._limits = limits or ConnectionLimits()
        self._clock = clock
        self._greeting: set[asyncio.Task[None]] = set()
        application.middlewares.append(self._middleware())
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_http,
            auto_decompress=False,  # a small body must not become a large one
            lingering_time=_LINGER_SECONDS,
            shutdown_timeout=_LINGER_SECONDS,
        )
        self._connections = Connections(self._limits.connections, self._limits.connections_of_one)
        self._open: dict[HeldConnection, _Connection] = {}
        self._by_handler: dict[asyncio.Protocol, _Connection] = {}
        self._failing: RateLimiter[str] = RateLimiter(
            self._limits.failures_per_second, self._limits.failures_burst
        )
        self._turns: Turns[str, tuple[_Connection, bytes]] = Turns()
        self._working = False
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[NoReturn]] = []

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Begin to listen; the port, also where 0 was asked for. Again: there as well.

        ``tls`` None: plain HTTP.

        Raises:
            OSError: somebody else listens there.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        listening.setblocking(False)
        self._sockets.append(listening)
        loop = asyncio.get_running_loop()
        if not self._tasks:
            await self._runner.setup()
            self._tasks.append(loop.create_task(self._close_old(self._limits.seconds / 2)))
        self._tasks.append(loop.create_task(self._accept(listening, tls)))
        found: int = listening.getsockname()[1]
        return found

    async def cleanup(self) -> None:
        """Listen no more, and close what is open."""
        tasks = [*self._tasks, *self._greeting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        await self._runner.cleanup()

    async def _accept(self, listening: socket.socket, tls: ssl.SSLContext | None) -> NoReturn:
        loop = asyncio.get_running_loop()
        while True:
            try:
                came = [await loop.sock_accept(listening)]
                while len(came) < _A_TURN:
                    came.append(listening.accept())
            except BlockingIOError:
                pass  # nobody else waits
            except OSError as error:  # no descriptors, or whoever came is gone
                log.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            admitted = [self._admit(accepted, peer[0], tls) for accepted, peer in came]
            if tls is None:
                await asyncio.gather(*admitted)
                continue
            for each in admitted:  # who greets slowly keeps nobody else waiting
                task = loop.create_task(each)
                self._greeting.add(task)
                task.add_done_callback(self._greeting.discard)
            await asyncio.sleep(0)

    async def _admit(
        self, accepted: socket.socket, source: str, tls: ssl.SSLContext | None
    ) -> None:
        try:
            if self._failing.is_spent(source, self._clock()):
                raise FullError
            in_the_way = self._connections.in_the_way(source)
        except FullError:
            accepted.close()
            return
        if in_the_way is not None:
            self._open[in_the_way].close()
        accepted.setblocking(False)
        server = self._runner.server
        assert server is not None
        connection = _Connection(self, server(), HeldConnection(source), self._clock())
        self._connections.add(connection.held)
        self._open[connection.held] = connection
        self._by_handler[connection.handler] = connection
        seconds = None if tls is None else _GREETING_SECONDS
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=tls, ssl_handshake_timeout=seconds
            )
        except Exception as error:
            if not isinstance(error, OSError):
                unexpected("ports", source)
            self.ended(connection)
            accepted.close()

    def received(self, connection: "_Connection", data: bytes) -> None:
        """A piece of a request has come; its turn will, too."""
        self._turns.add(connection.held.source, (connection, data))
        if not self._working:
            self._working = True
            asyncio.get_running_loop().call_soon(self._work)

    def ended(self, connection: "_Connection") -> None:
        """A connection is closed; again: nothing happens."""
        if self._open.pop(connection.held, None) is None:
            return
        self._connections.remove(connection.held)
        del self._by_handler[connection.handler]
        if not connection.settled:
            self._failed(connection)

    def _failed(self, connection: "_Connection | None") -> None:
        if connection is not None:
            connection.settled = True
            self._failing.spend(connection.held.source, self._clock())

    def _work(self) -> None:
        for _ in range(_A_TURN):
            found = self._turns.take()
            if found is None:
                break
            connection, data = found[1]
            connection.feed(data)
        self._working = bool(self._turns)
        if self._working:
            asyncio.get_running_loop().call_soon(self._work)

    def _middleware(self) -> Middleware:
        @web.middleware
        async def noted(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = self._by_handler.get(request.protocol)
            if connection is not None:
                connection.held.busy = True
                connection.request = request
            try:
                answer = await handler(request)
            except web.HTTPException as refused:
                self._failed(connection)
                refused.force_close()
                raise
            except RuntimeError as error:
                if request.transport is None or request.transport.is_closing():
                    raise ConnectionResetError from error  # so uvloop says that they went away
                raise
            finally:
                if connection is not None:
                    connection.held.busy = False
                    connection.request = None
            if connection is not None and self._is_old(connection):
                answer.force_close()
            if answer.status < 400 or answer.status == 503:  # it says to try again: no failure
                if connection is not None:
                    connection.settled = True
            else:
                self._failed(connection)
                answer.force_close()
            return answer

        return noted

    def _is_old(self, connection: "_Connection") -> bool:
        """Whether this is its last answer, where notice is given of that."""
        age = self._clock() - connection.opened
        return self._limits.gives_notice and age > self._limits.seconds / 4

    async def _close_old(self, seconds: float) -> NoReturn:
        before: set[_Connection] = set()
        while True:
            await asyncio.sleep(seconds)
            now = set(self._open.values())
            old = {connection for connection in now & before if not self._may_live(connection)}
            for connection in old:
                connection.close()
            before = now - old

    def _may_live(self, connection: "_Connection") -> bool:
        age = self._clock() - connection.opened
        return connection.lives_long and age < self._limits.long_seconds


class _Connection(asyncio.Protocol):
    """Between a socket and aiohttp, whose part of it is ``handler``."""

    def __init__(
        self, listener: Listener, handler: asyncio.Protocol, held: HeldConnection, opened: float
    ) -> None:
        self.handler = handler
        self.held = held
        self.opened = opened
        self.request: web.Request | None = None  # that is being answered
        self.settled = False  # it has brought a good answer, or its failure has been counted
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._bytes = 0
        self._closed = False

    @property
    def lives_long(self) -> bool:
        """Whether an answer is on its way that may take long."""
        return self.request is not None and self.request.get(_LONG, False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast("asyncio.Transport", transport)  # uvloop's is one by its methods alone
        if self._closed:
            made.abort()
            return
        self._transport = made
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.pause_reading()
            self._listener.received(self, data)

    def feed(self, data: bytes) -> None:
        """Its turn has come."""
        if self._transport is None or self._transport.is_closing():
            return
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            self.close()
            return
        self.handler.data_received(data)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool | None:
        return self.handler.eof_received()

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self.handler.connection_lost(exc)
        self._listener.ended(self)

    def close(self) -> None:
        """At once, whatever is on its way."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()
        self._listener.ended(self)
