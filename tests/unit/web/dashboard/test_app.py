"""Every address: nobody without a token, and each reader what is theirs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.unit.web.dashboard.fakes import Event, HttpClient, Scene, bearer, events, posting
from yarl import URL

from gpu_scheduler.dashboard.pages import PAGES
from gpu_scheduler.dashboard.views import Me, ProblemView, WhatIfQuestion
from gpu_scheduler.kube import errors
from gpu_scheduler.web.dashboard.answers import HEADERS
from gpu_scheduler.web.dashboard.app import app
from gpu_scheduler.web.dashboard.own_token import MOST_BYTES
from gpu_scheduler.web.dashboard.stream import StreamLimits

QUEUE = "/api/v1/queue"
SECRET = "secret-of-team-b"
EVERYTHING = ("*gpujobs", "*gpunodes", "*gpuprojects")
WHAT_IF = msgspec.to_builtins(WhatIfQuestion(project="x", quota=3.0))
SUSPEND = "/api/v1/jobs/team-a/train/suspend"


def addresses(application: web.Application) -> list[tuple[str, str]]:
    """All that can be asked below /api, with parts filled in that a tenant may not see."""
    found = []
    for route in application.router.routes():
        path = "" if route.resource is None else route.resource.canonical
        if path.startswith("/api") and route.method != "HEAD":
            method = "GET" if route.method == "*" else route.method
            path = path.replace("{rest}", "").replace("{namespace}", "team-b")
            for part in ("{kind}", "{name}", "{pod}", "{node}", "{index}"):
                path = path.replace(part, "some-name")
            found.append((method, f"{path}?view=/queue" if path.endswith("/stream") else path))
    return found


async def ask(client: HttpClient, method: str, path: str, headers: dict[str, str]) -> Any:
    more: dict[str, Any] = {"json": WHAT_IF} if method == "POST" else {}
    return await client.request(method, path, headers=headers, **more)


async def first_event(answer: Any) -> Event:
    async with asyncio.timeout(30):
        async for event in events(answer.content):
            return event
    raise AssertionError("the stream has ended")


async def said(answer: Any) -> str:
    """What an answer says; of a stream, its first view."""
    if answer.content_type == "text/event-stream":
        event = await first_event(answer)
        answer.close()
        return str(event.data)
    return str(await answer.text())


def scene_of_pages() -> Scene:
    """With the real table's addresses, so that a new page is asked about as well."""
    scene = Scene()
    pages = tuple(replace(page, make=scene.works.page) for page in PAGES)
    return Scene(api=scene.api, works=scene.works, pages=pages)


async def test_the_table_of_addresses_is_as_long_as_expected() -> None:
    found = addresses(app(scene_of_pages().parts))
    assert len(found) == len(PAGES) + 7
    assert {method for method, _ in found} == {"GET", "POST"}


async def test_without_a_token_no_address_says_anything() -> None:
    scene = scene_of_pages()
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            for headers in ({}, bearer("made-up"), {"Authorization": "Basic eDp5"}):
                answer = await ask(client, method, path, headers)
                body = await answer.read()
                assert answer.status == 401, path
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                assert set(msgspec.json.decode(body)) == {"error"}, path
                assert b"secret" not in body
    assert scene.works.made == 0 and scene.asked_what_if == [] and scene.api.sent == []
    assert {kind for kind, _ in scene.api.asked} == {"token"}


async def test_a_tenant_sees_their_namespaces_alone_at_every_address() -> None:
    scene = scene_of_pages()
    token = scene.api.user("anna", "team-a")
    scene.api.refuses = errors.Forbidden(403, "Forbidden", "anna may not")
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            answer = await ask(client, method, path, posting(client, token))
            text = await said(answer)
            assert answer.status in (200, 403, 404), path
            assert SECRET not in text and "team-b" not in text, path
            if answer.status == 200 and not path.endswith("/me"):
                assert "secret-of-team-a" in text, path
    assert {each.namespaces for each in scene.asked_what_if} == {frozenset({"team-a"})}
    # What goes on to the API server goes by the tenant's own token.
    assert {options["token"] for *_, options in scene.api.sent} == {token}


