"""Live views: what changed, for whom it is, and how a stream ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.unit.web.dashboard.fakes import Event, HttpClient, Scene, bearer, events

from gpu_scheduler.web.dashboard.app import STREAMS, app
from gpu_scheduler.web.dashboard.identities import MOST_SECONDS
from gpu_scheduler.web.dashboard.listening import LIMITS, DashboardListener
from gpu_scheduler.web.dashboard.stream import StreamLimits

STREAM = "/api/v1/stream?view=%2Fqueue%3Fproject%3Da"


class Open:
    """A stream that is read."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self._events = events(answer.content)

    async def next(self) -> Event:
        async with asyncio.timeout(30):
            return await anext(self._events)

    async def until(self, name: str) -> Event:
        while (event := await self.next()).name != name:
            pass
        return event

    async def ends(self) -> bool:
        async with asyncio.timeout(30):
            return await anext(self._events, None) is None


@asynccontextmanager
async def opened(client: HttpClient, token: str, path: str = STREAM) -> AsyncIterator[Open]:
    answer = await client.get(path, headers=bearer(token))
    assert (answer.status, answer.content_type) == (200, "text/event-stream")
    try:
        yield Open(answer)
    finally:
        answer.close()


async def test_the_whole_view_is_sent_at_first_and_when_it_changes() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client, opened(client, token) as stream:
        first = await stream.next()
        assert first.name == "view"
        assert first.data["works"] == ["team-a/secret-of-team-a"]
        assert first.data["asked"] == {"project": "a"}
        scene.later()  # says the same of a later moment
        await asyncio.sleep(0)
        scene.works.names.append("team-a/new")
        scene.later()
        second = await stream.next()
        assert second.data["works"] == ["team-a/new", "team-a/secret-of-team-a"]


async def test_a_view_that_stays_the_same_is_not_sent_again_but_a_sign_of_life_is() -> None:
    limits = StreamLimits(period_seconds=0.005, heartbeat_seconds=3.0)
    scene = Scene(limits=limits)
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        answer = await client.get(STREAM, headers=bearer(token))
        lines = [await answer.content.readline() for _ in range(4)]
        assert [line.split(b":")[0] for line in lines] == [b"event", b"id", b"data", b"\n"]
        scene.time.now += 3.0
        scene.later()
        async with asyncio.timeout(30):
            assert await answer.content.readline() == b": alive\n"
        answer.close()


async def test_a_right_that_is_taken_away_shows_while_the_stream_is_open() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a", "team-c")
    async with scene.served() as client, opened(client, token) as stream:
        assert len((await stream.next()).data["works"]) == 2
        scene.api.rights.remove(("anna", "team-c"))
        scene.time.now += MOST_SECONDS
        assert (await stream.next()).data["works"] == ["team-a/secret-of-team-a"]


async def test_a_token_that_is_taken_away_ends_the_stream() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client, opened(client, token) as stream:
        await stream.next()
        del scene.api.tokens[token]
        scene.time.now += MOST_SECONDS
        assert (await stream.until("end")).data["status"] == 401
        assert await stream.ends()


async def test_an_api_server_that_is_away_ends_the_stream_within_a_minute() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client, opened(client, token) as stream:
        await stream.next()
        scene.api.away = True
        scene.time.now += MOST_SECONDS
        assert (await stream.until("end")).data["status"] == 503


async def test_the_end_of_the_leader_ends_the_stream() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client, opened(client, token) as stream:
        await stream.next()
        scene.picture = None
        assert (await stream.until("end")).data["status"] == 503
        assert await stream.ends()


async def test_a_stream_lives_half_an_hour() -> None:
    assert StreamLimits().seconds == 1800 < LIMITS.long_seconds
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client, opened(client, token) as stream:
        await stream.next()
        scene.time.now += 1800
        assert (await stream.until("end")).data["status"] == 200


@pytest.mark.parametrize(
    ("view", "status"),
    [("nowhere", 404), ("", 404), ("%2Fqueue%3Fa%3D1%26a%3D2", 400), ("me", 404), ("stream", 404)],
)
async def test_what_is_no_view_is_not_streamed(view: str, status: int) -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        answer = await client.get(f"/api/v1/stream?view={view}", headers=bearer(token))
        assert answer.status == status


async def test_a_view_that_may_not_be_seen_any_more_ends_the_stream() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    path = "/api/v1/stream?view=/jobs/team-a/GPUJob/train"
    async with scene.served() as client, opened(client, token, path) as stream:
        await stream.next()
        scene.api.rights.clear()
        scene.time.now += MOST_SECONDS
        assert (await stream.until("end")).data["status"] == 404


async def test_a_question_that_only_the_page_understands_ends_it_in_words() -> None:
    scene = Scene()
    token = scene.api.user("anna", "team-a")
    async with scene.served() as client:
        async with opened(client, token, "/api/v1/stream?view=queue%3Flimit%3Dx") as stream:
            assert (await stream.until("end")).data["status"] == 400


async def test_many_streams_of_one_view_make_it_once() -> None:
    scene = Scene(limits=StreamLimits(period_seconds=0.005))
    tokens = [scene.api.user(f"u{n}", "team-a") for n in range(10)]
    async with scene.served() as client:
        answers = [await client.get(STREAM, headers=bearer(token)) for token in tokens]
        streams = [Open(answer) for answer in answers]
        assert len({str((await stream.next()).data) for stream in streams}) == 1
        assert scene.works.made == 1
        for answer in answers:
            answer.close()


async def test_who_reads_too_slowly_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene(limits=StreamLimits(write_seconds=0.05))
    token = scene.api.user("anna", "team-a")
    scene.works.names += [f"team-a/{'x' * 2000}-{n}" for n in range(10_000)]
    async with scene.served() as client:
        assert client.app is not None
        streams, url = client.app[STREAMS], client.make_url(STREAM)
        reader, writer = await asyncio.open_connection(url.host, url.port, limit=1024)
        head = f"GET {STREAM} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")  # and nothing more
        async with asyncio.timeout(30):
            async for _ in _while(lambda: len(streams) > 0):
                pass
            got = 0
            with suppress(ConnectionError):
                while piece := await reader.read(1 << 20):
                    got += len(piece)
        writer.close()
        assert got < 20_000_000, "it was dropped before all of the view was sent"
    assert not [record for record in caplog.records if record.exc_info]


async def _while(condition: Callable[[], bool]) -> AsyncIterator[None]:
    while condition():
        await asyncio.sleep(0.01)
        yield


async def test_streams_on_the_real_port_live_longer_than_other_connections() -> None:
    scene = Scene(limits=StreamLimits(period_seconds=0.005))
    token = scene.api.user("anna", "team-a")
    limits = replace(LIMITS, seconds=0.1, long_seconds=30.0)
    listener = DashboardListener(app(scene.parts), limits=limits)
    port, _ = await listener.start(0)
    async with ClientSession() as session:
        url = f"http://127.0.0.1:{port}"
        idle = await asyncio.open_connection("127.0.0.1", port)
        answer = await session.get(f"{url}{STREAM}", headers=bearer(token))
        stream = Open(answer)
        await stream.next()
        async with asyncio.timeout(30):
            assert await idle[0].read() == b"", "a connection that says nothing is closed"
        idle[1].close()
        scene.works.names.append("team-a/new")
        scene.later()
        assert "team-a/new" in (await stream.next()).data["works"]
        answer.close()
    await listener.cleanup()
