"""Which trials of a sweep are in one Job: a segment.

A segment has at most 1,000 trials, so no object grows with the sweep: segment k holds the trials
from 1,000 k on. When trials are added to a sweep later, they get segments of their own behind those
that exist, because the number of indexes of one that runs is fixed.
"""

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
