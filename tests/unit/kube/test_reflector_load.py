"""What a reflector does with objects that make no sense, and with many at once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson
import pytest
from tests.unit.kube.reflector_stage import PODS, Stage, on_node, on_stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as made:
        yield made


async def test_one_object_that_cannot_be_decoded_stops_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {"spec": {"nodeName": 7, "secret": "do-not-log"}}
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.put(f"{PODS}/bad", bad)
    with caplog.at_level(logging.WARNING):
        await stage.start_watching()
        stage.server.put(f"{PODS}/bad2", bad)
        stage.server.put(f"{PODS}/b", on_node())
        await stage.handler.until_told("changed b uid-4 n1")
    assert stage.reflector.counts["unreadable"] == 2
    assert "team/bad " in caplog.text
    assert "team/bad2 " in caplog.text
    assert "do-not-log" not in caplog.text
    assert set(stage.handler.pods) == {"uid-1", "uid-4"}


async def test_an_object_that_becomes_unreadable_is_not_gone(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", {"spec": {"nodeName": 7}})
    stage.server.error_event(PODS, 410, "Expired")
    await stage.handler.changes.until(lambda: stage.handler.told.count("replaced") == 2)
    assert list(stage.handler.pods) == ["uid-1"]
    stage.server.remove(f"{PODS}/a")
    await stage.handler.until_told("gone a uid-1")


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON\n",
        b'{"type":"ADDED","object":{"metadata":7}}\n',
        b'{"type":"DELETED","object":[]}\n',
    ],
    ids=["not JSON", "no metadata", "no object"],
)
async def test_an_event_that_makes_no_sense_is_skipped(stage: Stage, line: bytes) -> None:
    await stage.start_watching()
    await stage.server.send_raw(line)
    stage.server.put(f"{PODS}/a", on_node())
    await stage.handler.until_told("changed a uid-1 n1")
    assert stage.reflector.counts["unreadable"] == 1
    assert len(stage.server.watches_seen()) == 1


async def test_an_object_that_is_nested_without_end_is_told_like_others(stage: Stage) -> None:
    await stage.start_watching()
    deep = b"[" * 5000 + b"]" * 5000
    place = b'"metadata":{"name":"deep","namespace":"team","uid":"uid-deep","resourceVersion":"7"}'
    await stage.server.send_raw(b'{"type":"ADDED","object":{%b,"x":%b}}\n' % (place, deep))
    await stage.handler.until_told("changed deep uid-deep ")
    assert stage.reflector.counts["unreadable"] == 0


async def test_what_is_as_it_was_is_not_held_for_another_list(stage: Stage) -> None:
    decoded = list[bytes]()
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.put(f"{PODS}/b", on_node())
    await stage.start_watching()
    real = stage.reflector._decoder

    class Decoder:
        def decode(self, raw: bytes) -> object:
            decoded.append(bytes(raw))
            return real.decode(raw)

    stage.reflector._decoder = Decoder()  # type: ignore[assignment]
    stage.server.error_event(PODS, 410, "Expired")
    await stage.handler.changes.until(lambda: stage.handler.told.count("replaced") == 2)
    assert set(stage.handler.pods) == {"uid-1", "uid-2"}
    assert decoded == []


class SlowClock:
    """Every look at it, one in 64 objects, takes 30 ms."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.03
        return self.now


async def test_a_burst_lets_other_tasks_run(stage: Stage) -> None:
    await stage.start_watching(clock=SlowClock())
    seen: set[int] = set()

    async def look_on() -> None:
        while len(stage.handler.told) < 1001:
            seen.add(len(stage.handler.told))
            await asyncio.sleep(0)  # noqa: ASYNC110  (turns of the loop are what is counted)

    events = [
        {"type": "ADDED", "object": {"metadata": {"name": f"p{i}", "uid": f"u{i}"}}}
        for i in range(1000)
    ]
    looking = asyncio.create_task(look_on())
    await stage.server.send_raw(b"".join(orjson.dumps(event) + b"\n" for event in events))
    await looking
    assert len(seen - {1}) >= 4, "the burst was worked off in one go"


async def test_a_long_list_lets_other_tasks_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    items = [{"metadata": {"name": f"p{i}", "uid": f"u{i}"}} for i in range(1000)]

    async def get(path: str, type: Any, **_: object) -> Any:
        return msgspec.json.decode(orjson.dumps({"items": items}), type=type)

    monkeypatch.setattr(stage.client, "get", get)
    stage.start(clock=SlowClock())
    while not stage.reflector.synced.is_set():
        turns += 1
        await asyncio.sleep(0)  # noqa: ASYNC110  (turns of the loop are what is counted)
    assert turns >= 5
