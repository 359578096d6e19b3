"""kopf itself, on a server that fails in every way: it goes on, and hears of every object."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.unit.kube.fake_server import DROP, STALL, Answer, FakeServer, refuse
from tests.unit.kube.until import Changes

from gpu_scheduler.controllers import handlers, session
from gpu_scheduler.kube import listing
from gpu_scheduler.kube.backoff import Backoff, Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.watches import Watches

GROUP = "/apis/gpu-scheduler.io/v1alpha1"
JOBS = f"{GROUP}/gpujobs"
KINDS = ("gpujobs", "gpuprojects", "gpunodes", "gpuclasses")


def of_each_kind(answer: Answer) -> list[Answer]:
    """None of them is another kind's, which may ask twice before this one asks once."""
    return [replace(answer, path=f"{GROUP}/{kind}") for kind in KINDS]


class Heard:
    """In place of the intake: names of GPUJobs, as they are told."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.changes = Changes()

    def gpujob(self, raw: dict[str, Any]) -> None:
        self.names.append(raw["metadata"]["name"])
        self.changes.happened()

    def gpujob_gone(self, _namespace: str, name: str, _uid: str) -> None:
        self.names.append(f"-{name}")
        self.changes.happened()

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


class Kopf:
    """kopf that listens to a server."""

    def __init__(
        self, server: FakeServer, task: asyncio.Task[None], heard: Heard, lost: Watches
    ) -> None:
        self.server = server
        self.heard, self.lost = heard, lost
        self._task = task

    def put(self, name: str) -> None:
        self.server.put(f"{JOBS}/{name}", {"spec": {}})

    async def hears(self, name: str) -> None:
        """Until it heard of the object; fails at once when kopf has ended."""
        hearing = asyncio.ensure_future(
            self.heard.changes.until(lambda: name in self.heard.names, seconds=20)
        )
        await asyncio.wait({hearing, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        await hearing

    async def watches(self) -> None:
        """Until all kinds are watched, and kopf knows it."""
        await self.server.changes.until(lambda: self.server.open_watches >= len(KINDS))
        await self.heard.changes.until(lambda: not self.lost.missing())


@contextlib.asynccontextmanager
async def listening(
    server: FakeServer, listed: session.Listed | None = None
) -> AsyncIterator[Kopf]:
    """kopf, and a client of ours that lists for it unless told otherwise."""
    heard, ready, stop = Heard(), asyncio.Event(), asyncio.Event()
    async with Client(server.connection, timing=Timing(random=lambda: 0.0)) as client:

        async def lists(path: str) -> str:
            version = ""
            async for part in listing.parts(client, path):
                for raw in part.objects if path == JOBS else ():
                    heard.gpujob(listing.body(raw))
                version = part.version
            return version

        followed = client.watches.followed

        def tell(path: str) -> None:
            followed(path)
            heard.changes.happened()

        client.watches.followed = tell  # type: ignore[method-assign]
        intake: Any = heard
        client.watches.need([f"{GROUP}/{kind}" for kind in KINDS])
        run = handlers.listen(intake, client, ready=ready, stop=stop, listed=listed or lists)
        task = asyncio.create_task(run)
        try:
            yield Kopf(server, task, heard, client.watches)
        finally:
            task.cancel()  # told to stop it would wait for the server's open answers
            await asyncio.wait({task})


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeServer]:
    ours = handlers.settings()
    ours.queueing.exit_timeout = 0.0
    monkeypatch.setattr(handlers, "settings", lambda: ours)
    async with FakeServer() as running:
        yield running


async def test_kopf_hears_of_what_is_there_and_of_what_changes(server: FakeServer) -> None:
    server.put(f"{JOBS}/old", {"spec": {}})
    async with listening(server) as kopf:
        await kopf.hears("old")
        await kopf.watches()
        kopf.put("new")
        await kopf.hears("new")
        server.remove(f"{JOBS}/old")
        await kopf.hears("-old")
    assert {seen.method for seen in server.seen} == {"GET"}


async def test_kopf_watches_our_kinds_and_asks_for_nothing_else(server: FakeServer) -> None:
    """No list of its own, and no look at what is served, which comes too early or too late."""

    async def listed(path: str) -> str:
        return str(server.version)

    async with listening(server, listed) as kopf:
        await kopf.watches()
    assert {seen.path for seen in server.seen} == {f"{GROUP}/{kind}" for kind in KINDS}
    assert len(server.seen) == len(KINDS)


async def test_kopf_watches_from_where_our_list_ended(server: FakeServer) -> None:
    server.put(f"{JOBS}/old", {"spec": {}})
    at, made = str(server.version), asyncio.Event()

    async def listed(path: str) -> str:
        await made.wait()
        return at

    async with listening(server, listed) as kopf:
        kopf.put("since")  # after our list, and before kopf's watch
        server.remove(f"{JOBS}/old")
        made.set()
        await kopf.hears("-old")
        assert kopf.heard.names == ["since", "-old"]
        assert not server.lists_seen()


async def test_a_place_that_is_too_old_costs_a_list_of_ours(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hurry(monkeypatch)
    asked: list[str] = []
    at = str(server.version)
    server.compact()

    async def listed(path: str) -> str:
        asked.append(path)
        return at if asked.count(path) == 1 else str(server.version)

    async with listening(server, listed) as kopf:
        await kopf.watches()
        kopf.put("new")
        await kopf.hears("new")
    assert sorted(asked) == sorted(2 * [f"{GROUP}/{kind}" for kind in KINDS])


@pytest.mark.parametrize(
    "answer",
    [
        refuse(401, "Unauthorized"),
        refuse(403, "Forbidden"),
        refuse(404, "NotFound"),
        refuse(410, "Expired"),
        refuse(429, "TooManyRequests", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        refuse(429, "TooManyRequests", Retry_After="inf"),
        refuse(500, "InternalError"),
        Answer(200, body=b"<html>a proxy</html>"),
        DROP,
    ],
    ids=str,
)
@pytest.mark.parametrize("times", [1, 3])
async def test_no_answer_ends_kopf(
    server: FakeServer, answer: Answer, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hurry(monkeypatch)
    server.put(f"{JOBS}/old", {"spec": {}})
    async with listening(server) as kopf:
        server.answers += [answer] * times
        server.watch_answers += [answer] * times
        await kopf.hears("old")
        await kopf.watches()
        kopf.put("new")
        await kopf.hears("new")


@pytest.mark.parametrize(("code", "reason"), [(410, "Expired"), (500, "InternalError"), (429, "")])
async def test_an_error_in_a_stream_costs_a_list_and_no_more(
    server: FakeServer, code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hurry(monkeypatch)
    async with listening(server) as kopf:
        await kopf.watches()
        server.error_event(JOBS, code, reason)
        kopf.put("new")
        await kopf.hears("new")


async def test_a_stream_of_nonsense_is_read_over(server: FakeServer) -> None:
    async with listening(server) as kopf:
        await kopf.watches()
        await server.send_raw(b"no json\n[1]\n{}\n\xff\xfe\n" + b"[" * 5_000 + b"\n")
        kopf.put("new")
        await kopf.hears("new")


async def test_a_half_open_watch_is_found_by_its_silence(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert session.INACTIVITY_SECONDS <= 70
    assert (handlers.settings().watching.server_timeout or 0) < session.INACTIVITY_SECONDS
    monkeypatch.setattr(session, "INACTIVITY_SECONDS", 0.1)
    server.watch_answers += [*of_each_kind(STALL), STALL]
    async with listening(server) as kopf:
        await kopf.watches()
        kopf.put("new")
        await kopf.hears("new")


async def test_a_kind_that_is_deleted_and_restored_is_listed_and_followed_again(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hurry(monkeypatch)
    async with listening(server) as kopf:
        await kopf.watches()
        refused = len(server.seen)
        server.answers += [refuse(404, "NotFound")] * 30
        server.watch_answers += of_each_kind(refuse(404, "NotFound"))
        server.end_watches()
        await server.changes.until(lambda: len(server.seen) > refused + 20)
        assert kopf.lost.blind()
        assert kopf.lost.missing().count("(404 NotFound)") == len(KINDS)
        server.put(f"{JOBS}/restored", {"spec": {}})
        await kopf.hears("restored")
        await kopf.watches()
        kopf.put("new")
        await kopf.hears("new")


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500])
async def test_a_watch_that_is_refused_is_lost_until_it_is_open_again(
    server: FakeServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hurry(monkeypatch)
    async with listening(server) as kopf:
        await kopf.watches()
        lost: list[str] = []
        tell = kopf.lost.lost

        def note(path: str, error: Exception) -> None:
            lost.append(path)
            tell(path, error)

        monkeypatch.setattr(kopf.lost, "lost", note)
        server.watch_answers += of_each_kind(refuse(status)) * 2
        server.cut_watches()
        await server.changes.until(lambda: not server.watch_answers)
        await kopf.watches()
        assert set(lost) == {f"{GROUP}/{kind}" for kind in KINDS}
        assert kopf.lost.missing() == ""
        kopf.put("new")
        await kopf.hears("new")


async def test_a_refusal_is_waited_out_as_the_server_asks() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with (
        FakeServer() as server,
        Client(server.connection, timing=Timing(random=lambda: 0.0)) as client,
    ):
        stub = session.KopfTransport(client, _never, Timing(sleep=sleep, random=lambda: 0.0))
        server.watch_answers.append(refuse(429, "TooManyRequests", Retry_After="7"))
        url = f"{server.url}{JOBS}?watch=true&resourceVersion=100"
        async with await stub.request("get", url):
            assert slept == [pytest.approx(7.1)]


@pytest.mark.parametrize("status", [404, 410])
async def test_what_is_back_is_watched_as_soon_as_it_is_listed(status: int) -> None:
    """However often it went: one delay, of less than five seconds, and none before the watch."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def listed(path: str) -> str:
        return "100"

    async with FakeServer() as server, Client(server.connection) as client:
        stub = session.KopfTransport(client, listed, Timing(sleep=sleep, random=lambda: 0.999))
        server.watch_answers += [refuse(status)] * 12
        for _ in range(12):
            await stub.request("get", f"{server.url}{JOBS}?limit=500")
            url = f"{server.url}{JOBS}?watch=true&resourceVersion=100"
            async with await stub.request("get", url) as stream:
                async for _chunk in stream.content.iter_chunked(1):
                    pass
        assert len(slept) == 11
        assert slept == sorted(slept)
        assert max(slept) < 4
        await stub.request("get", f"{server.url}{JOBS}?limit=500")
        async with await stub.request("get", f"{server.url}{JOBS}?watch=true&resourceVersion=100"):
            assert client.watches.missing() == ""
        assert len(slept) == 12


