"""Figures of several runs as median, least and most, and as cells and tables of Markdown. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Json = Mapping[str, Any]


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, least and most."""
    found = sorted(values)
    return {"median": median(found), "min": found[0], "max": found[-1]}


def span(values: Mapping[str, float] | None, digits: int) -> str:
    """The same as text, rounded; a dash where there is none."""
    if values is None:
        return "–"
    middle, least, most = (f"{values[key]:.{digits}f}" for key in ("median", "min", "max"))
    return middle if least == most else f"{middle} ({least}–{most})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
