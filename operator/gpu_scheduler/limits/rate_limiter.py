"""How often each of many parties may do something: so often a second for long, more for a while.

Parties are remembered for as long as their allowance is not full again; beyond a number of them
those are dropped that are. Used for reports by pod, and for failing requests by source address.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Party = TypeVar("Party", bound=Hashable)


@dataclass(slots=True)
class _Allowance:
    """What is left, as of a time in monotonic seconds."""

    left: float
    at: float


class RateLimiter(Generic[Party]):
    """Times are monotonic seconds, and are given by the caller."""

    def __init__(self, per_second: float, burst: float, forget_above: int = 10_000) -> None:
        """``burst``: how often at once after a rest; ``forget_above``: parties remembered."""
        self._per_second = per_second
        self._burst = burst
        self._forget_above = forget_above
        self._known: dict[Party, _Allowance] = {}

    def __len__(self) -> int:
        """Parties remembered."""
        return len(self._known)

    def spend(self, party: Party, now: float) -> bool:
        """Take one from the allowance; False, and nothing taken, when there is none."""
        known = self._known.get(party)
        if known is None:
            if len(self._known) >= self._forget_above:
                self._forget(now)
            known = self._known[party] = _Allowance(self._burst, now)
        known.left = self._left(known, now)
        known.at = now
        if known.left < 1:
            return False
        known.left -= 1
        return True

    def is_spent(self, party: Party, now: float) -> bool:
        """Whether ``spend`` would be False."""
        known = self._known.get(party)
        return known is not None and self._left(known, now) < 1

    def _left(self, known: _Allowance, now: float) -> float:
        return min(self._burst, known.left + (now - known.at) * self._per_second)

    def _forget(self, now: float) -> None:
        kept = {p: a for p, a in self._known.items() if self._left(a, now) < self._burst}
        # Also a flood of parties that each spent a little must not be remembered in full.
        most = self._forget_above // 2
        if len(kept) > most:
            poorest = sorted(kept, key=lambda p: self._left(kept[p], now))[:most]
            kept = {party: kept[party] for party in poorest}
        self._known = kept
