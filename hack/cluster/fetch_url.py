"""Opens one file of a web server for reading, by aiohttp: proxies, redirects, TLS, time-outs.

A server's certificate is always verified. A redirect is followed to https, or within the
server that redirects, and never takes a password along. No word of an error repeats one.
"""

import asyncio
import os
import socket
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from cluster.fetch_offers import is_loopback, without_secrets

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)


class NotTaken(Exception):
    """Why a file is not taken, as the end of a sentence that begins with the place."""


class Away(NotTaken):
    """The same, and nothing more has to be asked of that place."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a place counts as away, and how much is done at once.

    Building everything compiles at about half a megabyte a second on two cores, so a place
    that is slower than that is not worth waiting for.
    """

    connect_seconds: float = 5.0
    answer_seconds: float = 15.0
    stall_seconds: float = 10.0
    slow_seconds: float = 15.0
    slow_bytes_per_second: float = 500_000.0
    wasted_seconds: float = 60.0
    report_seconds: float = 3.0
    at_once: int = 3


LIMITS = Limits()


class Body(NamedTuple):
    """An answer: what it says is its length in bytes, and what comes."""

    length: int | None
    pieces: AsyncIterator[bytes]


class _Connector(aiohttp.TCPConnector):
    """Ends its connections at once, those with unread answers too, which aiohttp leaves alone.

    They would wait for the server's goodbye of TLS, and be open still when the loop is closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: list[asyncio.Transport] = []

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - its name is aiohttp's
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if connection.transport is not None:
            self._made.append(connection.transport)
        return connection

    async def close(self, *, abort_ssl: bool = True) -> None:
        for transport in self._made:
            transport.abort()
        await super().close(abort_ssl=abort_ssl)


@asynccontextmanager
async def opened(url: SplitResult, limits: Limits = LIMITS) -> AsyncIterator[Body]:
    """The file at `url`, by the clock of `limits`.

    Raises:
        NotTaken: the server has no such file, or nothing that may be read.
        Away: it cannot be reached, not in a way that can be trusted, or keeps one waiting.
    """
    async with aiohttp.ClientSession(
        connector=_Connector(),
        timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect_seconds),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
    ) as session:
        try:
            async with asyncio.timeout(limits.answer_seconds):
                response = await _answer(session, url, limits)
        except TimeoutError:
            raise Away(f"gives no answer within {limits.answer_seconds:g} s") from None
        async with response, aclosing(_pieces(response, limits.stall_seconds)) as pieces:
            _check(response)
            yield Body(response.content_length, pieces)


async def read(url: SplitResult, most: int, limits: Limits = LIMITS) -> bytes:
    """The whole file at `url`.

    Raises:
        NotTaken: it has more than `most` bytes, or as for `opened`.
    """
    content = b""
    async with opened(url, limits) as body:
        async for piece in body.pieces:
            content += piece
            if len(content) > most:
                raise NotTaken(f"has a file of more than {most:,} bytes")
    return content


async def _answer(
    session: aiohttp.ClientSession, url: SplitResult, limits: Limits
) -> aiohttp.ClientResponse:
    for _ in range(_REDIRECTS + 1):
        proxy = _proxy_for(url)
        # As the environment says now (SSL_CERT_FILE); it takes a while to read, so not in vain.
        trust = ssl.create_default_context() if url.scheme == "https" else True
        try:
            response = await session.get(
                URL(url.geturl(), encoded=True), proxy=proxy, ssl=trust, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _away(error, limits) from None
        if response.status not in _MOVED:
            return response
        response.close()
        url = _moved(url, response.headers.get("Location"))
    raise NotTaken(f"redirects more than {_REDIRECTS} times")


def _proxy_for(url: SplitResult) -> str | None:
    """The proxy that the environment names for `url`; none leads to this machine itself."""
    if is_loopback(url) or urllib.request.proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named:
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise Away("is behind a proxy that is not an http one")
    return proxy.geturl()


def _away(error: Exception, limits: Limits) -> Away:
    """Why there is no answer; of an error that repeats the URL, what does not."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Away(f"does not answer (no connection within {limits.connect_seconds:g} s)")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "")
        return Away(f"has a certificate that is not trusted ({why})")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Away(f"does not answer (Tunnel connection failed: {error.status} {error.message})")
    if isinstance(error, aiohttp.ClientConnectorError):
        return Away(f"does not answer ({_cause(error.os_error)})")
    if isinstance(error, aiohttp.InvalidURL):
        return Away("does not answer (no URL)")
    return Away(f"gives no answer ({_cause(error)})")


def _cause(error: Exception) -> str:
    text = str(error)
    if isinstance(error, aiohttp.ClientResponseError):
        text = error.message
    elif isinstance(error, ssl.SSLError | socket.gaierror):
        text = error.strerror or text
    elif isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno)
    return " ".join(text.split())[:120] or type(error).__name__


def _moved(url: SplitResult, location: str | None) -> SplitResult:
    try:
        new = urlsplit(urljoin(url.geturl(), location or ""))
        same = (new.scheme, new.hostname, new.port) == (url.scheme, url.hostname, url.port)
    except ValueError:
        raise NotTaken("redirects to what is no URL") from None
    if not location or not new.hostname or not (new.scheme == "https" or same):
        raise NotTaken(f"redirects to {without_secrets(new)}, which is not https")
    # A password in a Location is the server's own doing: it is not sent.
    return new._replace(netloc=new.netloc.rpartition("@")[2])


def _check(response: aiohttp.ClientResponse) -> None:
    if response.status in (404, 410):
        raise NotTaken(f"has no such file ({response.status})")
    if response.status != 200:
        raise NotTaken(f"answers {response.status} {response.reason}".strip()[:120])
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise NotTaken(f"sends the file as {encoding[:20]}, which was not asked for")


async def _pieces(
    response: aiohttp.ClientResponse, stall_seconds: float
) -> AsyncGenerator[bytes, None]:
    while True:
        try:
            async with asyncio.timeout(stall_seconds):
                piece = await response.content.readany()
        except TimeoutError:
            raise Away(f"stopped sending for {stall_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            if (length := response.content_length) is not None:
                received = response.content.total_bytes
                raise NotTaken(f"sent only {received:,} of {length:,} bytes") from None
            raise NotTaken(f"broke the connection ({_cause(error)})") from None
        if not piece:
            return
        yield piece
