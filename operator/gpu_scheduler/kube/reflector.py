"""Keeps a handler equal to a collection of the API server: LIST once, then WATCH for ever.

The list has no resourceVersion, which means "the most recent": a new leader must see what its
predecessor wrote last, so a list from a lagging cache (resourceVersion=0) will not do. All pages
are of one snapshot; if that gets too old on the way (410), the list starts from scratch. The first
list is told page by page, so that a large collection is never in memory decoded; nobody relies on
a handler before ``synced``. A watch
goes on from the last version heard of (bookmarks move it while nothing else does), and only a 410
costs a new list. An object that cannot be decoded is counted and its key logged, no more. Run by
the runtime, one per kind.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

import msgspec

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import REAL_TIME, Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.lines import LineSplitter
from gpu_scheduler.kube.listing import STATUS, UNREADABLE, event_of, parts
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.store import EventHandler, KubeObject, Store, T
from gpu_scheduler.kube.transport import Param
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.kube.watches import backoff

__all__ = ["KubeObject", "Reflector", "EventHandler"]

logger = logging.getLogger(__name__)

_SLICE_SECONDS = 0.05  # how long other tasks may wait while a burst is worked off
_SLICE_OBJECTS = 64  # how often the clock is read
_STEADY_SECONDS = 5.0  # a watch that lived this long did not fail at once
_ERROR_EVENTS_UNTIL_LIST = 3
_HELD_BYTES = 16 << 20  # of JSON of a list that is told in one go


class _Place(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """What a bookmark, a deletion or an object that cannot be decoded is asked for, and no more.

    The bookmarks of API servers before 1.34 have null for their time of creation.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _MetadataOnly(msgspec.Struct, frozen=True, gc=False):
    metadata: _Place = _Place()


