"""Writing status: only what changed, and for one object at most once per ``seconds``.

The first news of an object is written at once, before what others wait to say, so a verdict is
there after the first planning cycle; what follows is gathered, and whoever waits longest is next.
Minor news, such as another place in the queue, wait for longer, or for other news, and there are
only so many of them a second, however many objects have some. What passes by itself is not written
for some seconds, unless the object has said nothing yet. While placements are on their way few
statuses are written at once. Of projects and classes few ever are: with each job that comes, the
sums of all may be others. One that cannot be written is tried again, ever more seldom. What objects
of a kind have to say, its ``Statuses`` know.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Any, NoReturn, Protocol

from gpu_scheduler.api.condition import StatusBody
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.jobs.write import Write, send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.media_types import MERGE_PATCH
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.pace import Pace
from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.state.jobs.owners import OwnerStore

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_IN_FLIGHT, _OF_ONE = 32, 16  # at once, and of one namespace
_DEAR, _DEAR_OF_ONE = 2, 1  # beside these, of objects that are too large
_YIELDING = 2  # of them while placements are on their way: a GPU that idles costs more than news
_BEGUN, _BEGUN_OF_ONE = 200, 100  # at most: what is begun cannot be overtaken
_AT_A_TIME = 20  # statuses that are worked out before others have their turn: some milliseconds
MINOR_SECONDS = 10.0  # between a write and one that says nothing but minor news
_MINOR = 2  # in a look: 40 a second
_SUMS = 8  # at once, of a kind: 160 a second where the API server has nothing else to do
# Of a namespace: who makes what is wrong by the thousand hears of it in time.
_REFUSED_PER_SECOND, _REFUSED_AT_ONCE = 2.0, 2000
_REST = 10  # times as long as the preparation of a kind took, before the next one


class Statuses(Protocol):
    """What the objects of one kind are to say; ``kind``: its plural.

    What has an answer here is the same of most kinds.
    """

    kind: str

    def touched(self) -> Iterable[str]:
        """Keys of those that may have something to say, since it was last asked."""
        ...

    def minor(self, most: int) -> Iterable[str]:
        """Keys of some that may have minor news to say, those who wait longest first."""
        return ()

    def uid(self, key: str) -> str | None:
        """Of an object; None where nothing is to be written any more. Asked often: it is cheap."""
        ...

    def namespace(self, key: str) -> str:
        """Where an object is; empty: in none, or it is gone. Asked often: it is cheap."""
        return ""

    def is_dear(self, key: str) -> bool:
        """Whether a write costs the API server seconds and gigabytes."""
        return False

    def is_silent(self, key: str) -> bool:
        """Whether its status says nothing yet; such objects go first."""
        return False

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """What says it: ``patch`` is what differs of its status, ``after`` all that it says."""
        ...

    def prepare(self) -> None:
        """Find out once what several of them need to know: their statuses are asked for next."""
        return None

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """The status that an object has, and the one that it should have."""
        ...

    def is_minor(self, key: str, patch: StatusBody) -> bool:
        """Whether nobody needs to know this soon."""
        return False

    def may_last_seconds(self, key: str, patch: StatusBody, after: StatusBody) -> float:
        """For how long it may stay unsaid: in a moment it is another thing, if all goes well.

        ``patch``: what of ``after`` is news; 0: it is written at once.
        """
        return 0.0

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """The API server has it."""
        ...


class StoreStatuses(Statuses):
    """What statuses of the objects in a store have in common."""

    def __init__(self, store: OwnerStore[Any, Any]) -> None:
        self.store = store

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        record = self.store.records.get(key)
        return None if record is None else record.uid

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """See ``Statuses``."""
        path = of_group(GROUP, VERSION, self.kind, name=key, subresource="status")
        return merged(path, uid, patch)

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """See ``Statuses``."""
        self.store.written(key, before, after)


@dataclass(slots=True)
class _Line:
    """Those of a kind that have something to say, the first first."""

    statuses: Statuses
    keys: dict[str, bool] = field(default_factory=dict)
    """Whether it is also their turn to say minor news."""
    later: list[tuple[float, str, bool]] = field(default_factory=list)
    """A heap: from when, in monotonic seconds."""
    again_at: float = 0.0  # monotonic seconds
    begun: int = 0

    def add(self, keys: Iterable[str], *, minor: bool) -> None:
        """These may have something to say."""
        for key in keys:
            self.keys[key] = self.keys.get(key, False) or minor

    def take_back(self, now: float) -> None:
        """Those who have waited long enough have something to say again."""
        while self.later and self.later[0][0] <= now:
            _, key, minor = heappop(self.later)
            self.add([key], minor=minor)


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to another: null for what is no longer there."""
    keys = before.keys() | after.keys()
    return {k: after.get(k) for k in sorted(keys) if before.get(k) != after.get(k)}


def merged(path: str, uid: str, patch: StatusBody) -> Write:
    """What differs of a status, put into the one that an object has; nothing of another uid."""
    return Write("PATCH", path, {"metadata": {"uid": uid}, "status": patch}, MERGE_PATCH)


