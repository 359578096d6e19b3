"""A list is streamed where the server does that, and is whole or none at all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web
from tests.unit.agent.until import until
from tests.unit.kube.fake_server import STALL, FakeServer, Obj, refuse
from tests.unit.kube.reflector_stage import PODS, Stage, on_node, on_stage

from gpu_scheduler.kube import errors, listing, transport
from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.listing import body, parts


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as made:
        made.streams = True
        for name in "abc":
            made.put(f"{PODS}/{name}", on_node())
        yield made


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Client]:
    async with Client(server.connection, timing=Timing(random=lambda: 0.0)) as made:
        yield made


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as made:
        made.server.streams = True
        yield made


async def names(
    client: Client, told: asyncio.Event | None = None, **settings: Any
) -> tuple[list[str], str]:
    """What is there in the end, and the version of the list; ``told``: set once some of it is."""
    known: dict[str, str] = {}
    version = ""
    async for part in parts(client, PODS, **settings):
        for obj in map(body, part.objects):
            known[obj["metadata"]["uid"]] = obj["metadata"]["name"]
        for obj in map(body, part.gone):
            known.pop(obj["metadata"]["uid"], None)
        version = part.version
        if told is not None:
            told.set()
    return sorted(known.values()), version


def event(kind: str, name: str, uid: str, **meta: Any) -> bytes:
    obj: Obj = {"metadata": {"name": name, "namespace": "team", "uid": uid, **meta}}
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


async def test_a_list_is_streamed_as_of_now(server: FakeServer, client: Client) -> None:
    assert await names(client, params={"labelSelector": "x=y"}) == (["a", "b", "c"], "103")
    (seen,) = server.seen
    assert seen.query["resourceVersionMatch"] == "NotOlderThan"
    assert seen.query["labelSelector"] == "x=y"
    assert "resourceVersion" not in seen.query, "only the most recent will do"


async def test_an_empty_collection_ends_too(server: FakeServer, client: Client) -> None:
    server.objects.clear()
    assert await names(client) == ([], "103")


@pytest.mark.parametrize("status", [400, 403, 405, 422, 500])
async def test_a_server_that_refuses_to_stream_is_asked_for_pages_from_then_on(
    server: FakeServer, client: Client, status: int
) -> None:
    server.stream_answers.append(refuse(status))
    assert await names(client, page_size=2) == (["a", "b", "c"], "103")
    assert await names(client, page_size=2) == (["a", "b", "c"], "103")
    assert (len(server.streams_seen()), len(server.lists_seen())) == (1, 4)


async def test_a_server_that_cannot_stream_at_the_moment_is_asked_for_pages_once(
    server: FakeServer, client: Client
) -> None:
    """As for a kind whose CRD has just been made: "storage is (re)initializing"."""
    server.stream_answers.append(refuse(429, "TooManyRequests"))
    assert await names(client) == (["a", "b", "c"], "103")
    assert await names(client) == (["a", "b", "c"], "103")
    assert (len(server.streams_seen()), len(server.lists_seen())) == (2, 1)


async def test_a_collection_that_does_not_exist_is_streamed_once_it_does(
    server: FakeServer, client: Client
) -> None:
    server.stream_answers.append(refuse(404))
    with pytest.raises(errors.NotFound):
        await names(client)
    assert await names(client) == (["a", "b", "c"], "103")
    assert (len(server.streams_seen()), len(server.lists_seen())) == (2, 0)


async def test_a_stream_that_says_nothing_is_given_up_for_pages(
    server: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_SILENCE_SECONDS", 0.1)
    server.stream_answers.append(STALL)
    assert await names(client) == (["a", "b", "c"], "103")
    assert len(server.lists_seen()) == 1


async def silent(response: web.StreamResponse) -> None:
    await asyncio.Event().wait()


async def broken(response: web.StreamResponse) -> None:
    raise ConnectionResetError


async def expired(response: web.StreamResponse) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired"}
    await response.write(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")


async def nonsense(response: web.StreamResponse) -> None:
    await response.write(b"no JSON\n")


async def ends(response: web.StreamResponse) -> None:
    await response.write_eof()


@pytest.mark.parametrize("trouble", [silent, broken, expired, nonsense, ends])
async def test_half_a_streamed_list_is_none_and_the_next_comes_in_pages(
    server: FakeServer, client: Client, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_SILENCE_SECONDS", 0.5 if trouble is silent else 60.0)
    told = asyncio.Event()

    async def then(response: web.StreamResponse) -> None:
        await told.wait()  # what comes before
        await trouble(response)

    server.in_stream = then
    with pytest.raises(errors.ApiError):
        await names(client, told)
    assert not server.lists_seen(), "pages would say nothing of what went in between"
    assert await names(client) == (["a", "b", "c"], "103")
    assert (len(server.streams_seen()), len(server.lists_seen())) == (1, 1)


async def test_what_changes_while_a_list_is_streamed_is_told_in_its_order(
    server: FakeServer, client: Client
) -> None:
    async def changes(response: web.StreamResponse) -> None:
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
        await response.write(
            event("MODIFIED", "a", "uid-1")
            + event("DELETED", "b", "uid-2")
            + event("ADDED", "b", "uid-2-next")
            + orjson.dumps(bookmark)
            + b"\n"
            + event("DELETED", "c", "uid-3")
            + event("ADDED", "c", "uid-3")  # its labels match again
            + event("DELETED", "a", "uid-1")
        )

    server.in_stream = changes
    assert await names(client) == (["b", "c"], "103")


# --- the reflector ---


async def test_a_reflector_goes_on_where_a_streamed_list_ended(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.put(f"{PODS}/b", on_node())
    await stage.handler.until_told("changed b uid-2 n1")
    assert stage.handler.told == ["changed a uid-1 n1", "replaced", "changed b uid-2 n1"]
    assert not stage.server.lists_seen()
    assert stage.server.watches_seen()[0].query["resourceVersion"] == "101"


async def test_what_goes_while_the_first_list_is_streamed_is_gone(stage: Stage) -> None:
    async def goes(response: web.StreamResponse) -> None:
        await response.write(event("DELETED", "a", "uid-1"))

    stage.server.in_stream = goes
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.put(f"{PODS}/b", on_node())
    stage.start()
    await stage.reflector.synced.wait()
    assert list(stage.handler.pods) == ["uid-2"]
    assert len(stage.reflector) == 1


async def test_a_stream_that_breaks_leaves_no_ghosts(stage: Stage) -> None:
    async def breaks(response: web.StreamResponse) -> None:
        stage.server.objects.pop(f"{PODS}/a")  # gone by the time of the next list
        raise ConnectionResetError

    stage.server.in_stream = breaks
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.put(f"{PODS}/b", on_node())
    stage.start()
    await stage.reflector.synced.wait()
    assert list(stage.handler.pods) == ["uid-2"]
    assert len(stage.server.lists_seen()) == 1


async def test_a_later_streamed_list_is_told_when_it_is_complete(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.handler.told.clear()
    told_meanwhile: list[str] = []

    async def look(response: web.StreamResponse) -> None:
        unreadable = event("ADDED", "e", "uid-5").replace(b'"metadata"', b'"spec":7,"metadata"')
        await response.write(
            event("DELETED", "c", "uid-3") + event("ADDED", "d", "uid-4") + unreadable
        )
        await until(lambda: stage.reflector.counts["unreadable"] == 1)  # and what is before it
        told_meanwhile.extend(stage.handler.told)

    stage.server.in_stream = look
    stage.server.watch_answers.append(refuse(410, "Expired"))
    stage.server.cut_watches()
    stage.server.remove(f"{PODS}/a")
    stage.server.put(f"{PODS}/b", on_node())
    stage.server.put(f"{PODS}/c", on_node())
    stage.server.compact()
    await stage.handler.until_told("replaced")
    assert told_meanwhile == []
    assert sorted(stage.handler.pods) == ["uid-2", "uid-4"]


async def test_an_unreadable_object_of_a_streamed_list_stops_nothing(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", {"spec": {"nodeName": 7}})
    stage.server.put(f"{PODS}/b", on_node())
    await stage.start_watching()
    assert list(stage.handler.pods) == ["uid-2"]
    assert stage.reflector.counts["unreadable"] == 1


async def test_pages_that_hold_too_many_bytes_are_asked_for_in_parts(
    server: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.streams = False
    for name in "abcde":
        server.put(f"{PODS}/{name}", on_node() | {"data": "x" * 5000})
    monkeypatch.setattr(transport, "MOST_ANSWER_BYTES", 12_000)
    found, _ = await names(client, page_size=5)
    assert found == [*"abcde"]


async def test_one_object_that_is_larger_than_all_that_is_held_ends_the_list(
    server: FakeServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.streams = False
    server.put(f"{PODS}/a", on_node() | {"data": "x" * 50_000})
    monkeypatch.setattr(transport, "MOST_ANSWER_BYTES", 12_000)
    with pytest.raises(errors.AnswerTooLarge, match="more than"):
        await names(client)


async def test_one_object_that_is_nested_without_end_keeps_no_list_from_being_read(
    server: FakeServer, client: Client
) -> None:
    deep = orjson.Fragment(b"[" * 5000 + b"]" * 5000)
    server.put(f"{PODS}/deep", on_node() | {"deep": deep})
    for server.streams in (True, False):
        client.unstreamed.clear()
        assert (await names(client))[0] == ["a", "b", "c", "deep"]
