import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.fake_server import DROP, DROP_AFTER, STALL, Answer, FakeServer, refuse
from tests.unit.ports import reserved_port

from gpu_scheduler.kube import backoff, errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Heard
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.objects import Pod

POD = "/api/v1/namespaces/team/pods/a"
PODS = "/api/v1/namespaces/team/pods"
BINDING = f"{POD}/binding"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


class Pace:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 50.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def make_client(server: FakeServer, pace: Pace, **settings: Any) -> Client:
    return Client(
        settings.pop("connection", server.connection),
        timing=backoff.Timing(pace.clock, pace.sleep, lambda: 0.0),
        **settings,
    )


async def test_get_decodes_the_named_type_or_a_dict(server: FakeServer) -> None:
    server.put(POD, {"spec": {"nodeName": "n1"}})
    async with make_client(server, Pace()) as client:
        pod = await client.get(POD, Pod)
        assert (pod.metadata.name, pod.spec.node_name) == ("a", "n1")
        assert (await client.get(POD))["spec"] == {"nodeName": "n1"}


async def test_requests_carry_the_token_and_the_query(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace()) as client:
        await client.get(PODS, limit=5, labelSelector="a=b,c", watch=False)
    seen = server.seen[-1]
    assert seen.headers["Authorization"] == "Bearer secret-token"
    assert seen.query == {"limit": "5", "labelSelector": "a=b,c", "watch": "false"}


async def test_a_create_sends_json_and_the_time_it_has(server: FakeServer) -> None:
    async with make_client(server, Pace(), timeout_seconds=4.0) as client:
        await client.create(PODS, {"metadata": {"name": "a"}}, dry_run=True)
    seen = server.seen[-1]
    assert (seen.method, seen.body) == ("POST", {"metadata": {"name": "a"}})
    assert seen.query == {"dryRun": "All", "timeout": "4.000s"}
    assert seen.headers["Content-Type"] == "application/json"


async def test_a_write_decodes_only_when_asked(server: FakeServer) -> None:
    async with make_client(server, Pace()) as client:
        made = await client.create(PODS, {"metadata": {"name": "a"}}, Pod)
        assert made.metadata.uid == "uid-1"
        assert "PartialObjectMetadata" not in server.seen[-1].headers["Accept"]
        server.answers.append(Answer(body=b"not JSON"))
        await client.merge_patch(POD, {"metadata": {"labels": {"x": "y"}}})
    assert "PartialObjectMetadata" in server.seen[-1].headers["Accept"]


async def test_a_patch_and_an_object_have_their_content_types(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace()) as client:
        await client.merge_patch(POD, b'{"a":1}')
        assert server.seen[-1].headers["Content-Type"] == "application/merge-patch+json"
        assert server.seen[-1].body == {"a": 1}
        await client.replace(POD, {"metadata": {"name": "a"}})
    assert server.seen[-1].headers["Content-Type"] == "application/json"


async def test_delete_sends_its_preconditions(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace()) as client:
        await client.delete(
            POD, uid="u", resource_version="7", propagation="Background", grace_seconds=0
        )
    assert server.seen[-1].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Unprocessable),
        (302, errors.ApiError),
        (501, errors.ServerError),
    ],
)
async def test_a_clear_no_is_raised_at_once(
    server: FakeServer, status: int, kind: type[errors.ApiError]
) -> None:
    pace = Pace()
    server.answers.append(refuse(status, "Because"))
    async with make_client(server, pace) as client:
        with pytest.raises(kind) as caught:
            await client.create(BINDING, {})
        assert client.requests == {("POST", str(status)): 1}
    assert (caught.value.status, caught.value.reason) == (status, "Because")
    assert type(caught.value) is kind
    assert pace.slept == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(server: FakeServer, status: int) -> None:
    pace = Pace()
    server.put(POD, {})
    server.answers += [refuse(status), refuse(status)]
    async with make_client(server, pace) as client:
        await client.merge_patch(POD, {})
        assert client.requests == {("PATCH", str(status)): 2, ("PATCH", "200"): 1}
    assert pace.slept == [0.025, 0.05]


async def test_the_time_left_shrinks_with_every_attempt(server: FakeServer) -> None:
    server.put(POD, {})
    server.answers += [refuse(429, Retry_After="3"), refuse(429, Retry_After="2")]
    async with make_client(server, Pace(), timeout_seconds=8.0) as client:
        await client.merge_patch(POD, {})
    assert [s.query["timeout"] for s in server.seen] == ["8.000s", "4.975s", "2.925s"]


