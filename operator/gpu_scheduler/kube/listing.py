"""Whole collections as they are now: streamed where the server does that, else page by page.

A streamed list is a watch that begins with all objects and says when those have been told (the API
concepts of Kubernetes, "Streaming lists"; on by default since 1.34). Without a resourceVersion both
kinds are consistent reads: at least as new as the moment of the request, so a new leader sees all
that its predecessor has written. A server that refuses to stream is asked for pages at once and
from then on; so is one that is silent before the end (its etcd cannot say how far it is) or whose
stream broke, but by the next request: what was told of half a list says nothing of what is gone.

For those who look once, or now and then; who follows a collection uses a reflector.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.lines import LineSplitter
from gpu_scheduler.kube.nesting import shallow
from gpu_scheduler.kube.objects import ListMeta, Status
from gpu_scheduler.kube.transport import Param

log = logging.getLogger(__name__)

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_PAGE_SECONDS = 30.0
_FEWER = 8  # times fewer objects in a page, where one holds too many bytes
_SILENCE_SECONDS = 5.0  # between two pieces of a streamed list
_STREAM_SECONDS = 60  # for all of it
_END = "k8s.io/initial-events-end"
_STREAMED: Mapping[str, Param] = {
    "watch": True,
    "sendInitialEvents": True,
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": True,
    "timeoutSeconds": _STREAM_SECONDS,
}


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _Page(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _Bookmark(msgspec.Struct, frozen=True, gc=False):
    """What of its metadata matters; others may be null."""

    resource_version: str = msgspec.field(default="", name="resourceVersion")
    annotations: dict[str, str] | None = None


class _Bookmarked(msgspec.Struct, frozen=True, gc=False):
    metadata: _Bookmark = _Bookmark()


_EVENT = msgspec.json.Decoder(WatchEvent)
STATUS = msgspec.json.Decoder(Status)
_BOOKMARK = msgspec.json.Decoder(_Bookmarked)


def event_of(line: bytes) -> WatchEvent:
    """The event that a line of a watch tells, without what is nested deeper than anybody reads.

    Raises:
        DecodeError, UnicodeDecodeError: it makes no sense.
    """
    try:
        return _EVENT.decode(line)
    except RecursionError:
        return _EVENT.decode(shallow(line))


@dataclass(frozen=True, slots=True)
class ListPage:
    """A part of a list, as JSON.

    Attributes:
        objects: that are there; one that was told before is another by now.
        gone: that were told before, and are there no more.
        version: of the whole list, where a watch goes on; told with the last part.
    """

    objects: Sequence[msgspec.Raw]
    gone: Sequence[msgspec.Raw] = ()
    version: str = ""


async def parts(
    client: Client,
    path: str,
    *,
    page_size: int = 500,
    params: Mapping[str, Param] | None = None,
) -> AsyncIterator[ListPage]:
    """All objects of a collection.

    Args:
        client: Where from; it remembers which collections are not streamed.
        path: The collection.
        page_size: Objects in one answer, where they come in pages.
        params: labelSelector and fieldSelector, if any.

    Raises:
        ApiError: not all of it could be had; what was told is to be forgotten.
    """
    if path not in client.unstreamed:
        told = False
        try:
            async for part in _streamed(client, path, params or {}):
                told = True
                yield part
            return
        except errors.NotFound:
            raise  # there would be no pages either, and it may be streamed once it exists
        except errors.TooManyRequests:
            if told:
                raise  # it is busy, or the kind is new to it: pages this once
        except errors.ApiError as error:
            log.info("lists of %s come in pages from now on: %s", path, error)
            client.unstreamed.add(path)
            if told:
                raise
    async for part in _paged(client, path, {**(params or {}), "limit": page_size}):
        yield part


def body(raw: msgspec.Raw) -> dict[str, Any]:
    """An object of a list."""
    found: dict[str, Any] = orjson.loads(memoryview(raw))
    return found


async def _paged(client: Client, path: str, params: dict[str, Param]) -> AsyncIterator[ListPage]:
    while True:
        try:
            page = await client.get(path, _Page, timeout_seconds=_PAGE_SECONDS, **params)
        except errors.AnswerTooLarge:
            if int(params["limit"]) == 1:
                raise
            params["limit"] = max(1, int(params["limit"]) // _FEWER)
            continue
        rest = page.metadata.continue_
        yield ListPage(page.items or (), version="" if rest else page.metadata.resource_version)
        if not rest:
            return
        params["continue"] = rest


async def _streamed(
    client: Client, path: str, params: Mapping[str, Param]
) -> AsyncIterator[ListPage]:
    splitter = LineSplitter()
    told = {**_STREAMED, **params}
    async with client.watch(path, inactivity_seconds=_SILENCE_SECONDS, **told) as chunks:
        async for chunk in chunks:
            for part in _parts_of(path, splitter.feed(chunk)):
                yield part
                if part.version:
                    return
    raise errors.Unavailable(message=f"WATCH {path}: ended before all was told")


def _parts_of(path: str, lines: Iterable[bytes]) -> Iterator[ListPage]:
    """What events tell, in their order: what is gone may come again, by its labels."""
    objects: list[msgspec.Raw] = []
    gone: list[msgspec.Raw] = []
    version = ""
    for line in lines:
        try:
            event = event_of(line)
            if event.type == "ERROR":
                raise errors.from_status(STATUS.decode(event.object))
            if event.type == "BOOKMARK":
                version = _end(_BOOKMARK.decode(event.object).metadata)
        except UNREADABLE:
            raise errors.Unavailable(message=f"WATCH {path}: an event makes no sense") from None
        if version:
            break
        if event.type == "DELETED":
            gone.append(event.object)
        elif event.type != "BOOKMARK":
            if gone:
                yield ListPage(objects, gone)
                objects, gone = [], []
            objects.append(event.object)
    if objects or gone or version:
        yield ListPage(objects, gone, version)


def _end(bookmark: _Bookmark) -> str:
    """The version of the list, if this bookmark is its end."""
    ends = (bookmark.annotations or {}).get(_END) == "true"
    return bookmark.resource_version if ends else ""
