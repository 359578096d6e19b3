"""From what was noted and read to figures: pure. Times are seconds unless a name says otherwise."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tests.perf.sharing.figures import percentile

_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Notes:
    """Of one operator.

    Attributes:
        cycles: when each began, its wall and CPU time, and how many pods it placed.
        rings: when the loop came back, and how late it was.
    """

    cycles: Sequence[tuple[float, float, float, int]]
    rings: Sequence[tuple[float, float]]

    def between(self, begin: float, end: float) -> "Notes":
        """Those of a span of time."""
        return Notes(
            [each for each in self.cycles if begin <= each[0] < end],
            [each for each in self.rings if begin <= each[0] < end],
        )

    def beside_planning(self) -> "Notes":
        """Without the rings that a planning cycle made late, wholly or in part."""
        ends = [(began, began + wall) for began, wall, _, _ in self.cycles]
        starts = [began for began, _ in ends]

        def planned(due: float, when: float) -> bool:
            last = bisect_left(starts, when) - 1  # cycles come one after the other
            return last >= 0 and ends[last][1] > due

        rings = [(when, late) for when, late in self.rings if not planned(when - late, when)]
        return Notes(self.cycles, rings)

    def late_within(self, spans: Iterable[tuple[float, float]], after: float) -> list[float]:
        """How late the loop came back in any of these spans, or so shortly after one."""
        return [
            late for begin, end in spans for when, late in self.rings if begin <= when < end + after
        ]


def notes_of(text: str) -> Notes:
    """What ``noted_operator`` wrote; a line that was cut off by its end is left out."""
    cycles, rings = [], []
    for line in text.splitlines(keepends=True):
        kind, *numbers = line.split()
        if not line.endswith("\n"):
            continue
        if kind == "cycle":
            when, wall, cpu, placed = numbers
            cycles.append((float(when), float(wall), float(cpu), int(placed)))
        else:
            when, late = numbers
            rings.append((float(when), float(late)))
    return Notes(cycles, rings)


def milliseconds(values: Sequence[float]) -> dict[str, float]:
    """Mean, p50, p99 and most."""
    return {
        "count": len(values),
        "meanMs": round(1000 * fmean(values), 3) if values else 0.0,
        "p50Ms": round(1000 * percentile(values, 0.5), 3),
        "p99Ms": round(1000 * percentile(values, 0.99), 3),
        "maxMs": round(1000 * max(values, default=0.0), 3),
    }


def lateness(notes: Notes) -> dict[str, float]:
    """How late the loop came back."""
    return milliseconds([late for _, late in notes.rings])


def planning(notes: Notes, seconds: float) -> dict[str, Any]:
    """Of cycles that placed something, and what all of them took of a core."""
    placing = [each for each in notes.cycles if each[3]]
    return {
        "cycles": len(notes.cycles),
        "wall": milliseconds([wall for _, wall, _, _ in placing]),
        "cpu": milliseconds([cpu for _, _, cpu, _ in placing]),
        "percentOfACore": round(100 * sum(each[2] for each in notes.cycles) / seconds, 2),
    }


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Labels and value of each sample of a metric in Prometheus' text."""
    found = []
    for line in text.splitlines():
        if line.startswith(name) and line[len(name) : len(name) + 1] in (" ", "{"):
            labels, _, value = line.rpartition(" ")
            found.append((dict(_LABEL.findall(labels)), float(value)))
    return found


def total(text: str, name: str) -> float:
    """Sum of a metric's samples."""
    return sum(value for _, value in samples(text, name))


def histogram(before: str, after: str, name: str) -> dict[str, float]:
    """Count, mean, and p50 and p99 between the bounds of a histogram, of what came in between."""
    counts = _buckets(after, name)
    for bound, count in _buckets(before, name).items():
        counts[bound] -= count
    count = total(after, f"{name}_count") - total(before, f"{name}_count")
    seconds = total(after, f"{name}_sum") - total(before, f"{name}_sum")
    return {
        "count": count,
        "meanMs": round(1000 * seconds / count, 3) if count else 0.0,
        "p50Ms": round(1000 * _quantile(counts, 0.5), 3),
        "p99Ms": round(1000 * _quantile(counts, 0.99), 3),
    }


def _buckets(text: str, name: str) -> dict[float, float]:
    return {float(labels["le"]): value for labels, value in samples(text, f"{name}_bucket")}


def _quantile(counts: Mapping[float, float], part: float) -> float:
    """As Prometheus' histogram_quantile."""
    ordered = sorted(counts.items())
    if not ordered or not ordered[-1][1]:
        return 0.0
    rank, below, lower = part * ordered[-1][1], 0.0, 0.0
    for bound, count in ordered:
        if count >= rank:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / max(count - below, 1.0)
        below, lower = count, bound
    return lower


def a_minute(amount: float, seconds: float) -> float:
    """So much in so many seconds is, in a minute."""
    return round(60 * amount / seconds, 1)
