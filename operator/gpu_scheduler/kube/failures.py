"""Writes that failed, by what they are about: left alone for a while, and said once.

Each time for longer: up to half a minute where the API server could not answer, from half a minute
to ten where it refused, since that is over only when somebody changes something (``errors``). For
loops that find out anew what there is to write, and would else send it again at their own pace.
What is not asked about again is forgotten. ``LastWords`` is for loops that try again at their own
pace anyway, and shall only say it once.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.errors import final
from gpu_scheduler.limits.bounded import digest

K = TypeVar("K", bound=Hashable)

LATER_SECONDS = 30.0
REFUSED_SECONDS, MOST_REFUSED_SECONDS = 30.0, 600.0
QUIET_SECONDS = 600.0  # without it: then the same is news again
_REMEMBERED = 1000  # before those that nobody asks about any more are looked for


@dataclass(slots=True)
class _Failure:
    why: bytes  # a digest: there may be many, and an answer is as long as a policy likes
    final: bool
    times: int
    until: float


class LastWords:
    """What a loop said last: the same is no news, also where it went well in between."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Nothing was said yet; ``clock``: monotonic seconds."""
        self._clock = clock
        self._words: bytes = b""
        self._heard_at = -inf

    def news(self, why: object) -> bool:
        """It failed; whether that is to be said."""
        before, since = self._words, self._clock() - self._heard_at
        self._words = digest(str(why))
        self._heard_at = self._clock()
        return before != self._words or since >= QUIET_SECONDS


class Failures(Generic[K]):
    """What failed of late."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        first_seconds: float = 1.0,
        at_once: int = 0,
    ) -> None:
        """Nothing has failed.

        Args:
            clock: monotonic seconds.
            first_seconds: the first delay where it may pass later.
            at_once: how often in a row that may be tried again before any delay.
        """
        self._clock = clock
        self._at_once = at_once
        self._later = Backoff(first_seconds, max(first_seconds, LATER_SECONDS))
        self._refused = Backoff(REFUSED_SECONDS, MOST_REFUSED_SECONDS)
        self._failures: dict[K, _Failure] = {}
        self._look_at = _REMEMBERED

    def note(self, key: K, error: BaseException) -> bool:
        """It failed; whether that is news, so that it is said once."""
        known, refused, why = self._failures.get(key), final(error), digest(str(error))
        again = known is not None and known.final == refused
        times = known.times + 1 if known is not None and again else 0
        delay = 0.0
        if refused:
            delay = self._refused.delay_seconds(times)
        elif times >= self._at_once:
            delay = self._later.delay_seconds(times - self._at_once)
        until = self._clock() + delay
        self._failures.pop(key, None)
        self._forget_old()
        self._failures[key] = _Failure(why, refused, times, until)
        return known is None or known.why != why

    def left_seconds(self, key: K) -> float:
        """How long it is still to be left alone."""
        known = self._failures.get(key)
        return 0.0 if known is None else max(0.0, known.until - self._clock())

    def may_try(self, key: K) -> bool:
        """Whether it may be tried now."""
        return not self._failures or self.left_seconds(key) <= 0.0

    def over(self, key: K) -> None:
        """It succeeded, or is needed no more."""
        self._failures.pop(key, None)

    def _forget_old(self) -> None:
        if len(self._failures) >= self._look_at:
            since = self._clock() - MOST_REFUSED_SECONDS
            self._failures = {k: f for k, f in self._failures.items() if f.until >= since}
            self._look_at = max(_REMEMBERED, len(self._failures) * 3 // 2)