async def test_who_may_see_all_sees_all() -> None:
    scene = scene_of_pages()
    token = scene.api.user("root", *EVERYTHING)
    async with scene.served() as client:
        for page in PAGES:
            path = page.path.replace("{namespace}", "team-b").replace("{kind}", "GPUJob")
            for part in ("{name}", "{node}", "{index}"):
                path = path.replace(part, "x")
            answer = await client.get(f"/api/v1/{path}", headers=bearer(token))
            assert SECRET in await answer.text(), path


async def test_a_page_of_a_namespace_that_may_not_be_seen_is_as_if_it_were_not_there() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        answers = [
            await client.get(f"/api/v1/jobs/{namespace}/GPUJob/x", headers=bearer(token))
            for namespace in ("team-b", "nowhere")
        ]
        assert [answer.status for answer in answers] == [404, 404]
        assert len({await answer.text() for answer in answers}) == 1


async def test_me_says_what_i_may_see() -> None:
    scene = Scene(actions=False)
    anna, root = scene.api.user("anna", "team-c", "team-a"), scene.api.user("root", *EVERYTHING)
    async with scene.served() as client:
        answer = await client.get("/api/v1/me", headers=bearer(anna))
        me = msgspec.json.decode(await answer.read(), type=Me)
        assert (me.user, me.all, me.namespaces, me.actions) == (
            *("anna", False, ("team-a", "team-c"), False),
        )
        answer = await client.get("/api/v1/me", headers=bearer(root))
        assert msgspec.json.decode(await answer.read(), type=Me).all


async def test_a_stand_by_says_when_to_try_again_and_asks_nobody() -> None:
    scene = Scene(picture=None)
    token = scene.api.user("anna", *EVERYTHING)
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            answer = await ask(client, method, path, posting(client, token))
            assert answer.status == 503, path
            assert int(answer.headers["Retry-After"]) > 0
            assert "lead" in msgspec.json.decode(await answer.read(), type=ProblemView).error
            assert (await ask(client, method, path, {})).status == 401
    assert scene.api.asked == []


async def test_for_nobody_who_is_not_known_the_cluster_is_looked_at() -> None:
    scene = Scene()
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            for headers in ({}, posting(client, "token-of-nobody")):
                assert (await ask(client, method, path, headers)).status == 401
    assert scene.pictures == 0


async def test_an_api_server_that_is_away_lets_nobody_in() -> None:
    scene = Scene()
    token = scene.api.user("anna", *EVERYTHING)
    scene.api.away = True
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            assert (await ask(client, method, path, posting(client, token))).status == 503, path
    assert scene.works.made == 0


async def test_every_answer_has_the_strict_headers() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        for path, headers in (
            (QUEUE, bearer(token)),
            ("/api/v1/stream?view=/queue", bearer(token)),
            ("/api/v1/logs/team-a/pod", bearer(token)),
            (QUEUE, {}),
            ("/", {}),
            ("/missing.js", {}),
            (f"{QUEUE}?limit=x", bearer(token)),
        ):
            answer = await client.get(path, headers=headers)
            assert HEADERS.items() <= dict(answer.headers).items(), path
            assert "Set-Cookie" not in answer.headers
            assert "Access-Control-Allow-Origin" not in answer.headers
            if path.startswith("/api"):
                assert answer.headers["Cache-Control"].startswith("no-store")
            answer.close()
        answer = await client.post("/", headers=headers)
        assert answer.status == 405 and HEADERS.items() <= dict(answer.headers).items()


async def test_a_view_is_made_once_for_all_who_may_see_the_same() -> None:
    scene = Scene()
    tokens = [scene.api.user(f"u{n}", "team-a") for n in range(5)]
    async with scene.served() as client:
        asked = (client.get(QUEUE, headers=bearer(token)) for token in tokens * 2)
        texts = {await answer.text() for answer in await asyncio.gather(*asked)}
        assert len(texts) == scene.works.made == 1
        other = scene.api.user("other", "team-a", "team-c")
        assert "team-c" in await (await client.get(QUEUE, headers=bearer(other))).text()
        scene.later()
        await client.get(QUEUE, headers=bearer(other))
        assert scene.works.made == 3