async def test_retry_after_is_waited_for(server: FakeServer) -> None:
    pace = Pace()
    server.put(POD, {})
    server.answers.append(refuse(429, Retry_After="3"))
    async with make_client(server, pace) as client:
        await client.merge_patch(POD, {})
    assert pace.slept == [3.025]


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(server: FakeServer) -> None:
    pace = Pace()
    server.answers.append(refuse(429, Retry_After="30"))
    async with make_client(server, pace) as client:
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.merge_patch(POD, {})
    assert pace.slept == []
    assert caught.value.retry_after_seconds == 30
    assert not caught.value.maybe_applied


async def test_retries_end_at_the_deadline(server: FakeServer) -> None:
    pace = Pace()
    server.answers += [refuse(500)] * 100
    async with make_client(server, pace, timeout_seconds=5.0) as client:
        with pytest.raises(errors.ServerError):
            await client.get(POD)
    assert sum(pace.slept) < 5.0
    assert 4 < len(pace.slept) < 20


async def test_a_caller_can_ask_for_one_attempt(server: FakeServer) -> None:
    server.answers.append(refuse(429))
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.TooManyRequests):
            await client.create(f"{POD}/eviction", {}, retry=False)
    assert len(server.seen) == 1


async def test_a_create_whose_answer_was_lost_ends_in_a_conflict_that_says_so(
    server: FakeServer,
) -> None:
    server.answers.append(DROP_AFTER)
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.Conflict) as caught:
            await client.create(PODS, {"metadata": {"name": "a"}})
        assert client.requests["POST", "broken"] == 1
    assert caught.value.reason == "AlreadyExists"
    assert caught.value.maybe_applied
    assert POD in server.objects


async def test_a_conflict_of_a_first_attempt_was_not_ours(server: FakeServer) -> None:
    server.put(POD, {})
    server.answers.append(refuse(429))
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.Conflict) as caught:
            await client.create(PODS, {"metadata": {"name": "a"}})
    assert caught.value.reason == "AlreadyExists"
    assert not caught.value.maybe_applied


@pytest.mark.parametrize("fault", [DROP, refuse(500), refuse(504)])
async def test_a_write_without_a_clear_no_may_have_been_applied(
    server: FakeServer, fault: Answer
) -> None:
    server.answers.append(fault)
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.ApiError) as caught:
            await client.create(BINDING, {}, retry=False)
    assert caught.value.maybe_applied


async def test_a_read_is_never_maybe_applied(server: FakeServer) -> None:
    server.answers += [DROP] * 50
    async with make_client(server, Pace(), timeout_seconds=1.0) as client:
        with pytest.raises(errors.Unavailable) as caught:
            await client.get(POD)
    assert not caught.value.maybe_applied


async def test_a_refused_connection_is_unavailable_and_was_not_applied() -> None:
    pace = Pace()
    with reserved_port() as port:
        nobody = Connection(server=f"http://127.0.0.1:{port}", token="secret-token")
        async with Client(
            nobody, timing=backoff.Timing(pace.clock, pace.sleep, lambda: 0.0)
        ) as client:
            with pytest.raises(errors.Unavailable, match=f"POST {BINDING}") as caught:
                await client.create(BINDING, {})
    assert not caught.value.maybe_applied
    assert len(pace.slept) > 3


async def test_a_server_that_does_not_answer_is_left_at_the_deadline(server: FakeServer) -> None:
    server.answers.append(STALL)
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.Unavailable, match="no answer within 0.05 s") as caught:
            await client.create(BINDING, {}, timeout_seconds=0.05)
        assert client.requests == {("POST", "timeout"): 1}
    assert caught.value.maybe_applied


async def test_a_closed_fence_sends_nothing(server: FakeServer) -> None:
    async with make_client(server, Pace(), fence=lambda: 0.0) as client:
        with pytest.raises(errors.NotLeader) as caught:
            await client.create(BINDING, {})
        with pytest.raises(errors.NotFound):
            await client.get(POD)
    assert [s.method for s in server.seen] == ["GET"]
    assert not caught.value.maybe_applied


