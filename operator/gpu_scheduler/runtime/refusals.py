"""When a GPUJob that was refused is looked at again: ADR 0032.

What refuses it (a ResourceQuota, a LimitRange, labels of its namespace, a policy) may be changed
without a word to us. So one job of each namespace is tried every 30 s, all others ever more seldom,
up to ten minutes; and when any of them gets another answer, all are tried again. Of a namespace at
most ten are tried a second, so those that are refused never keep workers from the others. A change
of the job or of its project counts as never tried. Called by the reconciler.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from gpu_scheduler.core.request import JobKey

FIRST_SECONDS = 30.0
MOST_SECONDS = 600.0
SPACING_SECONDS = 0.1  # between two jobs of a namespace
_DOUBLINGS = 6


@dataclass(slots=True)
class _Refusal:
    about: Hashable  # the object and its project, as they were judged
    message: str
    times: int
    due: float  # on the clock
    in_line: bool = False  # it has its turn at ``due``


class Refusals:
    """Remembers refused jobs by namespace."""

    def __init__(self, clock: Callable[[], float], again: Callable[[JobKey, float], None]) -> None:
        """``again``: ask for a key after so many seconds."""
        self._clock, self._again = clock, again
        self._of: dict[str, dict[JobKey, _Refusal]] = {}
        self._line: dict[str, float] = {}  # namespace -> when its next job may be tried

    def may_try(self, key: JobKey, about: Hashable) -> bool:
        """Whether to judge a job now; if not, its key comes back when it is time.

        Args:
            key: of the job.
            about: the job and its project, as they are now.
        """
        namespace, now = _namespace(key), self._clock()
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

    def refused(self, key: JobKey, about: Hashable, message: str) -> None:
        """A job was judged and refused; its key comes back."""
        namespace = _namespace(key)
        of = self._of.setdefault(namespace, {})
        known = of.get(key)
        same = known is not None and known.about == about
        times = known.times + 1 if known is not None and same else 0
        first = next(iter(of), key) == key
        delay = FIRST_SECONDS if first else _delay(times)
        of[key] = _Refusal(about, message, times, self._clock() + delay)
        self._again(key, delay)
        if known is not None and same and known.message != message:
            self._try_all(namespace, key)

    def settled(self, key: JobKey) -> None:
        """A job was accepted, or is gone: what stood in its way may be out of others' way."""
        namespace = _namespace(key)
        of = self._of.get(namespace, {})
        if of.pop(key, None) is None:
            return
        if of:
            self._try_all(namespace, key)
        else:
            del self._of[namespace]
            self._line.pop(namespace, None)

    def _try_all(self, namespace: str, but: JobKey) -> None:
        now = self._clock()
        for key, refusal in self._of[namespace].items():
            if key != but and not refusal.in_line:
                refusal.times, refusal.due = 0, now
                self._again(key, 0.0)


def _delay(times: int) -> float:
    return float(min(FIRST_SECONDS * 2 ** min(times, _DOUBLINGS), MOST_SECONDS))


def _namespace(key: JobKey) -> str:
    return key.partition("/")[0]