_METADATA = msgspec.json.Decoder(_MetadataOnly)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is listed and watched of a collection, and how: as the API's ``ListOptions``.

    Attributes:
        label_selector: Only these objects; one that stops matching is gone.
        field_selector: The same by fields.
        limit: Objects per page of the list.
        inactivity_seconds: Silence after which a connection counts as dead; the server is asked
            to end each watch, or send a bookmark, before that.
    """

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 500
    inactivity_seconds: float = 70.0

    @property
    def params(self) -> Mapping[str, Param]:
        """The selectors, as a query."""
        said = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: selector for name, selector in said.items() if selector}


ALL = WatchOptions()


class Reflector(Generic[T]):
    """Lists and watches one collection.

    Args:
        client: For the requests; watches do not use its concurrency. Its ``watches`` are told
            whether the collection can be followed.
        path: The collection, for example ``/api/v1/pods``.
        type: The msgspec struct to decode objects as.
        handler: Told of every change.
        options: Which objects of it, and in which portions.
        timing: For what is waited between connections.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        type: type[T],
        handler: EventHandler[T],
        options: WatchOptions = ALL,
        timing: Timing = REAL_TIME,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the first complete list has been told."""
        self.counts: Counter[str] = Counter()
        """Since the start: ``list``, ``watch``, ``event``, ``unreadable``, ``failure``."""
        self._client = client
        self._path = path
        self._decoder = msgspec.json.Decoder(type)
        self._store = Store(handler)
        self._params = options.params
        self._page_size = options.limit
        self._inactivity_seconds = options.inactivity_seconds
        self._clock = timing.clock
        self._sleep = timing.sleep
        self._random = timing.random
        self._backoff = backoff(timing.random)
        self._open = False  # the watch that is tried, or was tried last
        self._version = ""  # where the next watch starts; empty: list first
        self._failures = 0  # in a row
        self._error_events = 0  # in a row
        self._heard_at = timing.clock()
        self._slice_end = 0.0

    def __len__(self) -> int:
        """Objects that the handler knows of."""
        return len(self._store)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            started = self._clock()
            heard = self.counts["event"]
            asked = 0.0  # seconds, by the server
            self._open = False
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                if self.counts["event"] > heard or self._clock() - started >= _STEADY_SECONDS:
                    self._failures = 0
                    continue  # the server ended the watch in time, as it was asked to
                reason: Exception | str = "ended at once"
            except (errors.Gone, errors.BadRequest, errors.NotFound) as error:
                self._version, reason = "", error
            except errors.ApiError as error:
                asked, reason = error.retry_after_seconds or 0.0, error
            except UNREADABLE as error:
                reason = error
            except Exception as error:
                unexpected("reflector", self._path)
                self._version, reason = "", error
            if self.counts["event"] > heard:
                self._failures = 0
            self.counts["failure"] += 1
            delay = asked + self._backoff.delay_seconds(self._failures)
            self._failures += 1
            if self._open or isinstance(reason, str):
                self._client.watches.broke(self._path, reason)
            else:
                self._client.watches.lost(self._path, reason)
            await self._sleep(delay)

    async def _list(self) -> None:
        first, version = not self.synced.is_set(), ""
        objects: dict[str, T] = {}  # by uid, as are the others
        listed: dict[str, Meta] = {}  # beside ``objects``: told or known already, or unreadable
        held = 0  # bytes of JSON that ``objects`` were read from
        async for part in parts(
            self._client, self._path, page_size=self._page_size, params=self._params
        ):
            self._heard_at = self._clock()
            self._slice_end = self._heard_at + _SLICE_SECONDS
            for number, raw in enumerate(part.objects, start=1):
                if not first and (same := self._unchanged(raw)):
                    listed[same.uid] = same
                    continue
                try:
                    obj = self._decoder.decode(raw)
                except UNREADABLE:
                    meta = self._unreadable(raw)
                    if meta is not None:
                        listed[meta.uid] = _key_of(meta)
                else:
                    held += memoryview(raw).nbytes
                    if first or held > _HELD_BYTES:
                        self._store.upsert(obj)
                        listed[obj.metadata.uid] = _key_of(obj.metadata)
                    else:
                        objects[obj.metadata.uid] = obj
                if number % _SLICE_OBJECTS == 0:
                    await self._let_others_run()
            for raw in part.gone:
                meta = self._place(raw)
                if meta is not None:
                    self._store.remove(meta)
                    listed.pop(meta.uid, None)
                    objects.pop(meta.uid, None)
            version = part.version
        self._store.replace(objects.values(), listed.values())
        self._version = version
        self._error_events = 0
        self.counts["list"] += 1
        self.synced.set()

    async def _watch(self) -> None:
        seconds = self._inactivity_seconds * (0.6 + 0.3 * self._random())
        self.counts["watch"] += 1
        splitter = LineSplitter()
        async with self._client.watch(
            self._path,
            inactivity_seconds=self._inactivity_seconds,
            watch=True,
            allowWatchBookmarks=True,
            resourceVersion=self._version,
            timeoutSeconds=max(1, int(seconds)),
            **self._params,
        ) as chunks:
            self._open = True
            self._client.watches.followed(self._path)
            async for chunk in chunks:
                self._heard_at = self._clock()
                self._slice_end = self._heard_at + _SLICE_SECONDS
                for number, line in enumerate(splitter.feed(chunk), start=1):
                    self._handle(line)
                    if number % _SLICE_OBJECTS == 0:
                        await self._let_others_run()

    def _handle(self, line: bytes) -> None:
        try:
            event = event_of(line)
        except UNREADABLE:
            self.counts["unreadable"] += 1
            logger.warning("%s: an event that is not JSON is ignored", self._path)
            return
        kind = event.type
        if kind == "ERROR":
            self._error_events += 1
            if self._error_events >= _ERROR_EVENTS_UNTIL_LIST:
                self._version = ""
            raise errors.from_status(STATUS.decode(event.object))
        self.counts["event"] += 1
        self._error_events = 0
        if kind == "ADDED" or kind == "MODIFIED":
            try:
                obj = self._decoder.decode(event.object)
            except UNREADABLE:
                meta = self._unreadable(event.object)
            else:
                meta = obj.metadata
                self._store.upsert(obj)
        else:  # DELETED, BOOKMARK
            meta = self._place(event.object)
            if meta is not None and kind == "DELETED":
                self._store.remove(meta)
        if meta is not None and meta.resource_version:
            self._version = meta.resource_version

    def _unchanged(self, raw: msgspec.Raw) -> Meta | None:
        """What names an object that the handler has in this very version."""
        try:
            meta = _place_of(raw)
        except UNREADABLE:
            return None
        return meta if self._store.has(meta) else None

    def _place(self, raw: msgspec.Raw) -> Meta | None:
        try:
            return _place_of(raw)
        except UNREADABLE:
            return self._unreadable(raw)

    def _unreadable(self, raw: msgspec.Raw) -> Meta | None:
        self.counts["unreadable"] += 1
        try:
            meta = _place_of(raw)
        except UNREADABLE:
            logger.warning("%s: an object without readable metadata is ignored", self._path)
            return None
        logger.warning(
            "%s: %s/%s cannot be decoded and is ignored", self._path, meta.namespace, meta.name
        )
        return meta

    async def _let_others_run(self) -> None:
        if self._clock() >= self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = self._clock() + _SLICE_SECONDS


def _place_of(raw: msgspec.Raw) -> Meta:
    meta = _METADATA.decode(raw).metadata
    return Meta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def _key_of(meta: Meta) -> Meta:
    """Metadata without labels and annotations."""
    return Meta(name=meta.name, namespace=meta.namespace, uid=meta.uid)
