"""What a user may see: SubjectAccessReviews, cluster-wide first, then one for each namespace.

What was allowed is believed for a minute at most and asked again before, spread over the time: a
right that is taken away is gone within a minute, whatever happens. Questions are bounded, of one
user and in all, by kind: those never asked before, those that were allowed, those that were not.
Where there are more of the last than their bound has room for, a right that was just given shows
later; a page of that namespace is always asked about at once.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random

import msgspec

from gpu_scheduler.api.names import GROUP
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.paths import ACCESS_REVIEWS
from gpu_scheduler.limits.bounded import Bounded
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity

log = logging.getLogger(__name__)

MOST_SECONDS = 60.0  # a verdict is believed
RENEW_SECONDS = (30.0, 50.0)  # it is asked for again after so long, drawn anew each time
FRESH_SECONDS = 10.0  # of a namespace that somebody asks about just now
WAIT_SECONDS = 3.0  # for what was never asked before
ANSWER_SECONDS = 5.0
AT_ONCE, AT_ONCE_OF_ONE = 8, 4
A_PASS = 16  # questions of a kind, before the next kind's turn
LOOK_SECONDS = 5.0  # between two looks at all namespaces, while some wait for their turn
MOST_BYTES = 16 << 20  # of verdicts
# Questions a second, for long, and at once after a rest.
WIDE, NEW, ALLOWED, REFUSED = "wide", "new", "allowed", "refused"
IN_ALL = {
    WIDE: (50.0, 1000.0),
    NEW: (50.0, 2000.0),
    ALLOWED: (100.0, 2000.0),
    REFUSED: (25.0, 250.0),
}
OF_ONE = {WIDE: (1.0, 20.0), NEW: (20.0, 1000.0), ALLOWED: (20.0, 1000.0), REFUSED: (10.0, 100.0)}
_PAUSE_SECONDS = 0.5

# What is asked, beside namespaces, by the names that no namespace can have.
JOBS, NODES, PROJECTS = "*gpujobs", "*gpunodes", "*gpuprojects"
_WIDE = (JOBS, NODES, PROJECTS)

_AWAY = RefusedAnswer(503, "the API server does not say what you may see; try again", 2)
_LATER = RefusedAnswer(503, "what you may see is still being asked; try again", 1)


class _ReviewStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Monotonic seconds."""

    allowed: bool
    said: float
    renew: float

    def good(self, now: float) -> bool:
        return now < self.said + MOST_SECONDS


@dataclass(slots=True, eq=False)
class _Record:
    """What is known of one user."""

    who: Identity
    verdicts: dict[str, _Verdict] = field(default_factory=dict)
    urgent: dict[str, None] = field(default_factory=dict)  # asked for just now
    task: asyncio.Task[None] | None = None
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    waited: bool = False  # somebody has waited for namespaces that were never asked about
    failed: bool = False  # the last question had no answer
    wanted: float = -inf  # when somebody asked last
    shown: tuple[Visible, float, Iterable[str]] | None = None  # until when, of which namespaces