async def test_an_unfenced_write_passes_a_closed_fence(server: FakeServer) -> None:
    async with make_client(server, Pace(), fence=lambda: 0.0) as client:
        await client.create(PODS, {"metadata": {"name": "a"}}, fenced=False)
    assert POD in server.objects


async def test_the_fence_shortens_a_write_and_not_a_read(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace(), fence=lambda: 1.5) as client:
        await client.merge_patch(POD, {})
        await client.get(POD)
    assert [s.query.get("timeout") for s in server.seen] == ["1.500s", None]


async def test_a_write_in_flight_ends_with_the_fence(server: FakeServer) -> None:
    server.answers.append(STALL)
    async with make_client(server, Pace(), fence=lambda: 0.05) as client:
        with pytest.raises(errors.Unavailable, match="within 0.05 s"):
            await client.create(BINDING, {})


async def test_a_fence_that_closes_between_retries_stops_the_write(server: FakeServer) -> None:
    pace = Pace()
    closes_at = pace.now + 9.0

    def fence() -> float:
        # Like the elector's: open until a moment, then shut though time would be left.
        return 12.0 if pace.now < closes_at - 8.99 else 0.0

    server.answers.append(refuse(500))
    async with make_client(server, pace, fence=fence) as client:
        with pytest.raises(errors.NotLeader) as caught:
            await client.create(BINDING, {})
    assert len(server.seen) == 1
    assert caught.value.maybe_applied, "the 500 may have been applied"


async def test_a_fence_that_closes_while_waiting_for_a_slot_stops_the_write(
    server: FakeServer,
) -> None:
    open_for = [5.0]
    server.answers.append(STALL)
    async with make_client(
        server, Pace(), fence=lambda: open_for[0], concurrency=1, timeout_seconds=5.0
    ) as client:
        slow = asyncio.create_task(client.get(POD))
        await server.changes.until(lambda: len(server.seen) == 1)
        waiting = asyncio.create_task(client.create(BINDING, {}))
        await asyncio.sleep(0)
        open_for[0] = 0.0
        slow.cancel()
        with pytest.raises(errors.NotLeader):
            await waiting
    assert [s.method for s in server.seen] == ["GET"]


async def test_no_more_requests_in_flight_than_allowed(server: FakeServer) -> None:
    server.answers += [STALL] * 10
    async with make_client(server, Pace(), concurrency=3, timeout_seconds=5.0) as client:
        tasks = [asyncio.create_task(client.get(POD)) for _ in range(10)]
        await server.changes.until(lambda: len(server.seen) == 3)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(server.seen) == 3
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_connections_are_kept(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace(), concurrency=1) as client:
        for _ in range(5):
            await client.merge_patch(POD, {})
    assert len(server.peers) == 1


async def test_a_rotated_token_is_read_again_after_a_401(
    server: FakeServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    connection = replace(server.connection, token="", token_file=file)
    server.put(POD, {})
    async with make_client(server, Pace(), connection=connection) as client:
        await client.get(POD)
        file.write_text("new")
        server.answers.append(refuse(401))
        await client.get(POD)
    sent = [s.headers["Authorization"] for s in server.seen]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]


async def test_the_same_token_is_not_sent_again_after_a_401(
    server: FakeServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    server.answers += [refuse(401)] * 2
    connection = replace(server.connection, token_file=file)
    async with make_client(server, Pace(), connection=connection) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(POD)
    assert len(server.seen) == 1


async def test_errors_do_not_show_the_token(server: FakeServer) -> None:
    server.answers.append(DROP)
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.Unavailable) as caught:
            await client.create(BINDING, {}, retry=False)
    assert "secret-token" not in repr(caught.value) + str(caught.value)


async def test_a_redirect_is_not_followed(server: FakeServer) -> None:
    server.answers.append(Answer(302, headers={"Location": f"{server.url}/elsewhere"}))
    async with make_client(server, Pace()) as client:
        with pytest.raises(errors.ApiError):
            await client.get(POD)
    assert [s.path for s in server.seen] == [POD]


async def test_it_hears_what_time_the_api_server_has(server: FakeServer) -> None:
    server.put(POD, {})
    async with make_client(server, Pace()) as client:
        assert client.heard == Heard()
        await client.get(POD)
        assert client.heard.at == 50.0
        said = parsedate_to_datetime(client.heard.date)
        assert abs((said - datetime.now(UTC)).total_seconds()) < 600