class StatusWriter:
    """Keeps the status of our objects."""

    def __init__(
        self,
        client: Client,
        kinds: Sequence[Statuses],
        *,
        seconds: float,
        clock: Callable[[], float],
        hurried: Callable[[], bool] = lambda: False,
    ) -> None:
        """``clock`` tells when to write, in monotonic seconds.

        ``hurried``: whether others write what is urgent now.
        """
        self._client = client
        self._interval = seconds
        self._clock = clock
        self._lines = [_Line(each) for each in kinds]
        self._written: dict[str, float] = {}  # uid -> when; the oldest first
        self._failures: Failures[str] = Failures(clock)  # by uid
        self._transient: dict[str, float] = {}  # uid -> since when
        self._busy: set[str] = set()  # uids
        self._begun: Counter[str] = Counter()  # by namespace
        self._refused = Pace(_REFUSED_PER_SECOND, _REFUSED_AT_ONCE)
        self._slots = Slots(lambda: _YIELDING if hurried() else _IN_FLIGHT, _OF_ONE)
        self._dear = Slots(lambda: _DEAR, _DEAR_OF_ONE)

    async def run(self) -> NoReturn:
        """Write for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(_TICK_SECONDS)
                for line in self._lines:
                    for number, (key, minor) in enumerate(self._take(line), 1):
                        group.create_task(self._once(line, key, minor))
                        if number % _AT_A_TIME == 0:
                            await asyncio.sleep(0)
        raise AssertionError("the loop does not end")

    def _take(self, line: _Line) -> list[tuple[str, bool]]:
        """Those whose turn it is, and whether for minor news, too; they wait in line no more."""
        due: list[tuple[str, bool]] = []
        now = self._clock()
        try:
            due += self._due(line, now)
            if due:
                started = self._clock()
                line.statuses.prepare()
                line.again_at = self._clock() + _REST * (self._clock() - started)
        except Exception:
            unexpected("status", f"a look at all {line.statuses.kind}")
            line.again_at = now + self._interval
            line.keys |= dict(due)
            return []
        return due

    def _due(self, line: _Line, now: float) -> Iterable[tuple[str, bool]]:
        touched = line.statuses.touched()
        first = [key for key in touched if line.statuses.is_silent(key)]
        line.add(touched, minor=False)
        line.add(line.statuses.minor(_MINOR), minor=True)
        line.take_back(now)
        room = _BEGUN - len(self._busy) if now >= line.again_at else 0
        begun = Counter(self._begun)
        if isinstance(line.statuses, StoreStatuses):
            room = min(room, _SUMS - line.begun)
        for key in (*first, *line.keys):
            if room <= 0:
                return
            namespace = line.statuses.namespace(key)
            if begun[namespace] >= _BEGUN_OF_ONE:
                continue
            uid = line.statuses.uid(key)
            if uid is None:
                line.keys.pop(key, None)
            elif key in line.keys and uid not in self._busy and self._may_write(uid):
                begun[namespace] += 1
                room -= 1
                yield key, line.keys.pop(key)

    def _may_write(self, uid: str) -> bool:
        written = self._written.get(uid)
        if written is not None and self._clock() - written < self._interval:
            return False
        return self._failures.may_try(uid)

    def _minor_from(self, uid: str) -> float:
        return self._written.get(uid, -inf) + MINOR_SECONDS

    def _note_write(self, uid: str) -> None:
        now = self._clock()
        self._written.pop(uid, None)
        self._written[uid] = now
        kept = max(self._interval, MINOR_SECONDS)
        while now - self._written[oldest := next(iter(self._written))] >= kept:
            del self._written[oldest]

    async def _once(self, line: _Line, key: str, minor: bool) -> None:
        uid = line.statuses.uid(key)
        if uid is None:
            return
        namespace = line.statuses.namespace(key)
        self._busy.add(uid)
        self._begun[namespace] += 1
        line.begun += 1
        try:
            slots = self._dear if line.statuses.is_dear(key) else self._slots
            async with slots.of(namespace):
                await self._write(line, key, uid, minor)
        except errors.NotLeader:
            raise
        except Exception:  # a mistake of ours about one object must not stop all others
            unexpected("status", key)
        finally:
            self._busy.discard(uid)
            self._begun[namespace] -= 1
            if not self._begun[namespace]:
                del self._begun[namespace]
            line.begun -= 1

    async def _write(self, line: _Line, key: str, uid: str, minor: bool) -> None:
        statuses = line.statuses
        if statuses.uid(key) != uid:
            self._transient.pop(uid, None)
            self._refused.used(uid)
            return
        before, after = statuses.status(key)
        patch = difference(before, after)
        if not patch:
            self._transient.pop(uid, None)  # it has passed
            return
        at = -inf
        if may_last := statuses.may_last_seconds(key, patch, after):
            at = self._transient.setdefault(uid, self._clock()) + may_last
        else:
            self._transient.pop(uid, None)
        if statuses.is_minor(key, patch):
            if not minor:
                return  # each has its turn, or else a write of one would make the next one due
            at = self._minor_from(uid)
        if (namespace := statuses.namespace(key)) and after.get("reason") == Reason.INVALID:
            at = max(at, self._refused.moment(namespace, uid, self._clock()))
        if self._clock() < at:
            return heappush(line.later, (at, key, minor))
        self._note_write(uid)
        self._transient.pop(uid, None)  # what follows has its own time
        self._refused.used(uid)
        if not await self._send(uid, statuses.write(key, uid, patch, after)):
            line.add([key], minor=minor)
        elif statuses.uid(key) == uid:  # and not another one of its name
            statuses.written(key, before, after)

    async def _send(self, uid: str, write: Write) -> bool:
        """Whether it is done: written, or another object has the name now."""
        try:
            await send(self._client, write)
        except errors.NotLeader:
            raise
        except errors.NotFound as error:
            self._failures.note(uid, error)  # it is gone, which the watch tells, or was not to be
            return False  # found for a moment
        except errors.ApiError as error:
            if not errors.another_object(error):
                if self._failures.note(uid, error):
                    log.warning("status at %s not written: %s", write.path, error)
                return False
        self._failures.over(uid)
        return True
