"""Live views: server-sent events of one question, for half an hour at most.

``GET /api/v1/stream?view=/queue%3Fproject%3Da`` sends the whole view as an event ``view`` whenever
it says something else, once a second at most, and more seldom where all that is streamed would take
more than its part of a core. Who asks, and what they may see, is asked again each time, so a right
or a token that has gone ends it within a minute. The last event, ``end``, says why as JSON:
``status`` and ``error``. Who reads too slowly is dropped: no more than one view waits for anybody.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from aiohttp import web

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import BadQuestionError
from gpu_scheduler.web.bounded import lives_long
from gpu_scheduler.web.dashboard.access import Access, Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.encoded import EncodedViews
from gpu_scheduler.web.dashboard.identities import Identity
from gpu_scheduler.web.dashboard.questions import Question

Source = Callable[[], Awaitable[Picture | None]]
"""Pictures; None: this replica does not lead."""
STANDBY = RefusedAnswer(503, "this replica does not lead; try again", 2)
NOTHING = RefusedAnswer(404, "there is no such thing, or you may not see it")
_OVER = RefusedAnswer(200, "half an hour is over: ask again")
_TOO_MANY = RefusedAnswer(503, "too many pages are open; try again later", 30)
_TOO_MANY_OF_ONE = RefusedAnswer(429, "you have too many pages open; close some", 30)


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What streams may take.

    Attributes:
        streams: at a time.
        streams_of_one: of these, of one user.
        seconds: life of a stream.
        period_seconds: between two views at least.
        heartbeat_seconds: after so long without a view a comment is sent.
        write_seconds: a reader takes what it is sent within this.
        core: part of a core that making views may take for long.
    """

    streams: int = 256
    streams_of_one: int = 16
    seconds: float = 1800.0
    period_seconds: float = 1.0
    heartbeat_seconds: float = 15.0
    write_seconds: float = 10.0
    core: float = 0.2


class _End(msgspec.Struct, frozen=True):
    status: int
    error: str


class Streams:
    """All that are open."""

    def __init__(
        self,
        access: Access,
        views: EncodedViews,
        picture: Source,
        clock: Callable[[], float],
        limits: StreamLimits | None = None,
    ) -> None:
        """None is open; ``clock``: monotonic seconds."""
        self._access = access
        self._views = views
        self._picture = picture
        self._clock = clock
        self._limits = limits or StreamLimits()
        self._of: Counter[Identity] = Counter()
        self._costs: dict[object, list[float]] = {}  # by question and rights: readers, seconds

    def __len__(self) -> int:
        """How many are open."""
        return self._of.total()

    async def answer(
        self, request: web.Request, reader: Reader, question: Question
    ) -> web.StreamResponse:
        """Stream until it ends.

        Raises:
            Refusal: there is no room.
        """
        if len(self) >= self._limits.streams:
            raise _TOO_MANY
        if self._of[reader.who] >= self._limits.streams_of_one:
            raise _TOO_MANY_OF_ONE
        with self._counted(reader.who):
            answer = web.StreamResponse(
                headers={
                    "Content-Type": "text/event-stream",
                    "Cache-Control": "no-store, no-transform",
                    "X-Accel-Buffering": "no",  # else nginx keeps what it should pass on
                }
            )
            await answer.prepare(request)
            lives_long(request)
            try:
                async for event in self._events(reader, question):
                    async with asyncio.timeout(self._limits.write_seconds):
                        await answer.write(event)
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
            answer.force_close()
            return answer

    @contextmanager
    def _counted(self, who: Identity) -> Iterator[None]:
        self._of[who] += 1
        try:
            yield
        finally:
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]

    async def _events(self, reader: Reader, question: Question) -> AsyncIterator[bytes]:
        end = self._clock() + self._limits.seconds
        said, quiet, cost = "", self._clock(), _Cost(self._costs)
        try:
            while True:
                began = self._clock()
                if began >= end:
                    raise _OVER
                picture = await self._picture()
                if picture is None:
                    raise STANDBY
                reader = await self._access.reader(reader.token, reader.source)
                visible = await self._access.visible(reader, question.namespaces)
                view = await self._views.view(picture, question, visible)
                if view is None:
                    raise NOTHING
                cost.counts((question.key, visible), view.seconds)
                now = self._clock()
                if view.etag != said:
                    said, quiet = view.etag, now
                    yield b"event: view\nid: %s\ndata: %s\n\n" % (said.encode(), view.body)
                elif now - quiet >= self._limits.heartbeat_seconds:
                    quiet = now
                    yield b": alive\n\n"
                await asyncio.sleep(max(0.0, began + self._period() - self._clock()))
        except RefusedAnswer as refusal:
            yield _ended(refusal)
        except BadQuestionError as error:
            yield _ended(RefusedAnswer(400, str(error)))
        finally:
            cost.over()

    def _period(self) -> float:
        """Seconds from one view to the next, so that making them leaves the core to others."""
        once = sum(seconds for _, seconds in self._costs.values())
        return min(max(self._limits.period_seconds, once / self._limits.core), 10.0)


class _Cost:
    """What one stream adds to the costs of all: nothing where another has the same view."""

    def __init__(self, costs: dict[object, list[float]]) -> None:
        self._costs = costs
        self._key: object = None

    def counts(self, key: object, seconds: float) -> None:
        if key != self._key:
            self.over()
            self._key = key
            self._costs.setdefault(key, [0, 0.0])[0] += 1
        self._costs[key][1] = seconds

    def over(self) -> None:
        if self._key is None:
            return
        self._costs[self._key][0] -= 1
        if not self._costs[self._key][0]:
            del self._costs[self._key]
        self._key = None


def _ended(refusal: RefusedAnswer) -> bytes:
    said = msgspec.json.encode(_End(refusal.status, refusal.sentence))
    return b"event: end\ndata: %s\n\n" % said
