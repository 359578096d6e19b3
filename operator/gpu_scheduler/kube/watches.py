"""Which collections cannot be followed at present, since when, and why.

A watch that ends or breaks is opened again at once, and nobody misses it. It is lost from the
moment on that the API server refuses to open it, or to list what it begins with, until it is open
again. Each change is logged once, however often it is tried in between, and so is what ends a watch
early, which may do so every minute.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.failures import LastWords

log = logging.getLogger(__name__)

_MOST_CHARS = 200  # of an answer


def backoff(random: Callable[[], float]) -> Backoff:
    """Between two tries: what is back is followed again within five seconds."""
    return Backoff(0.2, 4.0, random)


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a collection cannot be followed.

    Attributes:
        since: when that began, in monotonic seconds.
        kind: of the error; another one is news.
        why: what the API server said last.
    """

    since: float
    kind: type[Exception]
    why: str


class Watches:
    """Told of every try to follow a collection, by its path."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is followed yet, and nothing is lost; ``clock``: monotonic seconds."""
        self._clock = clock
        self._needed = self._optional = frozenset[str]()
        self._back: Callable[[], object] = lambda: None
        self._followed: set[str] = set()
        self._lost: dict[str, Lost] = {}
        self._breaks: dict[str, LastWords] = {}

    def need(
        self,
        needed: Iterable[str],
        optional: Iterable[str] = (),
        back: Callable[[], object] = lambda: None,
    ) -> None:
        """Say without which collections nothing can be decided.

        Args:
            needed: those.
            optional: need not exist: such a one is lost only if it was there.
            back: called when the last one that was lost is followed again.
        """
        self._needed = frozenset(needed)
        self._optional = frozenset(optional)
        self._back = back

    def followed(self, path: str) -> None:
        """The watch of a collection is open."""
        self._followed.add(path)
        self._found(path)

    def broke(self, path: str, why: object) -> None:
        """The watch of a collection was open, and ended before its time; it is opened again."""
        said = str(why)[:_MOST_CHARS].strip() or type(why).__name__
        if self._breaks.setdefault(path, LastWords(self._clock)).news(said):
            log.warning("watch of %s: %s; it is opened again", path, said)

    def lost(self, path: str, error: Exception) -> None:
        """A collection cannot be listed, or its watch not be opened."""
        if isinstance(error, errors.NotFound) and path in self._optional - self._followed:
            return self._found(path)
        before = self._lost.get(path)
        since = self._clock() if before is None else before.since
        why = str(error)[:_MOST_CHARS].strip() or type(error).__name__
        self._lost[path] = Lost(since, type(error), why)
        if before is None or before.kind is not type(error):
            rest = "; nothing is decided meanwhile" if path in self._needed else ""
            log.warning("watch of %s: %s%s", path, why, rest)
        return None

    def _found(self, path: str) -> None:
        before = self._lost.pop(path, None)
        if before is None:
            return
        log.info("watch of %s: back after %.1f s", path, self._clock() - before.since)
        if path in self._needed and not self.blind():
            self._back()

    def blind(self) -> bool:
        """Whether something is lost without which nothing can be decided."""
        return not self._needed.isdisjoint(self._lost)

    def seconds(self) -> dict[str, float]:
        """For how long each collection has been lost, 0 for those that are followed."""
        now = self._clock()
        lost = {path: now - each.since for path, each in self._lost.items()}
        return dict.fromkeys(sorted(self._followed | lost.keys()), 0.0) | lost

    def missing(self) -> str:
        """What is lost, a line for each; empty if nothing is."""
        now = self._clock()
        return "".join(
            f"watch of {path}: lost for {now - each.since:.0f} s: {each.why}\n"
            for path, each in sorted(self._lost.items())
        )
