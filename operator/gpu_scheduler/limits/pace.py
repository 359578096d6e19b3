"""So many a second of each namespace, and more at once after a rest: whoever comes has his moment.

The moments of a namespace follow each other in the order in which they were asked for, and each
stays the same until it is used. Beside ``RateLimiter``, which says no, and remembers nobody.
"""

from math import inf


class Pace:
    """Times are monotonic seconds, and are given by the caller."""

    def __init__(self, per_second: float, at_once: int) -> None:
        """``at_once``: how many after a rest."""
        self._seconds = 1.0 / per_second
        self._rest = at_once / per_second
        self._next: dict[str, float] = {}  # by namespace
        self._moments: dict[str, float] = {}  # by key

    def moment(self, namespace: str, key: str, now: float) -> float:
        """From when the key may be worked on."""
        known = self._moments.get(key)
        if known is None:
            known = max(self._next.get(namespace, -inf), now - self._rest)
            self._next[namespace] = known + self._seconds
            self._moments[key] = known
        return known

    def used(self, key: str) -> None:
        """Its moment is over, or nobody needs it."""
        self._moments.pop(key, None)