async def test_what_did_not_change_is_not_sent_again() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        etag = (await client.get(QUEUE, headers=bearer(token))).headers["ETag"]
        scene.later()
        headers = bearer(token, **{"If-None-Match": etag})
        answer = await client.get(QUEUE, headers=headers)
        assert (answer.status, await answer.read()) == (304, b"")
        scene.works.names.append("team-a/new")
        scene.later()
        answer = await client.get(QUEUE, headers=headers)
        assert answer.status == 200 and answer.headers["ETag"] != etag
        assert (await answer.json())["at"] == 7.0


async def test_a_view_is_compressed_where_that_is_read() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        headers = bearer(token, **{"Accept-Encoding": "gzip"})
        answer = await client.get(QUEUE, headers=headers)
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "secret-of-team-a" in await answer.text()
        plain = await client.get(QUEUE, headers=bearer(token, **{"Accept-Encoding": "identity"}))
        assert "Content-Encoding" not in plain.headers


async def test_a_question_that_cannot_be_understood_is_answered_in_words() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        for query in ("limit=x", "a=1&a=2", "&".join(f"p{n}=1" for n in range(50))):
            answer = await client.get(f"{QUEUE}?{query}", headers=bearer(token))
            assert answer.status == 400
            assert msgspec.json.decode(await answer.read(), type=ProblemView).error
        answer = await client.get(f"{QUEUE}?q={'x' * 3000}", headers=bearer(token))
        assert answer.status == 414


async def test_a_defect_of_a_page_is_logged_and_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    scene.works.fails = ZeroDivisionError("a defect")
    async with scene.served() as client:
        answer = await client.get(f"{QUEUE}?q=asked-for", headers=bearer(token))
        assert answer.status == 500 and "a defect of" in await answer.text()
        assert "ZeroDivision" not in await answer.text()
    assert "ZeroDivisionError" in caplog.text
    assert token not in caplog.text and "anna" not in caplog.text
    assert "asked-for" not in caplog.text


