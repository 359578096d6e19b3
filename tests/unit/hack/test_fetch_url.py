import asyncio
import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.unit.hack import file_server as serve
from tests.unit.left_open import nothing_left_open

from cluster import fetch_url
from cluster.fetch_url import Away, Limits, NotTaken

PATIENT = Limits(connect_seconds=20, answer_seconds=20, stall_seconds=20)


@pytest.fixture
def server() -> Iterator[serve.Server]:
    with serve.Server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def read(url: str) -> bytes:
    return asyncio.run(fetch_url.read(urlsplit(url), 1000, PATIENT))


def with_password(server: serve.Server, path: str) -> str:
    return f"http://me:p%40ss@{server.host}{path}"


BASIC = "Basic " + base64.b64encode(b"me:p@ss").decode()


def test_a_file_is_asked_for_as_it_is(server: serve.Server) -> None:
    server.answers["/a/b?token=x"] = serve.right(b"content")
    assert read(f"{server.url}/a/b?token=x#not-sent") == b"content"
    assert server.headers[0]["Accept-Encoding"] == "identity"
    assert "Authorization" not in server.headers[0]


def test_a_password_is_sent_to_the_server_that_it_is_for(server: serve.Server) -> None:
    server.answers["/x"] = serve.right(b"content")
    assert read(with_password(server, "/x")) == b"content"
    assert server.headers[0]["Authorization"] == BASIC


def test_a_password_is_not_taken_along(server: serve.Server) -> None:
    server.answers |= {"/x": serve.redirect("/y"), "/y": serve.right(b"content")}
    assert read(with_password(server, "/x")) == b"content"
    assert "Authorization" not in server.headers[1]


def test_a_redirect_to_another_http_server_is_not_followed(server: serve.Server) -> None:
    with serve.Server() as other:
        other.answers["/y"] = serve.right(b"content")
        server.answers["/x"] = serve.redirect(f"{other.url}/y")
        with pytest.raises(NotTaken, match="which is not https"):
            read(f"{server.url}/x")
        assert other.asked == []


def test_a_redirect_to_https_is_followed(server: serve.Server) -> None:
    """The other end speaks no TLS, which shows that it was asked to."""
    server.answers["/x"] = serve.redirect(f"https://{server.host}/y")
    with pytest.raises(Away, match="does not answer .*SSL"):
        read(f"{server.url}/x")
    assert server.asked == ["/x"]


@pytest.mark.parametrize(
    "location", ["http://[::1/", "https://x:99999/", "//", "\x7f\xe9", "https://\xe9..invalid/"]
)
def test_a_redirect_to_nonsense_is_refused(server: serve.Server, location: str) -> None:
    server.answers["/x"] = serve.redirect(location)
    with pytest.raises(NotTaken):
        read(f"{server.url}/x")


def test_secrets_are_not_in_what_is_said(server: serve.Server) -> None:
    server.answers["/x"] = serve.redirect("http://me:secret@mirror.invalid/y?token=secret")
    with pytest.raises(NotTaken) as caught:
        read(f"{server.url}/x")
    assert "secret" not in str(caught.value)


def test_certificates_and_names_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ssl.SSLContext] = []
    get = aiohttp.ClientSession.get

    def seen(*arguments: Any, **options: Any) -> Any:
        given.append(options["ssl"])
        return get(*arguments, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "get", seen)
    with pytest.raises(Away):
        read("https://127.0.0.1:1/")
    (context,) = given
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_proxy_is_used_with_its_password(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", with_password(server, ""))
    server.answers["http://mirror.invalid/a?b=c"] = serve.right(b"content")
    assert read("http://you:word@mirror.invalid/a?b=c") == b"content"
    assert server.asked == ["http://mirror.invalid/a?b=c"]
    assert server.headers[0]["Proxy-Authorization"] == BASIC
    assert server.headers[0]["Host"] == "mirror.invalid"


def test_an_https_server_is_reached_through_a_tunnel(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", with_password(server, ""))
    server.answers["mirror.invalid:443"] = serve.status(403)
    with pytest.raises(Away, match="Tunnel connection failed: 403"):
        read("https://mirror.invalid/a")
    assert server.asked == ["mirror.invalid:443"]
    assert server.headers[0]["Proxy-Authorization"] == BASIC


@pytest.mark.parametrize("bypass", ["", "127.0.0.1"])
def test_this_machine_is_not_reached_through_a_proxy(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch, bypass: str
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", bypass)
    server.answers["/x"] = serve.right(b"content")
    assert read(f"{server.url}/x") == b"content"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_proxy_of_another_kind_is_named(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(Away, match="a proxy that is not an http one"):
        read("http://mirror.invalid/a")


def test_a_proxy_that_is_away_makes_the_place_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with pytest.raises(Away, match="Connection refused"):
        read("http://mirror.invalid/a")


@pytest.mark.parametrize(
    ("answer", "limits"),
    [
        (serve.stalled(b"", 10, 404), PATIENT),
        (serve.stalled(b"", 10, 302, Location="http://127.0.0.1/y"), PATIENT),
        (serve.stalled(bytes(2000), 3000), PATIENT),
        (serve.stalled(b"a", 10), Limits(stall_seconds=0.1)),
        (serve.silent, Limits(answer_seconds=0.5)),
    ],
    ids=["not there", "elsewhere", "too large", "stalls", "silent"],
)
def test_what_is_left_unread_behind_tls_leaves_no_connection_open(
    answer: serve.Answer, limits: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says no goodbye before the loop is closed, and nobody waits for one."""
    tls, authority = serve.behind_tls(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with serve.Server(tls) as server, nothing_left_open():
        server.answers["/x"] = answer
        with pytest.raises(NotTaken):
            asyncio.run(fetch_url.read(urlsplit(f"{server.url}/x"), 1000, limits))
        assert server.asked == ["/x"]
