"""One HTTP session to the API server: fenced writes, bounded retries, long answers.

Invariants: a write starts only while the fence is open and never outlives it, retries included,
and the server is told the same limit (``?timeout=``). 429, 5xx and broken connections are tried
again until the deadline; 409 never is, the caller decides. A write with an attempt that ended
without a clear no may have been carried out: its error then says ``maybe_applied``. Bodies and
credentials are never logged. The base of ``Client``, which gives the verbs their names.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from ssl import SSLContext
from typing import Self, TypedDict, Unpack
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import REAL_TIME, Backoff, Timing
from gpu_scheduler.kube.clock import NOBODY, Heard
from gpu_scheduler.kube.connection import Connection, Token
from gpu_scheduler.kube.media_types import JSON
from gpu_scheduler.kube.sockets import watched_socket
from gpu_scheduler.kube.tls import Tls
from gpu_scheduler.kube.watches import Watches

Param = str | int | bool

_RETRIED = frozenset({429, 500, 502, 503, 504})
MOST_ANSWER_BYTES = 32 << 20  # a page of 500 pods has some 4 MB
_LEAST_SECONDS = 0.001  # the shortest limit that a write is sent with


class _TlsOptions(TypedDict, total=False):
    ssl: SSLContext
    server_hostname: str


class RequestOptions(TypedDict, total=False):
    """Options of every request.

    Attributes:
        timeout_seconds: Limit with all retries; None, the default: the client's.
        retry: Try again after 429, 5xx and broken connections; default True.
        fenced: A write asks the fence, by default; False only for the election itself.
        token: Somebody else's, in place of the connection's own, which must have none.
    """

    timeout_seconds: float | None
    retry: bool
    fenced: bool
    token: str


class Transport:
    """A session with one API server; an async context manager.

    Args:
        connection: Server and credentials.
        fence: Seconds that a write may still take, 0 or less when none may start; asked before
            every attempt. None: no fence.
        timeout_seconds: Limit of a request, with its retries and its wait for a slot, unless the
            call says otherwise.
        concurrency: Requests in flight; watches do not count.
        user_agent: Shown in the API server's audit log.
        timing: For what is waited between retries.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        fence: Callable[[], float] | None = None,
        timeout_seconds: float = 10.0,
        concurrency: int = 50,
        user_agent: str = "python-kube-client",
        timing: Timing = REAL_TIME,
    ) -> None:
        self.connection = connection
        self.requests: Counter[tuple[str, str]] = Counter()
        """Attempts by HTTP method (or WATCH) and outcome: a status, ``broken`` or ``timeout``."""
        self.unstreamed: set[str] = set()
        """Collections whose lists are not streamed, or not well; see ``listing``."""
        self.heard = NOBODY
        """What time the API server last said that it is."""
        self.watches = Watches(timing.clock)
        """Which collections cannot be followed; told by who does."""
        self._fence = fence
        self._timeout_seconds = timeout_seconds
        self._user_agent = user_agent
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._slots = asyncio.Semaphore(concurrency)
        self._backoff = Backoff(0.05, 2.0, timing.random)
        self._token = Token(connection, timing.clock)
        self._sent_token = ""
        self._opened: aiohttp.ClientSession | None = None
        self._tls = Tls(connection, timing.clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Param] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = "",
        **options: Unpack[RequestOptions],
    ) -> bytes:
        """Send a request, with retries, and return the body of the good answer.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: Path of the resource, from the root.
            params: The query.
            body: JSON.
            content_type: What ``body`` is.
            accept: Other than JSON.
            options: See ``RequestOptions``.

        Raises:
            ApiError: the class for the answer, Unavailable, or NotLeader.
        """
        write = method != "GET"
        fence = self._fence if write and options.get("fenced", True) else None
        budget = options.get("timeout_seconds")
        if budget is None:
            budget = self._timeout_seconds
        if fence is not None:
            budget = min(budget, fence())
            if budget < _LEAST_SECONDS:
                raise errors.NotLeader(message=f"{method} {path}: not sent, not the leader")
        headers = {"Content-Type": content_type} if write else {}
        if accept:
            headers["Accept"] = accept
        if token := options.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        call = _Call(method, path, _query(params), body, headers, self._clock() + budget)
        try:
            async with asyncio.timeout(budget):
                return await self._until_answered(call, fence, options.get("retry", True))
        except TimeoutError:
            self.requests[method, "timeout"] += 1
            raise errors.Unavailable(
                message=f"{method} {path}: no answer within {budget:.3g} s",
                maybe_applied=write and call.uncertain,
            ) from None
        except errors.ApiError as error:
            error.maybe_applied = write and call.uncertain
            raise

    async def _until_answered(
        self, call: "_Call", fence: Callable[[], float] | None, retry: bool
    ) -> bytes:
        attempt = 0
        renewed = False
        while True:
            try:
                async with self._slots:
                    left = call.deadline - self._clock()
                    if fence is not None:
                        left = min(left, fence())
                        if left < _LEAST_SECONDS:
                            raise errors.NotLeader(
                                message=f"{call.method} {call.path}: stopped, not the leader"
                            )
                    return await self._once(call, max(left, _LEAST_SECONDS))
            except errors.NotLeader:
                raise
            except errors.Unauthorized:
                if renewed or not self._log_in_again():
                    raise
                renewed = True
                continue
            except errors.ApiError as error:
                delay = self._backoff.delay_seconds(attempt)
                if error.retry_after_seconds is not None:
                    delay += error.retry_after_seconds
                again = isinstance(error, errors.Unavailable) or error.status in _RETRIED
                if not (retry and again) or self._clock() + delay >= call.deadline:
                    raise
            attempt += 1
            await self._sleep(delay)

    async def _once(self, call: "_Call", seconds: float) -> bytes:
        query = call.query
        if call.method != "GET":
            query = f"{query}&timeout={seconds:.3f}s" if query else f"timeout={seconds:.3f}s"
        url = f"{self.connection.server}{call.path}"
        session = self._session()
        before, call.uncertain = call.uncertain, True
        try:
            async with session.request(
                call.method,
                URL(f"{url}?{query}" if query else url, encoded=True),
                data=call.body,
                headers=call.headers,
                allow_redirects=False,
                **self._tls_options(),
            ) as answer:
                status = answer.status
                self.requests[call.method, str(status)] += 1
                self.heard = Heard(answer.headers.get("Date", ""), self._clock())
                body = await _whole(answer)
                if 200 <= status < 300:
                    return body
                if status < 500:
                    call.uncertain = before
                raise _refusal(answer, body)
        except aiohttp.ClientError as error:
            self._look_at(error)
            self.requests[call.method, "broken"] += 1
            message = f"{call.method} {call.path}: {_describe(error)}"
            if isinstance(error, aiohttp.ClientConnectorError):
                call.uncertain = before
                raise errors.Unavailable(message=message) from None
            raise errors.Unavailable(message=message) from None

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, inactivity_seconds: float, **params: Param
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a long answer; the value iterates over its chunks as they arrive.

        No retries. The iterator ends when the server ends the answer.

        Args:
            path: The collection.
            inactivity_seconds: Longest silence before the connection counts as dead.
            params: The query, ``watch`` itself included.

        Raises:
            ApiError: the class for the answer, or Unavailable (also while iterating).
        """
        outcome = "broken"
        try:
            async with self._session().get(
                URL(f"{self.connection.server}{path}?{_query(params)}", encoded=True),
                timeout=aiohttp.ClientTimeout(
                    sock_connect=self._timeout_seconds, sock_read=inactivity_seconds
                ),
                read_bufsize=1 << 20,
                allow_redirects=False,
                **self._tls_options(),
            ) as answer:
                outcome = str(answer.status)
                if answer.status != 200:
                    if answer.status == 401:
                        self._log_in_again()
                    raise _refusal(answer, await answer.read())
                yield answer.content.iter_any()
        except TimeoutError:
            outcome = "timeout"
            raise errors.Unavailable(
                message=f"WATCH {path}: silent for {inactivity_seconds:g} s"
            ) from None
        except aiohttp.ClientError as error:
            self._look_at(error)
            outcome = "broken"
            raise errors.Unavailable(message=f"WATCH {path}: {_describe(error)}") from None
        finally:
            self.requests["WATCH", outcome] += 1

    def _log_in_again(self) -> bool:
        """Whether the files hold other credentials than those that were refused."""
        token, certificate = self._token.refresh(), self._tls.refresh()
        return token or certificate

    def _look_at(self, error: aiohttp.ClientError) -> None:
        if isinstance(error, aiohttp.ClientSSLError):
            self._tls.refresh()  # the authority may have been rotated

    def _tls_options(self) -> _TlsOptions:
        """The context is a part of what connections are kept by: another one, new connections."""
        options: _TlsOptions = {}
        context = self._tls.context()
        if context is not None:
            options["ssl"] = context
        if self.connection.server_name:
            options["server_hostname"] = self.connection.server_name
        return options

    def _session(self) -> aiohttp.ClientSession:
        session = self._opened
        if session is None:
            session = self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    # Requests are bounded by the slots; watches must not use those up.
                    limit=0,
                    keepalive_timeout=75,
                    socket_factory=watched_socket,
                ),
                headers={
                    "Accept": JSON,
                    # Compression costs both sides more than a cluster's network does.
                    "Accept-Encoding": "identity",
                    "User-Agent": self._user_agent,
                },
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),
            )
            self._sent_token = ""
        token = self._token.current()
        if token != self._sent_token:
            session.headers["Authorization"] = f"Bearer {token}"
            self._sent_token = token
        return session


@dataclass(slots=True)
class _Call:
    """A request and what is known of its attempts so far."""

    method: str
    path: str
    query: str
    body: bytes | None
    headers: dict[str, str]
    deadline: float
    uncertain: bool = False  # some attempt ended, or will, without a clear no


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    """The body; no server makes us hold more than ``MOST_ANSWER_BYTES``."""
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        size += len(piece)
        if size > MOST_ANSWER_BYTES:
            raise errors.AnswerTooLarge(message=f"{answer.url.path}: more than {size} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _refusal(answer: aiohttp.ClientResponse, body: bytes) -> errors.ApiError:
    headers = answer.headers
    return errors.from_answer(answer.status, body, headers.get("Retry-After"), headers.get("Date"))


def _query(params: dict[str, Param] | None) -> str:
    if not params:
        return ""
    return urlencode(
        {k: ("true" if v else "false") if isinstance(v, bool) else v for k, v in params.items()}
    )


def _describe(error: aiohttp.ClientError) -> str:
    return str(error) or type(error).__name__
