from collections.abc import AsyncIterator, Callable

import pytest
from tests.unit.kube.fake_server import STALL, Answer, FakeServer, refuse
from tests.unit.kube.reflector_stage import PODS, Stage, on_node, on_stage

from gpu_scheduler.kube.lines import LineSplitter
from gpu_scheduler.kube.unexpected import counts


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with on_stage() as made:
        yield made


async def test_a_list_comes_in_pages_and_then_counts_as_one(stage: Stage) -> None:
    for name in "abcde":
        stage.server.put(f"{PODS}/{name}", on_node())
    stage.start(limit=2)
    await stage.reflector.synced.wait()
    assert stage.handler.told == [
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
    stage.start(limit=2)
    await stage.server.changes.until(lambda: len(stage.server.lists_seen()) == 2)
    assert stage.handler.told == ["changed a uid-1 n1", "changed b uid-2 n1"]
    assert not stage.reflector.synced.is_set()
    stage.server.hold_lists.set()
    await stage.reflector.synced.wait()
    assert stage.handler.told[2:] == ["changed c uid-3 n1", "replaced"]


async def test_a_later_list_is_told_when_it_is_complete(stage: Stage) -> None:
    for name in "abc":
        stage.server.put(f"{PODS}/{name}", on_node())
    await stage.start_watching(limit=1)
    stage.handler.told.clear()
    hold_second_page(stage.server)
    stage.server.watch_answers.append(refuse(410, "Expired"))
    stage.server.cut_watches()
    stage.server.remove(f"{PODS}/a")
    stage.server.put(f"{PODS}/b", on_node("n2"))
    stage.server.compact()
    lists = len(stage.server.lists_seen())
    await stage.server.changes.until(lambda: len(stage.server.lists_seen()) == lists + 2)
    assert stage.handler.told == []
    stage.server.hold_lists.set()
    await stage.handler.until_told("replaced")
    assert stage.handler.told == ["gone a uid-1", "changed b uid-2 n2", "replaced"]


async def test_an_empty_collection_is_synced_too(stage: Stage) -> None:
    stage.start()
    await stage.handler.until_told("replaced")
    assert stage.reflector.synced.is_set()


async def test_the_watch_starts_where_the_list_ended(stage: Stage) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching(label_selector="x=y")
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
    await stage.handler.until_told("gone a uid-1")
    assert stage.handler.told == [
        "replaced",
        "changed a uid-1 n1",
        "changed a uid-1 n2",
        "gone a uid-1",
    ]


async def test_a_watch_that_ends_in_time_goes_on_where_it_was(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.handler.until_told("changed a uid-1 n1")
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
    await stage.handler.until_told("changed a uid-1 n1")
    stage.server.end_watches()
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "103"


async def test_a_bookmark_as_servers_before_1_34_write_it_moves_the_place_too(stage: Stage) -> None:
    await stage.start_watching()
    await stage.server.send_raw(
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":'
        b'{"resourceVersion":"150","creationTimestamp":null},"spec":{"containers":null},"status":{}}}\n'
    )
    stage.server.end_watches()
    await stage.until_watches(2)
    assert stage.reflector.counts["unreadable"] == 0
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "150"


async def test_a_broken_connection_goes_on_without_a_list(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.handler.until_told("changed a uid-1 n1")
    stage.server.cut_watches()
    stage.server.put(f"{PODS}/b", on_node())
    await stage.handler.until_told("changed b uid-2 n1")
    assert len(stage.server.lists_seen()) == 1
    assert stage.slept == [0.1]


async def test_a_line_cut_in_the_middle_is_not_read(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", on_node())
    await stage.handler.until_told("changed a uid-1 n1")
    await stage.server.send_raw(b'{"type":"ADDED","object":{"metadata":{"name":"half"')
    stage.server.cut_watches()
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "101"
    assert stage.reflector.counts["unreadable"] == 0


async def test_a_line_far_larger_than_a_chunk_is_read(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.put(f"{PODS}/a", {"spec": {"nodeName": "x" * 3_000_000}})
    await stage.handler.changes.until(lambda: len(stage.handler.told) == 2)
    (pod,) = stage.handler.pods.values()
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
    await stage.handler.until_told("changed c uid-3 n1")
    assert stage.handler.told == [
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
    await stage.handler.changes.until(lambda: stage.handler.told.count("replaced") == 2)
    assert stage.handler.told.count("changed a uid-1 n1") == 1, "nothing changed, nothing is told"


async def test_another_error_event_goes_on_from_the_same_place(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.error_event(PODS, 500, "InternalError")
    await stage.until_watches(2)
    assert stage.server.watches_seen()[1].query["resourceVersion"] == "100"
    assert len(stage.server.lists_seen()) == 1


async def test_error_events_that_do_not_stop_end_in_a_list(stage: Stage) -> None:
    await stage.start_watching()
    stage.server.error_event(PODS, 500, "InternalError")  # again at each watch from 100
    await stage.handler.changes.until(lambda: stage.handler.told.count("replaced") == 2)
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
    await stage.handler.until_told("gone a uid-1", "changed a uid-2 n1")
    assert stage.handler.told.index("gone a uid-1") < stage.handler.told.index("changed a uid-2 n1")
    assert list(stage.handler.pods) == ["uid-2"]


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
    stage.start(limit=2)
    await stage.reflector.synced.wait()
    assert list(stage.handler.pods) == ["uid-2", "uid-3"]
    assert sorted(stage.handler.told[2:]) == ["changed c uid-3 n1", "gone a uid-1", "replaced"]
    assert stage.handler.told[-1] == "replaced"
    assert [s.query.get("continue") for s in stage.server.lists_seen()] == [None, "103.2", None]


async def test_a_silent_connection_is_given_up(stage: Stage) -> None:
    await stage.start_watching(inactivity_seconds=0.1)
    await stage.until_watches(2)
    assert stage.client.requests["WATCH", "timeout"] >= 1
    assert len(stage.server.lists_seen()) == 1


async def test_a_watch_that_gets_no_answer_is_given_up(stage: Stage) -> None:
    stage.server.watch_answers.append(STALL)
    stage.start(inactivity_seconds=0.5)  # the next one is silent, too: seen before it is given up
    await stage.watching()
    assert stage.client.requests["WATCH", "timeout"] == 1


async def test_failures_in_a_row_wait_longer_each_time(stage: Stage) -> None:
    stage.server.watch_answers += [refuse(500)] * 8
    await stage.start_watching()
    assert stage.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    stage.server.put(f"{PODS}/a", on_node())
    await stage.handler.until_told("changed a uid-1 n1")
    stage.server.cut_watches()
    await stage.watching()
    assert stage.slept[-1] == 0.1, "an event in between starts the count again"


@pytest.mark.parametrize("status", [401, 403, 404, 410, 500])
async def test_a_watch_that_is_refused_is_lost_until_it_is_open_again(
    stage: Stage, status: int
) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.watch_answers += [refuse(status)] * 4
    stage.server.cut_watches()
    await stage.server.changes.until(lambda: not stage.server.watch_answers)
    await stage.watching()
    assert [bool(missed) for missed in stage.missed] == [False] + [True] * 4, "a cut is no loss"
    assert f"({status})" in stage.missed[-1]
    stage.server.put(f"{PODS}/b", on_node())
    await stage.handler.until_told("changed b uid-2 n1")
    assert stage.watches.missing() == ""


@pytest.mark.parametrize("status", [403, 404])
async def test_a_collection_that_was_away_is_listed_where_that_may_have_emptied_it(
    stage: Stage, status: int
) -> None:
    stage.server.put(f"{PODS}/a", on_node())
    await stage.start_watching()
    stage.server.watch_answers += [refuse(status)] * 2
    stage.server.cut_watches()
    await stage.server.changes.until(lambda: not stage.server.watch_answers)
    await stage.watching()
    assert len(stage.server.lists_seen()) == (1 if status == 403 else 3)


async def test_a_list_that_fails_is_tried_until_it_works(stage: Stage) -> None:
    stage.server.answers += [refuse(403), refuse(404), refuse(400)]
    stage.start()
    await stage.reflector.synced.wait()
    assert len(stage.slept) == 3
    assert all(stage.missed)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.1),
        (
            {
                "Date": "Wed, 21 Oct 2015 07:28:00 GMT",
                "Retry-After": "Wed, 21 Oct 2015 07:28:09 GMT",
            },
            9.1,
        ),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:09"}, 0.1),
        ({"Retry-After": "-3"}, 0.1),
        ({"Retry-After": "9" * 5_000}, 60.1),
    ],
)
async def test_a_watch_waits_as_long_as_the_server_asks(
    headers: dict[str, str], seconds: float
) -> None:
    async with on_stage() as stage:
        stage.server.watch_answers.append(Answer(429, "TooManyRequests", headers))
        await stage.start_watching()
        assert stage.slept == [pytest.approx(seconds)]


async def test_a_list_waits_as_long_as_the_server_asks() -> None:
    """More than one request may take: the pages are asked for anew after that time."""
    async with on_stage() as stage:
        stage.server.answers.append(refuse(429, "TooManyRequests", Retry_After="45"))
        await stage.start_watching()
        assert stage.slept == [pytest.approx(45.1)]


async def test_what_nobody_foresaw_costs_a_list_and_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = counts["reflector"]
    async with on_stage() as stage:
        await stage.start_watching()
        monkeypatch.setattr(LineSplitter, "feed", _fails_once(LineSplitter.feed))
        stage.server.put(f"{PODS}/a", on_node())
        await stage.handler.changes.until(lambda: len(stage.handler.pods) == 1)
        assert counts["reflector"] == before + 1
        assert stage.reflector.counts["list"] == 2


def _fails_once(real: Callable[..., list[bytes]]) -> Callable[..., list[bytes]]:
    failed = False

    def feed(*args: object) -> list[bytes]:
        nonlocal failed
        if failed:
            return real(*args)
        failed = True
        raise ValueError("a mistake of ours")

    return feed
