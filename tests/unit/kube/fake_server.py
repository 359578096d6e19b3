"""An API server on 127.0.0.1 that keeps objects, lists, watches, and fails when told to."""

import asyncio
import itertools
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import web
from tests.listening import listen, listen_no_more
from tests.unit.kube.until import Changes

from gpu_scheduler.kube.connection import Connection

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do with one request instead of serving it.

    ``after`` serves it first, so the effect happens and the answer is what gets lost or replaced.
    ``path``: to requests for it alone.
    """

    status: int = 200
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    drop: bool = False
    stall: bool = False
    after: bool = False
    path: str = ""


DROP = Answer(drop=True)
DROP_AFTER = Answer(drop=True, after=True)
STALL = Answer(stall=True)


def refuse(status: int, reason: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, reason, named)


@dataclass(slots=True)
class _Watch:
    transport: asyncio.Transport
    response: web.StreamResponse
    ended: bool = False


class FakeServer:
    """Objects by path, one resourceVersion for all, a log of events for watches."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._transports: set[asyncio.Transport] = set()
        self.changes = Changes()
        self.seen: list[RecordedRequest] = []
        self.peers: set[object] = set()
        self.answers: deque[Answer] = deque()
        self.watch_answers: deque[Answer] = deque()
        self.objects: dict[str, Obj] = {}
        self.version = 100
        self.oldest = 0
        self.in_list: Callable[[str], None] = lambda continue_: None
        self.hold_lists = asyncio.Event()
        self.hold_lists.set()
        self.streams = False  # lists, as servers do since 1.34
        self.stream_answers: deque[Answer] = deque()
        self.in_stream: Callable[[web.StreamResponse], Awaitable[None]] | None = None
        self._log: list[tuple[int, str, bytes]] = []
        self._news = asyncio.Event()
        self._watches: list[_Watch] = []
        self._uids = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self._released = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._listening, port = await listen(self._runner, self._tls)
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._released.set()
        self.cut_watches()
        assert self._runner is not None and self._listening is not None
        await listen_no_more(self._listening)
        await self._runner.cleanup()

    @property
    def connection(self) -> Connection:
        return Connection(server=self.url, token="secret-token")

    # -- what a test does --------------------------------------------------------------------

    def put(self, path: str, obj: Obj) -> Obj:
        """Create or change the object at ``path`` (collection/name)."""
        self.version += 1
        kind = "MODIFIED" if path in self.objects else "ADDED"
        namespace = path.split("/namespaces/")[1].split("/")[0] if "/namespaces/" in path else ""
        old = self.objects.get(path, {}).get("metadata", {})
        metadata = {
            "uid": old.get("uid") or f"uid-{next(self._uids)}",
            **obj.get("metadata", {}),
            "name": path.rsplit("/", 1)[1],
            "namespace": namespace,
            "resourceVersion": str(self.version),
        }
        stored = {**obj, "metadata": metadata}
        self.objects[path] = stored
        self._event(kind, path, stored)
        return stored

    def remove(self, path: str) -> None:
        self.version += 1
        gone = self.objects.pop(path)
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._event("DELETED", path, gone)

    def bookmark(self, collection: str) -> None:
        self.version += 1
        self._event(
            "BOOKMARK", f"{collection}/", {"metadata": {"resourceVersion": str(self.version)}}
        )

    def error_event(self, collection: str, code: int, reason: str) -> None:
        """An ERROR event, in every watch that starts from before now."""
        self.version += 1
        self._event("ERROR", f"{collection}/", {"code": code, "reason": reason, "message": "no"})

    def compact(self) -> None:
        """Forget history: watches and continue tokens from before are answered with 410."""
        self.version += 1
        self.oldest = self.version

    def end_watches(self) -> None:
        """End every watch the way a server does when its time is up."""
        for watch in self._watches:
            watch.ended = True
        self._watches = []
        self._news.set()

    async def send_raw(self, data: bytes) -> None:
        """Send bytes to every watch, whole events or not."""
        for watch in self._watches:
            await watch.response.write(data)

    def cut_watches(self) -> None:
        """Break every watch's connection."""
        for watch in self._watches:
            watch.transport.abort()
        self._watches = []
        self._news.set()

    def cut_connections(self) -> None:
        """Break every connection, those of watches too."""
        for transport in self._transports:
            transport.abort()
        self._transports = set()
        self.cut_watches()

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def watches_seen(self) -> list[RecordedRequest]:
        return [
            s
            for s in self.seen
            if s.query.get("watch") == "true" and "sendInitialEvents" not in s.query
        ]

    def streams_seen(self) -> list[RecordedRequest]:
        return [s for s in self.seen if "sendInitialEvents" in s.query]

    def lists_seen(self) -> list[RecordedRequest]:
        return [s for s in self.seen if "limit" in s.query]

    # -- serving -----------------------------------------------------------------------------

    def _event(self, kind: str, path: str, obj: Obj) -> None:
        self._log.append((self.version, path.rsplit("/", 1)[0], _line(kind, obj)))
        self._news.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        query = dict(request.query)
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        self._transports.add(request.transport)
        self.seen.append(
            RecordedRequest(
                request.method,
                request.path,
                query,
                dict(request.headers),
                orjson.loads(body) if body else None,
            )
        )
        self.changes.happened()
        watching = query.get("watch") == "true"
        answers = self.watch_answers if watching else self.answers
        if "sendInitialEvents" in query:
            answers = self.stream_answers
        told = next((each for each in answers if each.path in ("", request.path)), None)
        if told is None:
            return await self._serve(request, query, body, watching)
        answers.remove(told)
        if told.after:
            await self._serve(request, query, body, watching)
        if told.stall:
            await self._released.wait()
        if told.stall or told.drop:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=500)
        content = told.body
        if content is None:
            content = {"kind": "Status", "code": told.status, "reason": told.reason}
            content["message"] = f"told to answer {told.status}"
        text = content if isinstance(content, bytes) else orjson.dumps(content)
        return web.Response(status=told.status, body=text, headers=told.headers)

    async def _serve(
        self, request: web.Request, query: dict[str, str], body: bytes, watching: bool
    ) -> web.StreamResponse:
        path = request.path
        if "sendInitialEvents" in query:
            return await self._stream(request, query)
        if watching:
            return await self._watch(request, query)
        if request.method == "GET":
            if path in self.objects:
                return _json(self.objects[path])
            if "limit" in query:
                return await self._list(path, query)
            return _status(404, "NotFound")
        if request.method == "POST":
            obj = orjson.loads(body)
            target = f"{path}/{obj['metadata']['name']}"
            if target in self.objects:
                return _status(409, "AlreadyExists")
            return _json(self.put(target, obj), 201)
        whole = path.removesuffix("/status")
        if path != whole and path not in self.objects and request.method == "PUT":
            path, body = whole, orjson.dumps({**self.objects.get(whole, {}), **orjson.loads(body)})
        if path not in self.objects:
            return _status(404, "NotFound")
        if request.method == "PUT" and "dryRun" in query:
            return _json(self.objects[path])
        if request.method == "PUT":
            obj = orjson.loads(body)
            sent = obj["metadata"].get("resourceVersion")
            if sent and sent != self.objects[path]["metadata"]["resourceVersion"]:
                return _status(409, "Conflict")
            return _json(self.put(path, obj))
        if request.method == "DELETE":
            self.remove(path)
            return _status(200, "")
        return _json(self.objects[path])

    async def _list(self, path: str, query: dict[str, str]) -> web.Response:
        token = query.get("continue", "")
        self.in_list(token)
        await self.hold_lists.wait()
        version, start = (int(part) for part in token.split(".")) if token else (self.version, 0)
        if version < self.oldest:
            return _status(410, "Expired")
        matching = [o for p, o in sorted(self.objects.items()) if p.rsplit("/", 1)[0] == path]
        end = start + int(query["limit"])
        metadata = {"resourceVersion": str(version)}
        if end < len(matching):
            metadata["continue"] = f"{version}.{end}"
        return _json({"metadata": metadata, "items": matching[start:end]})

    async def _stream(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        asked = {"resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        if not self.streams or not asked.items() <= query.items() or "resourceVersion" in query:
            return _status(422, "Invalid")
        response = web.StreamResponse()
        await response.prepare(request)
        for path, obj in sorted(self.objects.items()):
            if path.rsplit("/", 1)[0] == request.path:
                await response.write(_line("ADDED", obj))
        if self.in_stream is not None:
            await self.in_stream(response)
        meta = {
            "resourceVersion": str(self.version),
            "creationTimestamp": None,
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        await response.write(_line("BOOKMARK", {"kind": "Pod", "metadata": meta}))
        await self._released.wait()
        return response

    async def _watch(self, request: web.Request, query: dict[str, str]) -> web.StreamResponse:
        version = int(query["resourceVersion"])
        if version < self.oldest:
            return _status(410, "Expired")
        response = web.StreamResponse()
        await response.prepare(request)
        transport = request.transport
        assert transport is not None
        watch = _Watch(transport, response)
        self._watches.append(watch)
        self.changes.happened()
        sent = 0
        while not transport.is_closing():
            self._news = news = asyncio.Event() if self._news.is_set() else self._news
            for at, collection, line in self._log[sent:]:
                if at > version and collection == request.path:
                    await response.write(line)
                sent += 1
            if watch.ended:
                return response
            await news.wait()
        return response


def _line(kind: str, obj: Obj) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def _json(content: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(content))


def _status(code: int, reason: str) -> web.Response:
    return _json({"kind": "Status", "code": code, "reason": reason, "message": "no"}, code)
