"""Behind a proxy that logs users in, as oauth2-proxy: its cookie becomes a header."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.unit.web.dashboard.fakes import HttpClient, Scene

QUEUE = "/api/v1/queue"
SUSPEND = "/api/v1/jobs/team-a/train/suspend"
HOST = "gpus.example"
COOKIE = "_oauth2_proxy"


@asynccontextmanager
async def proxied(upstream: HttpClient, tokens: dict[str, str]) -> AsyncIterator[HttpClient]:
    """It gives who has a session of ``tokens`` the header, and others its page of login."""

    async def passed(request: web.Request) -> web.StreamResponse:
        token = tokens.get(request.cookies.get(COOKIE, ""))
        if token is None:
            raise web.HTTPFound("/oauth2/start")
        left_out = ("Host", "Cookie", "Authorization", "Content-Length")
        headers = {name: value for name, value in request.headers.items() if name not in left_out}
        headers |= {"Authorization": f"Bearer {token}", "X-Forwarded-Host": HOST}
        body = await request.read()
        answer = await upstream.request(
            request.method, request.path_qs, headers=headers, data=body or None
        )
        sent = web.StreamResponse(status=answer.status)
        await sent.prepare(request)
        async for chunk in answer.content.iter_any():
            await sent.write(chunk)
            if b"event: view" in chunk:
                break  # a test reads no more of a stream
        answer.close()
        await sent.write_eof()
        return sent

    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", passed)
    async with TestClient(TestServer(application)) as client:
        yield client


@pytest.mark.parametrize("path", [QUEUE, "/api/v1/stream?view=/queue"])
async def test_who_is_logged_in_sees_what_is_theirs_and_nobody_else_anything(path: str) -> None:
    scene = Scene()
    sessions = {"a": scene.api.user("anna", "team-a"), "expired": "token-of-nobody"}
    async with scene.served() as dashboard, proxied(dashboard, sessions) as client:
        answer = await client.get(path, headers={"Cookie": f"{COOKIE}=a"})
        said = await answer.text()
        assert "secret-of-team-a" in said and "secret-of-team-b" not in said
        answer = await client.get(path, headers={"Cookie": f"{COOKIE}=expired"})
        assert answer.status == 401 and "secret" not in await answer.text()
        answer = await client.get(path, allow_redirects=False)
        assert answer.status == 302


@pytest.mark.parametrize(
    ("origin", "status"), [(f"https://{HOST}", 204), ("https://evil.test", 403)]
)
async def test_the_cookie_acts_for_our_own_page_alone(origin: str, status: int) -> None:
    scene = Scene()
    sessions = {"a": scene.api.user("anna", "team-a")}
    async with scene.served() as dashboard, proxied(dashboard, sessions) as client:
        headers = {"Cookie": f"{COOKIE}=a", "Origin": origin}
        answer = await client.post(SUSPEND, json={}, headers=headers)
        assert answer.status == status
    assert len(scene.api.sent) == (status == 204)
