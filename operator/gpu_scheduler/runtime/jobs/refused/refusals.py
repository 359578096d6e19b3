"""When a GPUJob that was refused is looked at again: ADR 0032.

What refuses it (a LimitRange, labels of its namespace, a policy) may be changed without a word to
us; of ResourceQuotas we hear (``missing``), and of each pod that one counts. So each job is tried
ever more seldom, up to ten minutes, but every 30 s one of each namespace, in turn; and when one is
accepted, all of its namespace are tried again. Of a namespace at most ten are tried a second, so
refused jobs never keep workers from others. A change of the job or of its project counts as never
tried. On news of what may refuse it a job is tried at once, and again after 1, 2, 4 … 30 s: the API
server itself may take as long to know of a quota that is gone, and a quota changes with each pod
that it counts.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.state.jobs.job import namespace_of

FIRST_SECONDS = 30.0
MOST_SECONDS = 600.0
SPACING_SECONDS = 0.1  # between two jobs of a namespace


@dataclass(slots=True)
class _Refusal:
    about: Hashable  # the object and its project, as they were judged
    times: int
    at: float  # when, on the clock
    due: float
    in_line: bool = False  # it has its turn at ``due``
    heard: bool = False  # of news since then
    hurried: int = 0  # how often it was tried since there were any


class Refusals:
    """Remembers refused jobs by namespace."""

    def __init__(
        self,
        clock: Callable[[], float],
        again: Callable[[JobKey, float], None],
        *,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        """``again``: ask for a key after so many seconds."""
        self._clock = clock
        self._again = again
        self._first_seconds = first_seconds
        self._backoff = Backoff(first_seconds, MOST_SECONDS)
        self._hurry = Backoff(1.0, first_seconds)
        self._of: dict[str, dict[JobKey, _Refusal]] = {}
        self._line: dict[str, float] = {}  # namespace -> when its next job may be tried

    def may_try(self, key: JobKey, about: Hashable) -> bool:
        """Whether to judge a job now; if not, its key comes back when it is time.

        Args:
            key: of the job.
            about: the job and its project, as they are now.
        """
        namespace, now = namespace_of(key), self._clock()
        known = self._of.get(namespace, {}).get(key)
        if known is None or known.about != about:
            return True
        if not known.in_line and known.due <= now:
            known.due = max(now, self._line.get(namespace, now))
            self._line[namespace] = known.due + SPACING_SECONDS
            known.in_line = True
        if known.due <= now:
            return True
        self._again(key, known.due - now)
        return False

    def refused(self, key: JobKey, about: Hashable) -> None:
        """A job was judged and refused; its key comes back."""
        now, of = self._clock(), self._of.setdefault(namespace_of(key), {})
        known = of.pop(key, None)
        if known is None or known.about != about:
            known = _Refusal(about, -1, now, now)
        times, hurried = known.times + 1, known.hurried + 1 if self._hurries(known) else 0
        delay = self._backoff.delay_seconds(times)
        if hurried:
            delay = min(delay, self._hurry.delay_seconds(hurried - 1))
        # At the end of those whose turn it is.
        of[key] = _Refusal(about, times, now, now + delay, hurried=hurried)
        self._again(key, delay)
        first = next(iter(of))
        if of[first].due > now + self._first_seconds:
            of[first].due = now + self._first_seconds
            self._again(first, self._first_seconds)

    def accepted(self, key: JobKey) -> None:
        """What stood in the way of a job may be out of others' way."""
        if self.forget(key):
            self.changed(namespace_of(key))

    def changed(self, namespace: str) -> None:
        """What may refuse the jobs of a namespace is another: all are tried again."""
        now = self._clock()
        for key, refusal in self._of.get(namespace, {}).items():
            count = refusal.hurried
            at = refusal.at + self._hurry.delay_seconds(count - 1) if count else now
            refusal.heard = True
            if not refusal.in_line and at < refusal.due:
                refusal.times = 0
                refusal.due = max(at, now)
                self._again(key, refusal.due - now)

    def waiting(self) -> Iterator[tuple[JobKey, Hashable]]:
        """Those that were refused and are not tried yet, with what was judged of them."""
        for of in self._of.values():
            yield from ((key, refusal.about) for key, refusal in of.items())

    def _hurries(self, known: _Refusal) -> bool:
        """Whether what changed of late may still become known to the API server."""
        going = known.hurried and self._hurry.delay_seconds(known.hurried - 1) < self._first_seconds
        return known.heard or bool(going)

    def forget(self, key: JobKey) -> bool:
        """A job is gone, or cannot be judged any more; whether it had been refused."""
        namespace = namespace_of(key)
        of = self._of.get(namespace, {})
        if of.pop(key, None) is None:
            return False
        if not of:
            del self._of[namespace]
            self._line.pop(namespace, None)
        return True
