"""What was found when somebody looked whether the pods of a job could start: ADR 0064.

Before anybody gives way to a job, what its pods name is looked at. What was found counts for a
while, and for that spec alone: nothing is missing, or nobody gives way until it is there. Off where
nobody looks, as in simulations.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.state.jobs.job import namespace_of

_MOST_CHARS = 300
_TOLD = 30.0  # seconds, in which somebody looks again where that matters
_NOBODY = "nobody gives way to it: "


@dataclass(slots=True)
class _Look:
    about: tuple[str, int]  # uid and generation
    missing: str
    until: float  # monotonic seconds
    over: bool = False  # it is time for another one


class PrerequisiteStore:
    """By job."""

    def __init__(self) -> None:
        """Nobody looks."""
        self.on = False
        self._of: dict[JobKey, _Look] = {}

    def unseen(self, key: JobKey, about: tuple[str, int]) -> bool:
        """Whether nobody may give way to a job before somebody has looked."""
        if not self.on:
            return False
        known = self._of.get(key)
        return known is None or known.about != about or known.over

    def lacks(self, key: JobKey, about: tuple[str, int]) -> bool:
        """Whether something is missing: nobody gives way, and no room is kept."""
        known = self._of.get(key)
        return known is not None and not self.unseen(key, about) and bool(known.missing)

    def note(self, key: JobKey, about: tuple[str, int], missing: str, until: float) -> bool:
        """Somebody looked; ``missing``: what would keep its pods from starting; is that news?"""
        missing = clip(missing, _MOST_CHARS)
        news = self.missing(key) != missing
        self._of[key] = _Look(about, missing, until)
        return news

    def read(self, key: JobKey, about: tuple[str, int], message: str) -> None:
        """What an earlier leader saw, as the job is told: until somebody looks again."""
        _, found, missing = message.partition(f"; {_NOBODY}")
        if found:
            self.note(key, about, missing, 0.0)

    def missing(self, key: JobKey) -> str:
        """What was missing when somebody looked last; empty: nothing."""
        known = self._of.get(key)
        return known.missing if known is not None else ""

    def said(self, key: JobKey) -> str:
        """The same as the end of a sentence about who waits; empty: nothing."""
        missing = self.missing(key)
        return f"; {_NOBODY}{missing}" if missing else ""

    def forget_namespace(self, namespace: str) -> list[JobKey]:
        """What was seen in a namespace counts no more; of which jobs."""
        return self._over(k for k in self._of if namespace_of(k) == namespace)

    def expire(self, now: float) -> list[JobKey]:
        """What was seen long ago counts no more, and later is told no more; of which jobs."""
        untold = [k for k, each in self._of.items() if each.over and each.until + _TOLD <= now]
        for key in untold:
            del self._of[key]
        return untold + self._over(k for k, each in self._of.items() if each.until <= now)

    def next_expiry(self) -> float | None:
        """When the next look counts no more, or is told no more, monotonic seconds."""
        ends = (each.until + (_TOLD if each.over else 0.0) for each in self._of.values())
        return min(ends, default=None)

    def _over(self, keys: Iterable[JobKey]) -> list[JobKey]:
        found = [key for key in keys if not self._of[key].over]
        for key in found:
            self._of[key].over = True
        return found

    def forget(self, gone: Callable[[JobKey], bool]) -> None:
        """Forget jobs that are gone."""
        for key in [key for key in self._of if gone(key)]:
            del self._of[key]
