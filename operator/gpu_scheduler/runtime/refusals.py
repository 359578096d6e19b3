"""When a GPUJob that was refused is looked at again: ADR 0032.

What refuses it (a LimitRange, labels of its namespace, a policy) may be changed without a word to
us; of ResourceQuotas we hear (``missing``). So each job is tried ever more seldom, up to ten
minutes, but every 30 s one of each namespace, in turn; and when one is accepted, all of its
namespace are tried again. Of a namespace at most ten are tried a second, so refused jobs never keep
workers from others. A change of the job or of its project counts as never tried. Called by the
reconciler, and for jobs whose pods are refused.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.backoff import Backoff

FIRST_SECONDS = 30.0
MOST_SECONDS = 600.0
SPACING_SECONDS = 0.1  # between two jobs of a namespace


@dataclass(slots=True)
class _Refusal:
    about: Hashable  # the object and its project, as they were judged
    times: int
    due: float  # on the clock
    in_line: bool = False  # it has its turn at ``due``


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
        self._clock, self._again = clock, again
        self._first_seconds = first_seconds
        self._backoff = Backoff(first_seconds, MOST_SECONDS)
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

    def refused(self, key: JobKey, about: Hashable) -> None:
        """A job was judged and refused; its key comes back."""
        now, of = self._clock(), self._of.setdefault(_namespace(key), {})
        known = of.pop(key, None)
        times = known.times + 1 if known is not None and known.about == about else 0
        delay = self._backoff.delay_seconds(times)
        of[key] = _Refusal(about, times, now + delay)  # at the end of those whose turn it is
        self._again(key, delay)
        first = next(iter(of))
        if of[first].due > now + self._first_seconds:
            of[first].due = now + self._first_seconds
            self._again(first, self._first_seconds)

    def accepted(self, key: JobKey) -> None:
        """What stood in the way of a job may be out of others' way."""
        if self.forget(key):
            self.changed(_namespace(key))

    def changed(self, namespace: str) -> None:
        """What may refuse the jobs of a namespace is another: all are tried again."""
        now = self._clock()
        for key, refusal in self._of.get(namespace, {}).items():
            if not refusal.in_line:
                refusal.times, refusal.due = 0, now
                self._again(key, 0.0)

    def forget(self, key: JobKey) -> bool:
        """A job is gone, or cannot be judged any more; whether it had been refused."""
        namespace = _namespace(key)
        of = self._of.get(namespace, {})
        if of.pop(key, None) is None:
            return False
        if not of:
            del self._of[namespace]
            self._line.pop(namespace, None)
        return True


def _namespace(key: JobKey) -> str:
    return key.partition("/")[0]
