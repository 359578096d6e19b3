"""Behind a real oauth2-proxy with an OIDC issuer; ``make dashboard-oidc`` builds the proxy."""

import asyncio
import re
import shutil
from asyncio import timeout
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession
from tests.unit.dashboard import rows
from tests.unit.web.dashboard import oauth2_proxy
from tests.unit.web.dashboard.fakes import Scene
from tests.unit.web.dashboard.oauth2_proxy import Issuer

from gpu_scheduler.dashboard.pages import PAGES
from gpu_scheduler.web.dashboard.assets import read

needs_program = pytest.mark.skipif(
    oauth2_proxy.program() is None, reason="oauth2-proxy is not built: make dashboard-oidc"
)

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
QUEUE = "/api/v1/queue"
STREAM = "/api/v1/stream?view=/queue"
HOST = "gpus.example.com"
SUSPEND = "/api/v1/jobs/team-a/train/suspend"
ROOT = Path(__file__).parents[4]
DIST = ROOT / "dashboard" / "dist"
JSON = {"Accept": "application/json, */*"}  # as the page asks


@dataclass
class Stand:
    """A browser, the proxy's address, and what is behind it."""

    browser: ClientSession
    address: str
    issuer: Issuer
    scene: Scene


@asynccontextmanager
async def stood(tmp_path: Path, scene: Scene | None = None) -> AsyncIterator[Stand]:
    scene = scene or Scene()
    scene.api.user("anna@example.com", "team-a")
    given = scene.api.tokens.__setitem__
    async with (
        scene.served() as dashboard,
        oauth2_proxy.behind(dashboard, tmp_path, given) as (address, issuer),
        oauth2_proxy.browser() as browser,
    ):
        yield Stand(browser, address, issuer, scene)


@needs_program
async def test_who_logs_in_sees_what_is_theirs(tmp_path: Path) -> None:
    async with stood(tmp_path) as stand:
        async with stand.browser.get(stand.address) as answer:  # the issuer, and back
            assert str(answer.url).rstrip("/") == stand.address
        assert stand.issuer.logins == 1
        async with stand.browser.get(stand.address + QUEUE, headers=JSON) as answer:
            said = await answer.text()
        assert answer.status == 200
        assert "secret-of-team-a" in said and "secret-of-team-b" not in said


@needs_program
@pytest.mark.skipif(
    CHROMIUM is None or not (DIST / "index.html").exists(),
    reason="there is no Chromium, or no front end: make dashboard-oidc",
)
async def test_the_page_in_a_browser_logs_in_by_itself_and_shows_what_is_theirs(
    tmp_path: Path,
) -> None:
    works = rows.job("ours"), rows.job("theirs", namespace="team-b")
    scene = Scene(assets=read(DIST), pages=PAGES, picture=rows.picture(works=works))
    async with stood(tmp_path, scene) as stand:
        async with browser_on(f"{stand.address}/jobs", tmp_path / "browser") as text, timeout(60):
            while "ours" not in (shown := await text()):  # noqa: ASYNC110 - a browser's
                await asyncio.sleep(0.05)
        assert stand.issuer.logins >= 1
        assert "theirs" not in shown and "Log in" not in shown


@asynccontextmanager
async def browser_on(address: str, profile: Path) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Chromium on a page; what it shows now, by its DevTools protocol."""
    process = await asyncio.create_subprocess_exec(
        str(CHROMIUM),
        "--no-sandbox",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        address,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with timeout(60), ClientSession() as session:
            while not (port := (await asyncio.to_thread(_port, profile))):  # noqa: ASYNC110 - a browser's
                await asyncio.sleep(0.05)
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                (page,) = [each for each in await answer.json() if each["type"] == "page"]
            async with session.ws_connect(page["webSocketDebuggerUrl"]) as devtools:

                async def text() -> str:
                    ask = {"expression": "document.body ? document.body.innerText : ''"}
                    await devtools.send_json({"id": 1, "method": "Runtime.evaluate", "params": ask})
                    said = await devtools.receive_json()
                    return str(said.get("result", {}).get("result", {}).get("value", ""))

                yield text
                await devtools.send_json({"id": 2, "method": "Browser.close"})
                await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _port(profile: Path) -> str:
    file = profile / "DevToolsActivePort"
    return file.read_text().partition("\n")[0] if file.exists() else ""


@needs_program
async def test_who_is_not_logged_in_is_told_so_and_a_page_is_sent_to_the_login(
    tmp_path: Path,
) -> None:
    async with stood(tmp_path) as stand:
        for path in (QUEUE, STREAM):
            async with stand.browser.get(stand.address + path, headers=JSON) as answer:
                assert answer.status == 401 and "secret" not in await answer.text()
        async with stand.browser.get(stand.address, allow_redirects=False) as answer:
            assert answer.status == 302
            assert answer.headers["Location"].startswith(stand.issuer.url)
        assert stand.scene.pictures == 0


@needs_program
async def test_a_stream_comes_at_once_and_lives_longer_than_the_proxy_waits_for_an_answer(
    tmp_path: Path,
) -> None:
    async with stood(tmp_path) as stand:
        await stand.browser.get(stand.address)
        loop, number = asyncio.get_running_loop(), 0
        end = loop.time() + 2 * oauth2_proxy.UPSTREAM_SECONDS
        async with stand.browser.get(stand.address + STREAM, headers=JSON) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            while loop.time() < end:
                stand.scene.works.names.append(f"team-a/job-{number}")
                stand.scene.later()
                while f"job-{number}" not in (line := (await answer.content.readline()).decode()):
                    assert line  # it goes on
                number += 1


@needs_program
@pytest.mark.parametrize(
    ("origin", "status"), [(f"https://{HOST}", 204), ("https://evil.test", 403)]
)
async def test_the_cookie_acts_for_our_own_page_alone(
    tmp_path: Path, origin: str, status: int
) -> None:
    async with stood(tmp_path) as stand:
        await stand.browser.get(stand.address)
        headers = {"Origin": origin, "X-Forwarded-Host": HOST}  # the latter by an Ingress
        async with stand.browser.post(stand.address + SUSPEND, json={}, headers=headers) as answer:
            assert answer.status == status
        assert len(stand.scene.api.sent) == (status == 204)


@needs_program
async def test_a_token_is_renewed_before_it_is_over(tmp_path: Path) -> None:
    async with stood(tmp_path) as stand:
        stand.issuer.seconds = 2
        await stand.browser.get(stand.address)
        first = dict(stand.scene.api.tokens)
        while not stand.issuer.renewed:
            async with stand.browser.get(stand.address + QUEUE, headers=JSON) as answer:
                assert answer.status == 200
            await asyncio.sleep(0.1)
        assert set(first) < set(stand.scene.api.tokens)
        assert stand.issuer.logins == 1


def test_the_page_names_the_arguments_that_are_tried() -> None:
    page = (ROOT / "docs" / "dashboard.md").read_text()
    named = set(re.findall(r"^  - (--[a-z0-9-]+)=", page, re.MULTILINE))
    tried = {each.partition("=")[0] for each in oauth2_proxy.arguments("", "", "")}
    secret_or_of_this_machine = {
        "--client-secret", "--cookie-secret", "--cookie-secure", "--upstream-timeout",
    }  # fmt: skip
    assert named == tried - secret_or_of_this_machine