class Rights:
    """Asks, and remembers."""

    def __init__(
        self,
        client: Client,
        namespaces: Callable[[], frozenset[str]],
        clock: Callable[[], float],
        random: Random | None = None,
    ) -> None:
        """``client``: the operator's; ``namespaces``: those with anything to see."""
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        self._random = random or Random()
        self._records: Bounded[Identity, _Record] = Bounded(MOST_BYTES)
        self._slots = Slots(lambda: AT_ONCE, AT_ONCE_OF_ONE)
        self._bounds_in_all = {kind: RateLimiter[str](*each) for kind, each in IN_ALL.items()}
        self._bounds_of_one = {kind: RateLimiter[Identity](*each) for kind, each in OF_ONE.items()}
        self._failures: Failures[object] = Failures(clock)  # of all, or of a user
        self._down = False  # the last question had no answer
        self._tasks: set[asyncio.Task[None]] = set()
        self.results: Counter[str] = Counter()
        """Reviews by ``allowed``, ``refused``, ``failed``."""

    def close(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()

    async def visible(self, who: Identity, about: Sequence[str] = ()) -> Visible:
        """What a user may see; ``about``: namespaces that the question is about.

        Raises:
            Refusal: nobody knows at the moment.
        """
        record, now, names = self._record(who), self._clock(), self._namespaces()
        record.wanted = now
        for name in about:
            known = record.verdicts.get(name)
            if name in names and (known is None or now - known.said > FRESH_SECONDS):
                record.urgent[name] = None
        if not self._wide_known(record, now) or self._lacks(record, names, now):
            await self._answered(record, names)
        elif self._due(record, names, now):
            self._start(record)
        now = self._clock()
        if not self._wide_known(record, now):
            raise _AWAY if record.failed else _LATER
        if self._may(record, JOBS, now):
            return self._all(record, now)
        if record.failed and self._lacks(record, names, now):
            raise _AWAY
        if any(self._unknown(record, name, now) for name in about if name in names):
            raise _LATER
        return self._some(record, names, now)

    def _record(self, who: Identity) -> _Record:
        record = self._records.get(who)
        if record is None:
            record = _Record(who)
            self._keep(record)
        return record

    def _keep(self, record: _Record) -> None:
        size = 1000 + 200 * len(record.verdicts)
        self._records.put(record.who, record, size)

    def _wide_known(self, record: _Record, now: float) -> bool:
        return not any(self._unknown(record, name, now) for name in _WIDE)

    def _lacks(self, record: _Record, names: frozenset[str], now: float) -> bool:
        """Whether something about namespaces is to be waited for."""
        if self._may(record, JOBS, now):
            return False
        return bool(record.urgent) or any(self._waited_for(record, n, now) for n in names)

    def _waited_for(self, record: _Record, name: str, now: float) -> bool:
        """Never asked, at the first time; or allowed for longer than that is believed."""
        known = record.verdicts.get(name)
        if known is None:
            return not record.waited
        return known.allowed and not known.good(now)

    def _unknown(self, record: _Record, name: str, now: float) -> bool:
        known = record.verdicts.get(name)
        return known is None or not known.good(now)

    def _may(self, record: _Record, name: str, now: float) -> bool:
        known = record.verdicts.get(name)
        return known is not None and known.allowed and known.good(now)

    def _all(self, record: _Record, now: float) -> Visible:
        return Visible(None, self._inventory(record, now))

    def _inventory(self, record: _Record, now: float) -> bool:
        return self._may(record, NODES, now) and self._may(record, PROJECTS, now)

    def _some(self, record: _Record, names: frozenset[str], now: float) -> Visible:
        shown = record.shown
        if shown is not None and now < shown[1] and shown[2] is names:
            return shown[0]
        allowed = frozenset(name for name in names if self._may(record, name, now))
        counting = (record.verdicts[name].said for name in (*allowed, NODES, PROJECTS))
        until = min(counting) + MOST_SECONDS
        found = Visible(allowed, self._inventory(record, now))
        record.shown = found, until, names
        return found

    def _due(self, record: _Record, names: frozenset[str], now: float) -> bool:
        late = partial(self._is_due, record, now=now)
        if record.urgent or any(map(late, _WIDE)):
            return True
        return not self._may(record, JOBS, now) and any(map(late, names))

    async def _answered(self, record: _Record, names: frozenset[str]) -> None:
        """Wait a little for what is not known; those that could not be asked yet come later."""
        task, end = self._start(record), self._clock() + WAIT_SECONDS
        while not task.done() and (left := end - self._clock()) > 0:
            record.progress.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await record.progress.wait()
            now = self._clock()
            if self._wide_known(record, now) and not self._lacks(record, names, now):
                break
        record.waited = self._wide_known(record, self._clock())

    def _start(self, record: _Record) -> asyncio.Task[None]:
        if record.task is None or record.task.done():
            record.task = asyncio.create_task(self._ask_all(record), name="rights")
            self._tasks.add(record.task)
            record.task.add_done_callback(self._tasks.discard)
        return record.task

    async def _ask_all(self, record: _Record) -> None:
        """Until nothing is due, nobody asks any more, or there is no answer."""
        due, looked = dict[str, deque[str]](), -inf
        try:
            while (now := self._clock()) - record.wanted < MOST_SECONDS:
                names = [*filter(partial(self._is_due, record, now=now), _WIDE)]
                if names:
                    due = {WIDE: deque(names)}
                elif self._may(record, JOBS, now):
                    return
                elif not any(due.values()) or now - looked > LOOK_SECONDS or record.urgent:
                    due, looked = self._all_due(record), now
                    if not any(due.values()):
                        return
                batch = [name for kind in due for name in self._with_room(record, kind, due[kind])]
                if self._down:
                    del batch[1:]  # one is enough to learn that it is over
                if batch:
                    answers = await asyncio.gather(*(self._ask(record, name) for name in batch))
                    record.failed = not all(answers)
                    self._keep(record)
                    record.progress.set()
                else:
                    await asyncio.sleep(_PAUSE_SECONDS)
                if record.failed:
                    return
        finally:
            record.urgent.clear()
            record.progress.set()

    def _all_due(self, record: _Record) -> dict[str, deque[str]]:
        """Which namespaces are to be asked about, by kind, the most urgent first."""
        names, now = self._namespaces(), self._clock()
        for gone in record.verdicts.keys() - names - {*_WIDE}:
            del record.verdicts[gone]
        found = {kind: list[str]() for kind in (ALLOWED, NEW, REFUSED)}
        for name in names:
            if name in record.urgent or self._is_due(record, name, now=now):
                known = record.verdicts.get(name)
                kind = NEW if known is None else ALLOWED if known.allowed else REFUSED
                found[kind].append(name)
        urgent, verdicts, who = record.urgent, record.verdicts, record.who
        found[NEW].sort(key=lambda name: (name not in urgent, not _likely(name, who), name))
        for kind in (ALLOWED, REFUSED):
            found[kind].sort(key=lambda name: (name not in urgent, verdicts[name].said))
        record.urgent = {}
        return {kind: deque(each) for kind, each in found.items()}

    def _is_due(self, record: _Record, name: str, *, now: float) -> bool:
        known = record.verdicts.get(name)
        return known is None or known.renew <= now

    def _with_room(self, record: _Record, kind: str, names: deque[str]) -> list[str]:
        """The next ones of a kind, as far as its bounds go."""
        now, found = self._clock(), list[str]()
        whole, own = self._bounds_in_all[kind], self._bounds_of_one[kind]
        while names and len(found) < A_PASS and not whole.is_spent("", now):
            if not own.spend(record.who, now):
                break
            whole.spend("", now)
            found.append(names.popleft())
        return found

    async def _ask(self, record: _Record, name: str) -> bool:
        """Whether there was an answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._slots.of(str(hash(record.who))):
                if not all(map(self._failures.may_try, (ACCESS_REVIEWS, record.who))):
                    return False
                body = _body(record.who, name)
                found = await self._client.create(ACCESS_REVIEWS, body, _Review, retry=False)
        except TimeoutError:
            self.results["failed"] += 1
            return False
        except (errors.ApiError, msgspec.DecodeError) as error:
            self.results["failed"] += 1
            return self._note(record.who, error)
        self._down = False
        for about in (ACCESS_REVIEWS, record.who):
            self._failures.over(about)
        allowed, now = found.status.allowed, self._clock()
        self.results["allowed" if allowed else "refused"] += 1
        record.verdicts[name] = _Verdict(allowed, now, now + self._random.uniform(*RENEW_SECONDS))
        record.shown = None
        return True

    def _note(self, who: Identity, error: Exception) -> bool:
        """False; what an answer says is not told: it may name the user."""
        self._down = True
        if isinstance(error, errors.Refused) and not isinstance(error, errors.Forbidden):
            self._failures.note(who, error)  # it is about this user alone
        elif self._failures.note(ACCESS_REVIEWS, error):
            status = error.status if isinstance(error, errors.ApiError) else 0
            said = status or "not at all"
            log.warning("the dashboard shows nothing: a SubjectAccessReview was answered %s", said)
        return False


def _likely(namespace: str, who: Identity) -> bool:
    """Whether a user's names say that a namespace may be theirs; only which is asked first."""
    return any(namespace in word for word in (who.user, *who.groups))


def _body(who: Identity, name: str) -> dict[str, object]:
    resource = name.removeprefix("*") if name.startswith("*") else "gpujobs"
    attributes = {"verb": "list", "group": GROUP, "resource": resource}
    if not name.startswith("*"):
        attributes["namespace"] = name
    spec: dict[str, object] = {
        "resourceAttributes": attributes,
        "user": who.user,
        "groups": list(who.groups),
    }
    if who.uid:
        spec["uid"] = who.uid
    if who.extra:
        spec["extra"] = {name: list(values) for name, values in who.extra}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": spec,
    }