async def test_kopf_may_not_write() -> None:
    async with FakeServer() as server, Client(server.connection) as client:
        with pytest.raises(ValueError, match="to read only"):
            await session.KopfTransport(client, _never).request("patch", f"{server.url}{JOBS}/x")
        assert not server.seen


async def _never(path: str) -> str:
    raise AssertionError("nothing is listed here")


def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without its seconds."""
    monkeypatch.setattr(Backoff, "delay_seconds", lambda _self, _attempt: 0.001)
    logging.getLogger("kopf").setLevel(logging.CRITICAL)


async def test_kopf_is_told_nothing_that_nobody_reads() -> None:
    meta = {"name": "x", "uid": "u", "resourceVersion": "7"}
    large = {"template": {"spec": {"foo": [{}] * 100_000}}}
    event = {
        "type": "MODIFIED",
        "object": {"metadata": meta | {"managedFields": ["x"] * 1000}, "spec": large},
    }
    chunk, heard = orjson.dumps(event) + b"\n", list[dict[str, Any]]()

    async def chunks() -> AsyncIterator[bytes]:
        yield chunk

    stack = contextlib.AsyncExitStack()
    async with Client(Connection(server="http://nowhere")) as client:
        asked = session.KopfTransport(client, lambda path: asyncio.sleep(0, ""))
        stream = session._Stream(asked, JOBS, chunks(), stack, lambda: 0.0)
        async for told in stream.iter_chunked(1):
            heard.append(orjson.loads(told))
    (said,) = heard
    assert said["object"].pop("tooLarge").startswith("spec: has ")
    assert said == {"type": "MODIFIED", "object": {"metadata": meta}}
