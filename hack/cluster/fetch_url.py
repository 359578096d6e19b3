"""Opens one file of a web server for reading: proxies, redirects, TLS.

A server's certificate is always verified. A redirect is followed to https, or within the
server that redirects, and never takes a password along. Whoever reads watches the clock:
`fetch.py` closes what takes too long.
"""

from __future__ import annotations

import base64
import http.client
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from cluster.fetch_offers import is_loopback, without_secrets

_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_MOVED = (301, 302, 303, 307, 308)


class NotTaken(Exception):
    """Why a file is not taken, as the end of a sentence that begins with the place."""


class Away(NotTaken):
    """The same, and nothing more has to be asked of that place."""


class Body(NamedTuple):
    """An answer: what it says is its length in bytes, and how to read on (b"" at the end)."""

    length: int | None
    read: Callable[[int], bytes]


@contextmanager
def opened(
    url: SplitResult,
    *,
    timeout_seconds: float,
    on_connection: Callable[[http.client.HTTPConnection], None] = lambda _connection: None,
) -> Iterator[Body]:
    """The file at `url`; `on_connection` is told of each connection before it is opened.

    Raises:
        NotTaken: the server has no such file, or nothing that may be read.
        Away: it cannot be reached, or not in a way that can be trusted.
    """
    authorization = _basic(url)
    for _ in range(_REDIRECTS + 1):
        connection, target, headers = _way_to(url, timeout_seconds)
        on_connection(connection)
        with (
            closing(connection),
            closing(_answer(connection, target, headers | authorization)) as response,
        ):
            if response.status in _MOVED:
                url = _moved(url, response.getheader("Location"))
                authorization = {}
                continue
            _check(response)
            yield Body(response.length, partial(_read, response))
            return
    raise NotTaken(f"redirects more than {_REDIRECTS} times")


def _way_to(
    url: SplitResult, timeout_seconds: float
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """A connection that is not open yet, the request's target, and headers for a proxy."""
    host = url.hostname or ""
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    proxy = _proxy_for(url)
    near = proxy or url
    headers = _basic(proxy, "Proxy-Authorization") if proxy else {}
    near_host, near_port = near.hostname or "", near.port or _PORTS[near.scheme]
    if url.scheme == "https":
        secure = http.client.HTTPSConnection(
            near_host, near_port, timeout=timeout_seconds, context=ssl.create_default_context()
        )
        if proxy:
            secure.set_tunnel(host, url.port or 443, headers)
        return secure, target, {}
    plain = http.client.HTTPConnection(near_host, near_port, timeout=timeout_seconds)
    if not proxy:
        return plain, target, {}
    return plain, f"http://{url.netloc.rpartition('@')[2]}{target}", headers


def _proxy_for(url: SplitResult) -> SplitResult | None:
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
    return proxy


def _basic(url: SplitResult, header: str = "Authorization") -> dict[str, str]:
    if url.username is None:
        return {}
    both = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {header: "Basic " + base64.b64encode(both.encode()).decode()}


def _answer(
    connection: http.client.HTTPConnection, target: str, headers: dict[str, str]
) -> http.client.HTTPResponse:
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        raise Away(f"has a certificate that is not trusted ({error.verify_message})") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Away(f"does not answer ({_cause(error)})") from None
    try:
        connection.request("GET", target, headers={"Accept-Encoding": "identity", **headers})
        return connection.getresponse()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Away(f"gives no answer ({_cause(error)})") from None


def _cause(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
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


def _check(response: http.client.HTTPResponse) -> None:
    if response.status in (404, 410):
        raise NotTaken(f"has no such file ({response.status})")
    if response.status != 200:
        raise NotTaken(f"answers {response.status} {response.reason}".strip()[:120])
    encoding = response.getheader("Content-Encoding", "identity")
    if encoding != "identity":
        raise NotTaken(f"sends the file as {encoding[:20]}, which was not asked for")


def _read(response: http.client.HTTPResponse, size: int) -> bytes:
    try:
        return response.read1(size)
    except TimeoutError:
        raise Away("stopped sending") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotTaken(f"broke the connection ({_cause(error)})") from None
