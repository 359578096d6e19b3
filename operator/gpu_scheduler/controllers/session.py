"""What kopf takes for an HTTP session: our own client, with its patience.

Left to itself kopf ends, and the leader with it, at a second 401, at an error in a stream that is
not 410, at a Retry-After that is a date, at a kind that is gone for a moment; it bears minutes of
silence and keeps the certificates of its start. Here it never hears of a failure: a request is
repeated until it is answered, with our back-off or as the server asks, through a transport that
reads certificates and tokens anew, and a stream that cannot be followed any more, because its place
or its kind is gone, reads as 410, upon which kopf lists again. It is we who list then: kopf gets an
empty list with the version of ours, and watches from there. Anything but GET is refused.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import msgspec

from gpu_scheduler.controllers.discovery import ANSWERS
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import REAL_TIME, Timing
from gpu_scheduler.kube.lines import LineSplitter
from gpu_scheduler.kube.listing import UNREADABLE, event_of
from gpu_scheduler.kube.transport import Transport
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.kube.watches import backoff
from gpu_scheduler.runtime.informers.bodies import cut

INACTIVITY_SECONDS = 70.0
"""Longest silence of a watch, as for reflectors."""

_STEADY_SECONDS = 5.0  # a watch that lived this long did not fail at once
_OF_OBJECTS = frozenset({"ADDED", "MODIFIED", "DELETED"})
_BURST_BYTES = 512 << 10  # that kopf is told before it works any of it off
_EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'

log = logging.getLogger(__name__)

Listed = Callable[[str], Awaitable[str]]


class KopfTransport:
    """The part of ``aiohttp.ClientSession`` that kopf uses.

    Args:
        transport: Our client; its ``watches`` are told whether a collection can be followed.
        listed: Lists a collection and tells the version to watch it from.
        timing: For what is waited between attempts.
    """

    closed = False

    def __init__(
        self,
        transport: Transport,
        listed: Listed,
        timing: Timing = REAL_TIME,
    ) -> None:
        self.headers: dict[str, str] = {}
        self._transport = transport
        self._listed = listed
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._backoff = backoff(timing.random)
        self._failures: Counter[str] = Counter()  # in a row, by path
        self._fresh: set[str] = set()  # listed, and not watched since

    async def close(self) -> None:
        """Nothing: the transport is its owner's."""

    async def request(self, method: str, url: str, **_: Any) -> "_Answer | _Stream":
        """The answer, however long it takes to get one.

        Raises:
            ValueError: kopf wants to write.
        """
        if method.upper() != "GET":
            raise ValueError(f"kopf wants to {method} {url}: it is to read only")
        parts = urlsplit(url)
        path, params = parts.path, dict(parse_qsl(parts.query))
        if path in ANSWERS:
            return _Answer(ANSWERS[path])
        if self._failures[path] and path not in self._fresh:
            await self._sleep(self._backoff.delay_seconds(self._failures[path] - 1))
        self._fresh.discard(path)
        for attempt in itertools.count():
            try:
                if params.get("watch") == "true":
                    return await self._watch(path, params)
                version = await self._listed(path)
                self._fresh.add(path)
                return _Answer({"metadata": {"resourceVersion": version}, "items": []})
            except Exception as error:
                asked = error.retry_after_seconds if isinstance(error, errors.ApiError) else None
                if not isinstance(error, (errors.ApiError, *UNREADABLE)):
                    unexpected("kopf", path)
                self._transport.watches.lost(path, error)
                await self._sleep((asked or 0.0) + self._backoff.delay_seconds(attempt))
        raise AssertionError("not reached")

    def failed(self, path: str) -> None:
        """A stream came to nothing: the next request for it waits a while."""
        self._failures[path] += 1

    def broke(self, path: str, why: object) -> None:
        """A stream ended before its time."""
        self._transport.watches.broke(path, why)

    def went_well(self, path: str) -> None:
        """A stream brought something, or lasted."""
        self._failures[path] = 0

    async def _watch(self, path: str, params: dict[str, Any]) -> "_Stream":
        stack = contextlib.AsyncExitStack()
        try:
            chunks = await stack.enter_async_context(
                self._transport.watch(path, inactivity_seconds=INACTIVITY_SECONDS, **params)
            )
            self._transport.watches.followed(path)
        except (errors.Gone, errors.NotFound) as error:
            self._transport.watches.lost(path, error)
            chunks = _expired()
        return _Stream(self, path, chunks, stack, self._clock)


class _Answer:
    """What kopf reads of the answer to a request."""

    status = 200
    closed = True

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    async def json(self) -> dict[str, Any]:
        return self._content

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class _Stream:
    """What kopf reads of a watch: whole lines, and an end instead of a failure."""

    status = 200

    def __init__(
        self,
        session: KopfTransport,
        path: str,
        chunks: AsyncIterator[bytes],
        stack: contextlib.AsyncExitStack,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._path = path
        self._chunks = chunks
        self._stack = stack
        self._clock = clock
        self._opened_at = clock()

    @property
    def content(self) -> Self:
        """Itself: kopf asks it for chunks."""
        return self

    async def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """The events, until the server ends the stream or it breaks."""
        splitter = LineSplitter()
        events = told = 0
        try:
            async for chunk in self._chunks:
                for line in splitter.feed(chunk):
                    kind, event = self._event(line)
                    if kind == "ERROR":
                        if line != _EXPIRED:
                            self._session.broke(self._path, line.decode(errors="replace"))
                        self._session.failed(self._path)
                        yield _EXPIRED + b"\n"
                        return
                    if kind:
                        events += 1
                        self._session.went_well(self._path)
                        yield event + b"\n"
                        told += len(event)
                        if told > _BURST_BYTES:
                            told = 0
                            await asyncio.sleep(0)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._session.broke(self._path, error)
        if self._clock() - self._opened_at >= _STEADY_SECONDS:
            self._session.went_well(self._path)
        elif not events:
            self._session.failed(self._path)

    def _event(self, line: bytes) -> tuple[str, bytes]:
        """What kind of event a line tells, and what kopf is told of it."""
        try:
            event = event_of(line)
            if event.type not in _OF_OBJECTS:
                return event.type, line
            told = cut(event.object)
        except (msgspec.DecodeError, UnicodeDecodeError):
            log.warning("%s: an event that is not JSON is ignored", self._path)
            return "", b""
        return event.type, b'{"type":"%b","object":%b}' % (event.type.encode(), told)

    def close(self) -> None:
        """Kopf calls it where no watch of ours runs: while it is paused by a peer."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.__aexit__(None, None, None)


async def _expired() -> AsyncIterator[bytes]:
    yield _EXPIRED + b"\n"
