"""A real oauth2-proxy in front of a dashboard, with an OIDC issuer of our own that asks nobody.

``make dashboard-oidc`` builds the program and runs the tests that use it. Its arguments are those
of docs/dashboard.md, for which a test looks.
"""

import asyncio
import json
import secrets
import shutil
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientError, ClientSession, CookieJar, web
from aiohttp.test_utils import TestServer
from tests.api.free_port import free_port
from tests.unit.web.dashboard.fakes import HttpClient

from cache_folder import cache_folder

CLIENT = "kubernetes"
UPSTREAM_SECONDS = 1
"""That the proxy waits for an answer's head: a stream lives longer."""


def program() -> str | None:
    """Where ``hack/dashboard.sh oidc`` puts it, or that of the machine; None: there is none."""
    return shutil.which("oauth2-proxy", path=str(cache_folder() / "dashboard")) or shutil.which(
        "oauth2-proxy"
    )


@dataclass
class Issuer:
    """Logs in whoever comes as ``email``; the tokens that it gave are known by ``given``."""

    key: Path
    given: Callable[[str, str], None]
    email: str = "anna@example.com"
    seconds: int = 300
    url: str = ""
    logins: int = 0
    renewed: int = 0
    _nonces: dict[str, str] = field(default_factory=dict)

    def application(self) -> web.Application:
        """Its addresses."""
        made = web.Application()
        made.router.add_get("/.well-known/openid-configuration", self._configuration)
        made.router.add_get("/keys", self._keys)
        made.router.add_get("/login", self._login)
        made.router.add_post("/token", self._token)
        return made

    async def _configuration(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/login",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
            }
        )

    async def _keys(self, request: web.Request) -> web.Response:
        said = _openssl("rsa", "-in", str(self.key), "-noout", "-modulus").decode().strip()
        number = bytes.fromhex(said.partition("=")[2])
        key = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": _text(number)}
        return web.json_response({"keys": [{**key, "e": "AQAB"}]})

    async def _login(self, request: web.Request) -> web.Response:
        self.logins += 1
        code, asked = secrets.token_urlsafe(8), request.query
        self._nonces[code] = asked.get("nonce", "")
        back = urlencode({"code": code, "state": asked["state"]})
        raise web.HTTPFound(f"{asked['redirect_uri']}?{back}")

    async def _token(self, request: web.Request) -> web.Response:
        asked = await request.post()
        nonce = self._nonces.pop(str(asked.get("code", "")), "")
        self.renewed += asked["grant_type"] == "refresh_token"
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": self.email, "email": self.email}
        claims |= {"email_verified": True, "iat": now, "exp": now + self.seconds}  # type: ignore[dict-item]
        token = self._signed(claims | ({"nonce": nonce} if nonce else {}))
        self.given(token, self.email)
        answer = {"access_token": "of-no-use", "token_type": "Bearer", "id_token": token}
        more = {"expires_in": self.seconds, "refresh_token": "again"}
        return web.json_response(answer | more)

    def _signed(self, claims: dict[str, Any]) -> str:
        head = {"alg": "RS256", "kid": "1"}
        body = ".".join(_text(json.dumps(each).encode()) for each in (head, claims))
        return f"{body}.{_text(_openssl('dgst', '-sha256', '-sign', str(self.key), of=body))}"


def _openssl(*arguments: str, of: str = "") -> bytes:
    made = subprocess.run(
        ["openssl", *arguments], input=of.encode(), capture_output=True, check=True
    )
    return made.stdout


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


@asynccontextmanager
async def behind(
    dashboard: HttpClient, tmp_path: Path, given: Callable[[str, str], None]
) -> AsyncIterator[tuple[str, Issuer]]:
    """The proxy's address, and the issuer that it asks. ``given``: a token, and whose it is."""
    key = tmp_path / "issuer.key"
    _openssl("genrsa", "-out", str(key), "2048")
    issuer = Issuer(key, given)
    async with TestServer(issuer.application()) as server:
        issuer.url = str(server.make_url("")).rstrip("/")
        address = f"http://127.0.0.1:{free_port()}"
        with (tmp_path / "proxy.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                program() or "oauth2-proxy",
                *arguments(issuer.url, str(dashboard.make_url("/")), address),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            await _until_up(address)
            yield address, issuer
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


def arguments(issuer: str, upstream: str, address: str) -> list[str]:
    """Of docs/dashboard.md, and what is of this machine: no TLS, seconds in place of minutes."""
    return [
        "--provider=oidc",
        f"--oidc-issuer-url={issuer}",
        f"--client-id={CLIENT}",
        "--client-secret=of-the-test",
        f"--cookie-secret={secrets.token_hex(16)}",
        "--email-domain=*",
        f"--upstream={upstream}",
        "--pass-authorization-header=true",
        "--skip-provider-button=true",
        "--reverse-proxy=true",
        "--cookie-refresh=1s",
        "--cookie-secure=false",
        f"--upstream-timeout={UPSTREAM_SECONDS}s",
        f"--redirect-url={address}/oauth2/callback",
        f"--http-address={address.removeprefix('http://')}",
    ]


async def _until_up(address: str) -> None:
    async with ClientSession() as session:
        while True:  # the test's own limit ends it
            with suppress(ClientError):
                async with session.get(f"{address}/ping") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def browser() -> AsyncIterator[ClientSession]:
    """Keeps cookies, also of 127.0.0.1."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        yield session
