import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson
import pytest
from tests.unit.kube.fake_server import STALL, FakeServer, Obj, refuse
from tests.unit.kube.until import Changes

from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.reflector import Reflector

PODS = "/api/v1/namespaces/team/pods"


def on_node(node: str = "n1") -> Obj:
    return {"spec": {"nodeName": node}}


class Recorder:
    """What a sink was told, and the state that follows from it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.pods: dict[str, Pod] = {}
        self.changes = Changes()

    def changed(self, obj: Pod) -> None:
        self.pods[obj.metadata.uid] = obj
        self._note(f"changed {obj.metadata.name} {obj.metadata.uid} {obj.spec.node_name}")

    def gone(self, namespace: str, name: str, uid: str) -> None:
        del self.pods[uid]
        self._note(f"gone {name} {uid}")

    def replaced(self) -> None:
        self._note("replaced")

    def _note(self, text: str) -> None:
        self.told.append(text)
        self.changes.happened()

    async def until_told(self, *texts: str) -> None:
        await self.changes.until(lambda: all(text in self.told for text in texts))


class Stage:
    """A server, a client and a running reflector."""

    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.sink = Recorder()
        self.slept: list[float] = []
        self.reflector: Reflector[Pod]
        self.task: asyncio.Task[None] | None = None

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def start(self, **settings: Any) -> None:
        self.reflector = Reflector(
            self.client, PODS, Pod, self.sink, sleep=self.sleep, random=lambda: 0.0, **settings
        )
        self.task = asyncio.create_task(self.reflector.run())

    async def start_watching(self, **settings: Any) -> None:
        self.start(**settings)
        await self.watching()

    async def watching(self) -> None:
        await self.server.changes.until(lambda: self.server.open_watches > 0)

    async def until_watches(self, number: int) -> None:
        await self.server.changes.until(lambda: len(self.server.watches_seen()) >= number)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with FakeServer() as server, Client(server.connection, random=lambda: 0.0) as client:
        stage = Stage(server, client)
        yield stage
        if stage.task is not None:
            stage.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await stage.task


async def test_a_list_comes_in_pages_and_then_counts_as_one(stage: Stage) -> None:
    for name in "abcde":
        stage.server.put(f"{PODS}/{name}", on_node())
    stage.start(page_size=2)
    await stage.reflector.synced.wait()
    assert stage.sink.told == [
        *(f"changed {name} uid-{i} n1" for i, name in enumerate("abcde", start=1)),
        "replaced",
    ]
    lists = stage.server.lists_seen()
    assert [s.query.get("continue") for s in lists] == [None, "105.2", "105.4"]
    assert all("resourceVersion" not in s.query for s in lists), "only the most recent will do"
    assert len(stage.reflector) == 5


def hold_second_page(server: FakeServer) -> None:
    def hold(token: str) -> None:
        if token:
            server.hold_lists.clear()

    server.in_list = hold


async def test_the_first_list_is_told_page_by_page(stage: Stage) -> None:
    for name in "abc":
        stage.server.put(f"{PODS}/{name}", on_node())
    hold_second_page(stage.server)
    stage.start(page_size=2)
    await stage.server.changes.until(lambda: len(stage.server.seen) == 2)
    assert stage.sink.told == ["changed a uid-1 n1", "changed b uid-2 n1"]
    assert not stage.reflector.synced.is_set()
    stage.server.hold_lists.set()
    await stage.reflector.synced.wait()
    assert stage.sink.told[2:] == ["changed c uid-3 n1", "replaced"]


async def test_a_later_list_is_told_when_it_is_complete(stage: Stage) -> None:
    for name in "abc":
        stage.server.put(f"{PODS}/{name}", on_node())
    await stage.start_watching(page_size=1)
    stage.sink.told.clear()
    hold_second_page(stage.server)
    stage.server.watch_answers.append(refuse(410, "Expired"))
    stage.server.cut_watches()
    stage.server.remove(f"{PODS}/a")
    stage.server.put(f"{PODS}/b", on_node("n2"))
    stage.server.compact()
    lists = len(stage.server.lists_seen())
    await stage.server.changes.until(lambda: len(stage.server.lists_seen()) == lists + 2)
    assert stage.sink.told == []
    stage.server.hold_lists.set()
    await stage.sink.until_told("replaced")
    assert stage.sink.told == ["gone a uid-1", "changed b uid-2 n2", "replaced"]


async def test_an_empty_collection_is_synced_too(stage: Stage) -> None:
    stage.start()
    await stage.sink.until_told("replaced")
    assert stage.reflector.synced.is_set()


async def test_the_watch_starts_where_the_list_ended(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching(params={"labelSelector": "x=y"})
    query = stage.server.watches_seen()[0].query
    assert query["resourceVersion"] == "101"
    assert query["allowWatchBookmarks"] == "true"
    assert query["labelSelector"] == "x=y"
    assert int(query["timeoutSeconds"]) < 70


async def test_changes_are_told_as_they_come(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node("n1"))
    stage.server.put(f"{PODS}/a", on_node("n2"))
    stage.server.remove(f"{PODS}/a")
    await stage.sink.until_told("gone a uid-1")
    assert stage.sink.told == [
        "replaced",
        "changed a uid-1 n1",
        "changed a uid-1 n2",
        "gone a uid-1",
    ]


async def test_a_watch_that_ends_in_time_goes_on_where_it_was(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    stage.server.end_watches()
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "101"
    assert len(stage.server.lists_seen()) == 1
    assert stage.slept == []


async def test_a_bookmark_moves_the_place_to_go_on_from(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.bookmark(PODS)
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.bookmark(PODS)
    await stage.sink.until_told("changed a uid-1 n1")
    stage.server.end_watches()
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "103"


async def test_a_broken_connection_goes_on_without_a_list(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    stage.server.cut_watches()
    stage.server.put(f"{PODS}/b", on_node())
    await stage.sink.until_told("changed b uid-2 n1")
    assert len(stage.server.lists_seen()) == 1
    assert stage.slept == [0.1]


async def test_a_line_cut_in_the_middle_is_not_read(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    await stage.server.send_raw(b'{"type":"ADDED","object":{"metadata":{"name":"half"')
    stage.server.cut_watches()
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "101"
    assert stage.reflector.counts["unreadable"] == 0


async def test_a_line_far_larger_than_a_chunk_is_read(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", {"spec": {"nodeName": "x" * 3_000_000}})
    await stage.sink.changes.until(lambda: len(stage.sink.told) == 2)
    (pod,) = stage.sink.pods.values()
    assert len(pod.spec.node_name) == 3_000_000


async def test_history_lost_before_the_watch_costs_a_list(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    stage.server.put(f"{PODS}/b", on_node())
    await stage.start_watching()
    stage.server.watch_answers.append(refuse(410, "Expired"))
    stage.server.cut_watches()
    stage.server.remove(f"{PODS}/a")
    stage.server.put(f"{PODS}/c", on_node())
    stage.server.compact()
    await stage.sink.until_told("changed c uid-3 n1")
    assert stage.sink.told == [
        "changed a uid-1 n1",
        "changed b uid-2 n1",
        "replaced",
        "gone a uid-1",
        "changed c uid-3 n1",
        "replaced",
    ]


async def test_an_error_event_with_410_costs_a_list(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.error_event(PODS, 410, "Expired")
    await stage.sink.changes.until(lambda: stage.sink.told.count("replaced") == 2)
    assert stage.sink.told.count("changed a uid-1 n1") == 1, "nothing changed, nothing is told"


async def test_another_error_event_goes_on_from_the_same_place(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.error_event(PODS, 500, "InternalError")
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "100"
    assert len(stage.server.lists_seen()) == 1


async def test_error_events_that_do_not_stop_end_in_a_list(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.error_event(PODS, 500, "InternalError")  # again at each watch from 100
    await stage.sink.changes.until(lambda: stage.sink.told.count("replaced") == 2)
    await stage.until_watches(4)
    starts = [s.query["resourceVersion"] for s in stage.server.watches_seen()]
    assert starts == ["100", "100", "100", "101"]
    assert stage.slept == [0.1, 0.2, 0.4]


async def test_a_namesake_made_while_away_is_a_deletion_and_an_addition(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.watch_answers.append(refuse(410, "Expired"))
    stage.server.cut_watches()
    stage.server.remove(f"{PODS}/a")
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("gone a uid-1", "changed a uid-2 n1")
    assert stage.sink.told.index("gone a uid-1") < stage.sink.told.index("changed a uid-2 n1")
    assert list(stage.sink.pods) == ["uid-2"]


async def test_a_page_that_is_too_old_starts_the_list_again(stage: Stage) -> None:
    for name in "abc":
        stage.server.put(f"{PODS}/{name}", on_node())
    compactions = [1]

    def compact_at_second_page(token: str) -> None:
        if token and compactions:
            compactions.pop()
            stage.server.remove(f"{PODS}/a")
            stage.server.compact()

    stage.server.in_list = compact_at_second_page
    stage.start(page_size=2)
    await stage.reflector.synced.wait()
    assert list(stage.sink.pods) == ["uid-2", "uid-3"]
    assert sorted(stage.sink.told[2:]) == ["changed c uid-3 n1", "gone a uid-1", "replaced"]
    assert stage.sink.told[-1] == "replaced"
    assert [s.query.get("continue") for s in stage.server.lists_seen()] == [None, "103.2", None]


async def test_a_silent_connection_is_given_up(stage: Stage) -> None:
    await stage.start_watching(inactivity_seconds=0.1)
    await stage.until_watches(2)
    assert stage.client.requests["WATCH", "timeout"] >= 1
    assert len(stage.server.lists_seen()) == 1


async def test_a_watch_that_gets_no_answer_is_given_up(stage: Stage) -> None:
    stage.server.watch_answers.append(STALL)
    stage.start(inactivity_seconds=0.1)
    await stage.watching()
    assert stage.client.requests["WATCH", "timeout"] == 1


async def test_failures_in_a_row_wait_longer_each_time(stage: Stage) -> None:
    stage.server.watch_answers += [refuse(500)] * 8
    await stage.start_watching()
    assert stage.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    stage.server.cut_watches()
    await stage.watching()
    assert stage.slept[-1] == 0.1, "an event in between starts the count again"


async def test_a_list_that_fails_is_tried_until_it_works(stage: Stage) -> None:
    stage.server.answers += [refuse(403), refuse(404), refuse(400)]
    stage.start()
    await stage.reflector.synced.wait()
    assert len(stage.slept) == 3


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
        await stage.sink.until_told("changed b uid-4 n1")
    assert stage.reflector.counts["unreadable"] == 2
    assert "team/bad " in caplog.text
    assert "team/bad2 " in caplog.text
    assert "do-not-log" not in caplog.text
    assert set(stage.sink.pods) == {"uid-1", "uid-4"}


async def test_an_object_that_becomes_unreadable_is_not_gone(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", {"spec": {"nodeName": 7}})
    stage.server.error_event(PODS, 410, "Expired")
    await stage.sink.changes.until(lambda: stage.sink.told.count("replaced") == 2)
    assert list(stage.sink.pods) == ["uid-1"]
    stage.server.remove(f"{PODS}/a")
    await stage.sink.until_told("gone a uid-1")


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON\n",
        b'{"type":"ADDED","object":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}\n",
        b'{"type":"ADDED","object":{"metadata":7}}\n',
        b'{"type":"DELETED","object":[]}\n',
    ],
    ids=["not JSON", "too deep", "no metadata", "no object"],
)
async def test_an_event_that_makes_no_sense_is_skipped(stage: Stage, line: bytes) -> None:
    await stage.start_watching()
    await stage.server.send_raw(line)
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    assert stage.reflector.counts["unreadable"] == 1
    assert len(stage.server.watches_seen()) == 1


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
        while len(stage.sink.told) < 1001:
            seen.add(len(stage.sink.told))
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


async def test_silence_is_measured(stage: Stage) -> None:
    now = [0.0]
    await stage.start_watching(clock=lambda: now[0])
    now[0] = 30.0
    assert stage.reflector.silence_seconds == 30.0
    stage.server.put(f"{PODS}/a", on_node())
    await stage.sink.until_told("changed a uid-1 n1")
    assert stage.reflector.silence_seconds == 0.0
