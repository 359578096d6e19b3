"""What a play cost, and whether promises were kept, in percent and seconds; see ``counting``.

GPU time is milli-GPU times seconds, from ``Workload.counted_from`` on. Of waits and delays all
values are kept, so that figures of several plays can be put together.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

_PARTS = (0.5, 0.95, 0.99)
CLASSES = ("interactive", "high", "normal", "low")
"""Of waits: interactive jobs, and priorities of 70 or more, of 50 to 69, and below."""


@dataclass(slots=True)
class Figures:
    """The figures of one play.

    Attributes:
        used_percent: held by pods, of the capacity.
        useful_percent: that less what was lost, of the capacity: goodput.
        lost_percent: what evicted pods did since they started or last saved it, of what was used.
        ended: pods whose work was done.
        evictions: by reason.
        repeats: how often an index was evicted for the same job twice in a row.
        most_evicted: times, of one index.
        guarantee_delays: of each pod, or gang, that was inside its project's quota with those
            before it in the queue: from then until it started, or was so no longer.
        helpable_delays: of the same, only the time in which evictions could have made room.
        waits: by class and index, all that it waited, restarts included. Of pods that came before
            the last quarter of an hour and that can start on an empty cluster.
        below_shares: by project and window for half of which it waited: what it held less than
            its fair share on average, of the share.
        short_of_shares: by project and window in which it waited: of the same what would fit into
            its share and waits while others hold more than theirs.
    """

    used_percent: float = 0.0
    useful_percent: float = 0.0
    lost_percent: float = 0.0
    ended: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    most_evicted: int = 0
    guarantee_delays: list[float] = field(default_factory=list)
    helpable_delays: list[float] = field(default_factory=list)
    waits: dict[str, dict[str, float]] = field(default_factory=dict)
    below_shares: list[float] = field(default_factory=list)
    short_of_shares: list[float] = field(default_factory=list)

    @property
    def evicted_per_ended(self) -> float:
        """Evictions for each pod that ended."""
        return sum(self.evictions.values()) / self.ended if self.ended else 0.0

    def waits_of(self, name: str) -> list[float]:
        """The waits of a class."""
        return list(self.waits.get(name, {}).values())

    def later_than(self, other: "Figures", name: str) -> list[float]:
        """How much longer each pod of a class waited than in another play of the same work."""
        ours, theirs = self.waits.get(name, {}), other.waits.get(name, {})
        return [wait - theirs[index] for index, wait in ours.items() if index in theirs]

    def to_rows(self) -> dict[str, str]:
        """The figures in words."""
        delays, helpable, at = self.guarantee_delays, self.helpable_delays, percentile
        waits = {
            f"waits, {name}": " / ".join(f"{at(self.waits_of(name), p):.0f}" for p in _PARTS) + " s"
            for name in CLASSES
            if name in self.waits
        }
        first = next(iter(waits), "")
        return {
            "GPU time used": f"{self.used_percent:.1f} %",
            "goodput": f"{self.useful_percent:.1f} %",
            "lost to evictions": f"{self.lost_percent:.2f} %",
            "pods that ended": f"{self.ended:,}",
            "evictions for each": f"{self.evicted_per_ended:.3f}",
            "for one job twice in a row": f"{self.repeats}",
            "most of one pod": f"{self.most_evicted}",
            "guarantees, p50 / p99": f"{at(delays, 0.5):.0f} / {at(delays, 0.99):.0f} s",
            "longest": f"{at(delays, 1.0):.0f} s",
            "where evictions help, p99": f"{at(helpable, 0.99):.0f} s",
            **{f"{k} (p50 / p95 / p99)" if k == first else k: v for k, v in waits.items()},
            "below fair share": f"{mean(self.below_shares):.1f} %",
            "of which others hold": f"{mean(self.short_of_shares):.1f} %",
        }

    def to_json(self) -> dict[str, object]:
        """The figures by the names that scripts use, rounded."""
        spread = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}

        def of(values: Sequence[float]) -> dict[str, float]:
            return {name: round(percentile(values, part), 1) for name, part in spread.items()}

        return {
            "usedPercent": round(self.used_percent, 3),
            "usefulPercent": round(self.useful_percent, 3),
            "lostPercent": round(self.lost_percent, 3),
            "endedPods": self.ended,
            "evictions": {str(reason): count for reason, count in sorted(self.evictions.items())},
            "evictionsPerEndedPod": round(self.evicted_per_ended, 4),
            "repeats": self.repeats,
            "mostEvicted": self.most_evicted,
            "guaranteeDelaySeconds": of(self.guarantee_delays),
            "helpableDelaySeconds": of(self.helpable_delays),
            "waitSeconds": {name: of(self.waits_of(name)) for name in CLASSES},
            "belowSharePercent": round(mean(self.below_shares), 3),
            "shortOfSharePercent": round(mean(self.short_of_shares), 3),
        }


def merged(all_of: Sequence[Figures]) -> Figures:
    """The figures of several plays of equal length together."""
    found, count = Figures(), len(all_of)
    for number, each in enumerate(all_of):
        found.used_percent += each.used_percent / count
        found.useful_percent += each.useful_percent / count
        found.ended += each.ended
        found.evictions += each.evictions
        found.repeats += each.repeats
        found.most_evicted = max(found.most_evicted, each.most_evicted)
        found.guarantee_delays += each.guarantee_delays
        found.helpable_delays += each.helpable_delays
        found.below_shares += each.below_shares
        found.short_of_shares += each.short_of_shares
        for name, waits in each.waits.items():
            mine = found.waits.setdefault(name, {})
            mine |= {f"{number}/{index}": wait for index, wait in waits.items()}
    if found.used_percent:
        found.lost_percent = 100 * (1 - found.useful_percent / found.used_percent)
    return found


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that so large a part of them does not exceed; 0 where there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(0, ceil(part * len(values)) - 1)]


def mean(values: Sequence[float]) -> float:
    """Their mean; 0 where there are none."""
    return sum(values) / len(values) if values else 0.0
