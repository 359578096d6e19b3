"""A proxy in front of an API server that delays, loses and refuses what passes through it.

A request that a rule holds back is delivered in the end, whether or not its client still waits:
what a proxy or a slow network does, and a client can neither see nor undo. The proxy runs on an
event loop in a thread of its own, so tests and the soak may change ``rules`` at any time. It speaks
TLS with the API server's own certificate, so that a kubeconfig differs in its port alone.
"""

import asyncio
import contextlib
import random
import re
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web
from tests.listening import listen, listen_no_more
from yarl import URL

BINDING = r"/pods/[^/]+/binding$"
POD = r"/pods/[^/]+$"

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "host"}
)
_BODY_LIMIT = 64 << 20


class Fault(StrEnum):
    """What happens to a request."""

    DELAY_REQUEST = "delay-request"  # held back, then delivered, whoever still waits
    DELAY_ANSWER = "delay-answer"  # delivered at once, the answer is held back
    LOSE_REQUEST = "lose-request"  # never delivered; the connection breaks
    LOSE_ANSWER = "lose-answer"  # delivered; the connection breaks instead of an answer
    REFUSE = "refuse"  # never delivered; answered with ``status``
    CUT = "cut"  # the answer (of a watch, say) breaks after ``seconds``


@dataclass(slots=True, eq=False)
class Rule:
    """Which requests a fault happens to, and how often it has.

    Attributes:
        fault: What happens.
        method: Regular expression for the whole method.
        path: Regular expression, looked for in the path without its query.
        query: Regular expression, looked for in the query.
        content_type: Of the request; empty: any.
        probability: Of a request that matches.
        seconds: Least and most, for the faults that wait; None: until ``FaultProxy.release``.
        status: Of a refusal, such as 410, 429 or 503.
        retry_after: Header of a refusal, in seconds.
        times: How many requests at most; None: any number.
        matched: Requests that matched.
        applied: Those of them that the fault happened to.
        held: Those that are held back now.
        answers: What the API server said to those that were delivered, by status.
    """

    fault: Fault
    method: str = ".*"
    path: str = ""
    query: str = ""
    content_type: str = ""
    probability: float = 1.0
    seconds: tuple[float, float] | None = (0.0, 0.0)
    status: int = 503
    retry_after: int | None = None
    times: int | None = None
    matched: int = 0
    applied: int = 0
    held: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def takes(self, request: web.Request, chance: Callable[[], float]) -> bool:
        """Whether the fault happens to this request; counts it."""
        if self.times is not None and self.applied >= self.times:
            return False
        path, _, query = request.raw_path.partition("?")
        if not (
            re.fullmatch(self.method, request.method)
            and re.search(self.path, path)
            and re.search(self.query, query)
            and self.content_type in ("", request.content_type)
        ):
            return False
        self.matched += 1
        if chance() >= self.probability:
            return False
        self.applied += 1
        return True


