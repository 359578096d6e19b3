"""Which trials make up which segment of a sweep, and which segments exist at a time.

A segment has at most 1,000 trials, so no object grows with the sweep: segment k holds the trials
from 1,000 k on. When trials are added to a sweep later, they get segments of their own behind those
that exist, because the number of indexes of one that runs is fixed. The next segment opens when
fewer trials are left than may run at once. Called by the reconciler.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SEGMENT_TRIALS = 1000


@dataclass(frozen=True, slots=True)
class Segment:
    """Trials ``first`` to ``first + size - 1``; ``number`` counts from 0."""

    number: int
    first: int
    size: int

    @property
    def end(self) -> int:
        """One past the last trial."""
        return self.first + self.size

    def trial(self, index: int) -> int:
        """The trial at an index of this segment."""
        if not 0 <= index < self.size:
            raise IndexError(f"segment {self.number} has no index {index}")
        return self.first + index


def following(existing: Sequence[Segment], completions: int) -> Segment | None:
    """The segment that comes behind those that exist; None when all trials are in one."""
    first = existing[-1].end if existing else 0
    if first >= completions:
        return None
    return Segment(len(existing), first, min(SEGMENT_TRIALS, completions - first))


def widths(unfinished: Sequence[int], parallelism: int, placed: Sequence[int] = ()) -> list[int]:
    """How many pods each segment may have, earlier segments first; together ``parallelism``.

    ``placed``: pods of each that have a place, which it keeps before any other gets more.
    """
    kept = []
    for count in placed or [0] * len(unfinished):
        kept.append(min(count, parallelism))
        parallelism -= kept[-1]
    result = []
    for left, least in zip(unfinished, kept, strict=True):
        more = min(max(0, left - least), parallelism)
        result.append(least + more)
        parallelism -= more
    return result
