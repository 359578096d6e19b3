"""Views as they are sent: made once of a picture, for all who ask the same and may see the same.

They are made in one thread beside the event loop, which has the planner's work to do, but for those
that read the state of this moment. ``at`` is no part of what tells two views apart: a page that
shows the same a second later is not sent again.
"""

import asyncio
import gzip
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.rows import View
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.limits.bounded import Bounded
from gpu_scheduler.web.dashboard.questions import Question

MOST_BYTES = 32 << 20  # of the views of one picture
_NO_TIME = b'{"at":0.0,'
_Key = tuple[object, Visible]
_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True)
class Encoded:
    """A view.

    Attributes:
        etag: equal for views that differ in ``at`` alone.
        body: JSON.
        seconds: of the thread's time that it took.
        zipped: the same as gzip, once somebody asked for it.
    """

    etag: str
    body: bytes
    seconds: float
    zipped: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Nothing:
    """There is no such thing, for these readers."""


class EncodedViews:
    """Of the newest picture that was asked about; end it with ``close``."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Nothing is made yet."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dashboard")
        self._picture: Picture | None = None
        self._most_bytes = most_bytes
        self._known: Bounded[_Key, Encoded | _Nothing] = Bounded(most_bytes)
        self._making: dict[_Key, asyncio.Task[Encoded | _Nothing]] = {}

    def close(self) -> None:
        """Make no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def view(self, picture: Picture, question: Question, visible: Visible) -> Encoded | None:
        """What these readers are shown; None: there is no such thing.

        Raises:
            BadQuestionError: the question cannot be understood.
        """
        if picture is not self._picture:
            self._picture = picture
            self._known = Bounded(self._most_bytes)
            self._making = {}
        key = question.key, visible
        found = self._known.get(key)
        if found is None:
            task = self._making.get(key)
            if task is None:
                made = self._make(key, picture, question, visible)
                task = self._making[key] = asyncio.create_task(made)
                task.add_done_callback(_heard)
            # One who goes away must not take it from the others.
            found = await asyncio.shield(task)
        return found if isinstance(found, Encoded) else None

    async def zipped(self, view: Encoded) -> bytes:
        """As gzip, made once."""
        if view.zipped is None:
            loop = asyncio.get_running_loop()
            view.zipped = await loop.run_in_executor(
                self._thread, lambda: gzip.compress(view.body, 1, mtime=0)
            )
        return view.zipped

    async def _make(
        self, key: _Key, picture: Picture, question: Question, visible: Visible
    ) -> Encoded | _Nothing:
        making, known = self._making, self._known  # another picture's may take their place
        try:
            if question.page.live:
                found = _made(picture, question, visible)
            else:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._thread, _made, picture, question, visible)
            size = 2 * len(found.body) if isinstance(found, Encoded) else 0
            known.put(key, found, size + len(repr(question.key)))
            return found
        finally:
            making.pop(key, None)


def _heard(task: asyncio.Task[Encoded | _Nothing]) -> None:
    """Whoever waited for it has been told of its exception, and may have gone."""
    if not task.cancelled():
        task.exception()


def _made(picture: Picture, question: Question, visible: Visible) -> Encoded | _Nothing:
    began = time.thread_time()
    view = question.page.make(picture, visible, question.asked)
    return _Nothing() if view is None else encoded(view, began)


def encoded(view: View, began: float = 0.0) -> Encoded:
    """As JSON; ``began``: the thread's time before it was made."""
    at = getattr(view, "at", None)
    body = _ENCODER.encode(view if at is None else msgspec.structs.replace(view, at=0.0))
    etag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if at is not None:
        assert body.startswith(_NO_TIME), "at is the first field of a view"
        body = b'{"at":%s,%s' % (_ENCODER.encode(at), body[len(_NO_TIME) :])
    return Encoded(etag, body, time.thread_time() - began)