class FaultProxy:
    """Use as a context manager; ``url`` is where it listens.

    Args:
        upstream: URL of the API server.
        ca_file: CA of its certificate; None for a plain ``http`` server.
        certificate: Certificate and key to listen with; None: plain ``http``.
        seed: Of the random numbers.
        rules: The first one that takes a request decides about it.
    """

    def __init__(
        self,
        upstream: str,
        ca_file: Path | None = None,
        *,
        certificate: tuple[Path, Path] | None = None,
        seed: int = 0,
        rules: Iterable[Rule] = (),
    ) -> None:
        self.rules = list(rules)
        self.url = ""
        self.passed: Counter[tuple[str, int]] = Counter()
        """Requests that no fault happened to, by method and status."""
        self._upstream, self._ca_file, self._certificate = upstream, ca_file, certificate
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._running = asyncio.Event()  # not paused
        self._running.set()
        self._deliveries: set[asyncio.Task[Any]] = set()
        self._news = threading.Condition()  # some count has changed
        self._session: aiohttp.ClientSession
        self._runner: web.AppRunner
        self._listening: asyncio.Server

    @classmethod
    def of(cls, running: Any, *, seed: int = 0, rules: Iterable[Rule] = ()) -> Self:
        """In front of a local cluster (``cluster.Running``), with its API server's certificate."""
        folder: Path = running.folder
        certificate = (folder / "apiserver.crt", folder / "apiserver.key")
        return cls(running.server, running.ca_file, certificate=certificate, seed=seed, rules=rules)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, original: Path, target: Path) -> Path:
        """Write a copy of a kubeconfig that leads through this proxy."""
        document = yaml.safe_load(original.read_text())
        for each in document["clusters"]:
            each["cluster"]["server"] = self.url
        target.touch(mode=0o600)
        target.write_text(yaml.safe_dump(document))
        return target

    def release(self, rule: Rule) -> None:
        """Let everything go that the rule holds back, and will."""
        self._loop.call_soon_threadsafe(rule.released.set)

    def pause(self) -> None:
        """Freeze: connections stay, nothing passes in either direction."""
        self._loop.call_soon_threadsafe(self._running.clear)

    def resume(self) -> None:
        """Go on."""
        self._loop.call_soon_threadsafe(self._running.set)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Block until a condition on counts holds.

        Raises:
            TimeoutError: it did not in time.
        """
        with self._news:
            if not self._news.wait_for(condition, seconds):
                raise TimeoutError(f"did not come true within {seconds:g} s: {self.rules}")

    def _changed(self) -> None:
        with self._news:
            self._news.notify_all()

    def _call(self, work: Awaitable[None]) -> None:
        async def wait() -> None:
            await work

        asyncio.run_coroutine_threadsafe(wait(), self._loop).result(60)

    async def _start(self) -> None:
        tls = ssl.create_default_context(cafile=str(self._ca_file)) if self._ca_file else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        app = web.Application(client_max_size=_BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        own: ssl.SSLContext | None = None
        if self._certificate:
            own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            own.load_cert_chain(*self._certificate)
        self._listening, port = await listen(self._runner, own)
        scheme = "https" if self._certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{port}"

    async def _stop(self) -> None:
        self._running.set()
        await listen_no_more(self._listening)
        for task in self._deliveries:
            task.cancel()
        await asyncio.gather(*self._deliveries, return_exceptions=True)
        assert self._runner.server is not None
        for each in self._runner.server.connections:  # a client that has died says no goodbye
            if each.transport is not None:
                each.transport.abort()
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        connector = self._session.connector
        assert connector is not None
        await connector.close(abort_ssl=True)  # no goodbyes: the loop ends now
        await self._session.close()
        await self._end_transports()

    async def _end_transports(self) -> None:
        """Also of connections that were just being made: nobody but the loop knows them."""
        transports: Mapping[int, asyncio.Transport] = self._loop._transports  # type: ignore[attr-defined]
        for each in list(transports.values()):
            each.abort()
        for _ in range(3):  # what was aborted is closed in the loop's next turn
            await asyncio.sleep(0)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; its delivery goes on when the client is gone."""
        await self._running.wait()
        chance = self._random.random
        rule = next((each for each in self.rules if each.takes(request, chance)), None)
        if rule is None:
            return await self._forward(request, None, await request.read())
        if rule.fault is Fault.REFUSE:
            return _refusal(rule)
        if rule.fault is Fault.LOSE_REQUEST:
            return _broken(request)
        if rule.fault is Fault.CUT:
            return await self._forward(request, rule, await request.read())
        delivery = asyncio.create_task(self._deliver(request, rule, await request.read()))
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)
        # Shielded: the server would cancel this handler, not the delivery, at its own end.
        try:
            return await asyncio.shield(delivery)
        except (aiohttp.ClientError, ConnectionError):  # the API server is away
            return _broken(request)

    async def _deliver(self, request: web.Request, rule: Rule, body: bytes) -> web.StreamResponse:
        if rule.fault is Fault.DELAY_REQUEST:
            await self._wait(rule)
        async with self._send(request, body) as answer:
            content = await answer.read()
        rule.answers[answer.status] += 1
        self._changed()
        if rule.fault is Fault.LOSE_ANSWER:
            return _broken(request)
        if rule.fault is Fault.DELAY_ANSWER:
            await self._wait(rule)
        await self._running.wait()
        return web.Response(status=answer.status, headers=_headers(answer.headers), body=content)

    async def _wait(self, rule: Rule) -> None:
        rule.held += 1
        self._changed()
        try:
            seconds = None if rule.seconds is None else self._random.uniform(*rule.seconds)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rule.released.wait(), seconds)
        finally:
            rule.held -= 1

    async def _forward(
        self, request: web.Request, cut: Rule | None, body: bytes
    ) -> web.StreamResponse:
        """Pass a request on, and its answer as it comes, a watch for as long as it lasts."""
        try:
            async with self._send(request, body) as answer:
                response = web.StreamResponse(
                    status=answer.status, headers=_headers(answer.headers)
                )
                await response.prepare(request)
                if cut is None:
                    self.passed[request.method, answer.status] += 1
                    self._changed()
                    await self._pump(answer, response)
                    return response
                cut.answers[answer.status] += 1
                pump = asyncio.create_task(self._pump(answer, response))
                end = asyncio.create_task(self._wait(cut))
                await asyncio.wait({pump, end}, return_when=asyncio.FIRST_COMPLETED)
                end.cancel()
                if pump.done():
                    pump.result()
                    return response
                pump.cancel()
                await asyncio.wait({pump})
                return _broken(request)
        except (aiohttp.ClientError, ConnectionError):
            return _broken(request)

    async def _pump(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        async for chunk in answer.content.iter_any():
            await self._running.wait()
            await response.write(chunk)
        await response.write_eof()

    def _send(self, request: web.Request, body: bytes) -> Any:
        headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP]
        return self._session.request(
            request.method,
            URL(self._upstream + request.raw_path, encoded=True),
            headers=headers,
            data=body or None,
            allow_redirects=False,
        )


def _headers(headers: Any) -> Any:
    kept = headers.copy()
    for name in (*_HOP_BY_HOP, "content-length"):
        kept.popall(name, None)
    return kept


def _refusal(rule: Rule) -> web.Response:
    status = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": rule.status,
        "message": f"refused by the proxy with {rule.status}",
    }
    extra = {"Retry-After": str(rule.retry_after)} if rule.retry_after is not None else {}
    return web.json_response(status, status=rule.status, headers=extra)


def _broken(request: web.Request) -> web.StreamResponse:
    """Break the client's connection; what is returned is never sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
