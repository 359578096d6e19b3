"""Times of many jobs as figures: pure.

Called by the scenes of ``queues`` and by its report.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from tests.perf.queue_watch import Span

Json = Mapping[str, Any]


def after_last(times: Sequence[float], last: float) -> float:
    """Seconds from the last apply's answer to the last of the times; 0 when all came before it."""
    return round(max(0.0, max(times) - last), 2)


def share_within(times: Iterable[float], deadline: float, count: int) -> float:
    """How many percent of ``count`` came in time."""
    return round(100 * sum(1 for each in times if each <= deadline) / count, 2)


def held_seconds(spans: Iterable[Span], begin: float, end: float) -> float:
    """How long pods held their place within a window, in sum: from bound to ended."""
    held = 0.0
    for span in spans:
        if span.bound is not None:
            until = end if span.ended is None else min(span.ended, end)
            held += max(0.0, until - max(span.bound, begin))
    return held


def idle_percent(held: float, *, places: int, seconds: float) -> float:
    """Which part of the capacity nobody held."""
    return round(100 * (1 - held / (places * seconds)), 2)


def between(times: Iterable[float], begin: float, end: float) -> int:
    """How many lie in the window."""
    return sum(1 for each in times if begin < each <= end)


def flat(figures: Json, path: str = "") -> Iterator[tuple[str, float]]:
    """All numbers, by their path with dots."""
    for key, value in figures.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from flat(value, name)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield name, float(value)


def summary(runs: Iterable[Json]) -> dict[str, dict[str, dict[str, Json]]]:
    """By scene, contender and figure: median, least, most, and in how many runs it was there."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in runs:
        figures = values.setdefault(run["scene"], {}).setdefault(run["contender"], {})
        for name, number in flat(run.get("figures", {})):
            figures.setdefault(name, []).append(number)
    return {
        scene: {
            contender: {
                name: {
                    "median": median(found), "min": min(found), "max": max(found),
                    "runs": len(found),
                }
                for name, found in figures.items()
            }
            for contender, figures in contenders.items()
        }
        for scene, contenders in values.items()
    }  # fmt: skip