async def test_no_token_and_no_name_reaches_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        for method, path in addresses(client.app):  # type: ignore[arg-type]
            (await ask(client, method, path, posting(client, token))).close()
    assert token not in caplog.text and "anna" not in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 204),
        ({"Sec-Fetch-Site": "same-origin"}, 204),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "https://gpus.example", "X-Forwarded-Host": "gpus.example"}, 204),
        ({"Origin": "https://gpus.example", "X-Forwarded-Host": "gpus.example:443"}, 204),
        ({"Origin": "https://gpus.example.evil", "X-Forwarded-Host": "gpus.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_an_action_is_taken_from_our_own_page_alone(
    headers: dict[str, str], status: int
) -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        whole = posting(client, token, **{"Content-Type": "application/json", **headers})
        answer = await client.post(SUSPEND, data=b"{}", headers=whole)
        assert answer.status == status
    assert len(scene.api.sent) == (status == 204)


async def test_another_site_reads_nothing() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
            headers = bearer(token, **{"Sec-Fetch-Site": site})
            assert (await client.get(QUEUE, headers=headers)).status == status
        answer = await client.options(QUEUE, headers={"Origin": "https://evil.test"})
        assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(("verb", "suspend"), [("suspend", True), ("resume", False)])
async def test_an_action_is_a_patch_by_the_users_own_token(verb: str, suspend: bool) -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        path = f"/api/v1/jobs/team-a/train/{verb}"
        answer = await client.post(path, json={}, headers=posting(client, token))
        assert answer.status == 204
    ((method, path, options),) = scene.api.sent
    assert (method, options["token"]) == ("PATCH", token)
    assert path == "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs/train"
    assert msgspec.json.decode(options["body"]) == {"spec": {"suspend": suspend}}
    assert options["content_type"] == "application/merge-patch+json"


async def test_actions_are_off_where_the_owner_wants_none() -> None:
    scene = Scene(actions=False)
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        answer = await client.post(SUSPEND, json={}, headers=posting(client, token))
        assert answer.status == 403 and "dashboard.actions" in await answer.text()
    assert scene.api.sent == []


async def test_what_the_api_server_says_is_passed_on() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    scene.api.refuses = errors.Forbidden(403, "Forbidden", "anna may not patch gpujobs")
    async with scene.served() as client:
        answer = await client.post(SUSPEND, json={}, headers=posting(client, token))
        assert answer.status == 403 and "may not patch" in (await answer.json())["error"]
        scene.api.refuses = errors.Unavailable(message="the address of the API server")
        answer = await client.post(SUSPEND, json={}, headers=posting(client, token))
        assert answer.status == 503 and "address" not in await answer.text()


@pytest.mark.parametrize("name", ["..%2f..%2fsecrets", "a%2fstatus", "%2e%2e", "A", "a%3fx=1"])
async def test_no_name_leads_to_another_path(name: str) -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        base = str(client.make_url("/"))
        for path in (f"api/v1/jobs/team-a/{name}/suspend", f"api/v1/jobs/{name}/a/suspend"):
            answer = await client.session.post(
                URL(f"{base}{path}", encoded=True), json={}, headers=posting(client, token)
            )
            assert answer.status in (400, 404, 405)
        for path in (f"api/v1/logs/team-a/{name}", f"api/v1/logs/{name}/a"):
            answer = await client.session.get(
                URL(f"{base}{path}", encoded=True), headers=bearer(token)
            )
            assert answer.status in (400, 404)
    assert scene.api.sent == []


async def test_logs_are_read_by_the_users_own_token_and_bounded() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    scene.api.log = b"<script>alert(1)</script>" + b"x" * (2 * MOST_BYTES)
    async with scene.served() as client:
        answer = await client.get(
            "/api/v1/logs/team-a/pod?lines=1000&container=main&previous=1", headers=bearer(token)
        )
        assert answer.content_type == "text/plain"
        assert len(await answer.read()) == MOST_BYTES
        bad = await client.get("/api/v1/logs/team-a/pod?lines=1001", headers=bearer(token))
        assert bad.status == 400
    ((method, path, options),) = scene.api.sent
    assert (method, path) == ("GET", "/api/v1/namespaces/team-a/pods/pod/log")
    assert options["token"] == token
    assert options["params"] == {
        "tailLines": 1000, "container": "main", "previous": True, "limitBytes": MOST_BYTES
    }  # fmt: skip


async def test_what_if_takes_no_large_question() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        headers = posting(client, token, **{"Content-Type": "application/json"})
        for body, status in ((b"{}", 200), (b"[]", 400), (b"{", 400), (b"x" * (200 << 10), 413)):
            with suppress(ConnectionError):
                answer = await client.post("/api/v1/what-if", data=body, headers=headers)
                assert answer.status == status


async def test_two_tokens_are_none() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer x")]
        assert (await client.get(QUEUE, headers=twice)).status in (400, 401)


async def test_streams_are_bounded_of_one_and_in_all() -> None:
    scene = Scene(limits=StreamLimits(streams=3, streams_of_one=2, period_seconds=0.01))
    anna, bert = scene.api.user("anna", "team-a"), scene.api.user("bert", "team-a")
    async with scene.served() as client:

        async def opened(token: str) -> Any:
            return await client.get("/api/v1/stream?view=queue", headers=bearer(token))

        open_ones = [await opened(anna), await opened(anna)]
        assert (await opened(anna)).status == 429
        open_ones.append(await opened(bert))
        assert [each.status for each in open_ones] == [200] * 3
        assert (await opened(bert)).status == 503
        open_ones[0].close()
        async with asyncio.timeout(30):
            answers = [again async for again in _until_ok(lambda: opened(bert))]
        answers[-1].close()


async def _until_ok(ask: Callable[[], Awaitable[Any]]) -> AsyncIterator[Any]:
    """Answers, until one is good."""
    while (answer := await ask()).status != 200:
        yield answer
    yield answer
