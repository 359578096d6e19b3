"""A report in words: tables of at most 100 columns, sentences wrapped below what they are about.

Equal rows are one row with a count.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import EvictReason
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.simulate.cluster_report import ClusterReport

WIDTH = 100
MOST_ROWS = 40  # of one table
_GAP = "  "
_INDENT = "    "


def table(report: ClusterReport) -> str:
    """The whole report."""
    parts = [_head(report)]
    if report.starts:
        parts.append(section("Would start", len(report.starts), "pod", _starts(report)))
    moves = [each for each in report.gives_way if each["reason"] == EvictReason.CONSOLIDATE]
    if moves:
        parts.append(section("Would move", len(moves), "pod", _gives_way(moves)))
    ends = [each for each in report.gives_way if each["reason"] != EvictReason.CONSOLIDATE]
    if ends:
        parts.append(section("Would give way", len(ends), "pod", _gives_way(ends)))
    if report.waits:
        parts.append(section("Would wait", len(report.waits), "job", _waits(report)))
    if not (report.starts or report.gives_way or report.waits):
        parts.append("Nothing waits.")
    if report.projects:
        parts.append("\n".join(_projects(report)))
    if not report.settled:
        parts.append("More would change: the simulation was stopped before it came to rest.")
    return "\n\n".join(parts)


def _head(report: ClusterReport) -> str:
    before, after = report.before, report.after
    gpus = f"{after.gpus} GPU{'' if after.gpus == 1 else 's'} on {wording.nodes(after.nodes)}"
    used = gpu_from_milli(before.allocated_milli)
    then = gpu_from_milli(after.allocated_milli)
    lines = [f"{report.server}: {gpus}, of which {used} are given out now and {then} then"]
    if report.changes:
        lines += wrapped("what if: " + ", ".join(report.changes), "  ")
    return "\n".join(lines)


def section(title: str, count: int, noun: str, lines: Iterable[str]) -> str:
    """A heading with the count, and lines below it."""
    heading = f"{title}: {count:,} {noun}{'' if count == 1 else 's'}"
    return "\n".join([heading, *lines])


def _starts(report: ClusterReport) -> Iterator[str]:
    rows = []
    for key, group in groupby(_asked_first(report, report.starts), key=_start_key):
        rows.append((key[0], str(len(list(group))), *key[1:]))
    yield from columns(("JOB", "PODS", "NODE", "GPU", "SHARE", "WHEN"), rows)


def _asked_first(report: ClusterReport, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda each: each["job"] not in report.asked_about)


def _start_key(start: dict[str, Any]) -> tuple[str, ...]:
    devices = start["devices"]
    numbers = [str(d["number"]) for d in devices]
    shares = dict.fromkeys(f"{d['gpu']} ({d['memoryMiB']} MiB)" for d in devices)
    share = " + ".join(shares) + (" each" if len(devices) > 1 and len(shares) == 1 else "")
    later = f"{seconds} s later" if (seconds := start["afterSeconds"]) else "at once"
    when = f"once others gave way, {later}" if start["afterEvictions"] else later
    when = when.removesuffix(", at once")
    return start["job"], start["node"], ",".join(numbers) or "-", share or "-", when


def _gives_way(pods: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in pods[:MOST_ROWS]:
        yield from wrapped(each["message"], "  ", _INDENT)
    yield from more(len(pods))


def _waits(report: ClusterReport) -> Iterator[str]:
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in _asked_first(report, report.waits):
        alike.setdefault((each["job"], each["reason"]), []).append(each)
    for (job, reason), found in islice(alike.items(), MOST_ROWS):
        position = found[0]["queuePosition"]
        place = f", number {position} of project {found[0]['project']}" if position else ""
        count = f", {wording.pods(len(found))}" if len(found) > 1 else ""
        yield f"  {job}: {reason}{place}{count}"
        yield from wrapped(found[0]["message"], _INDENT)
    yield from more(len(alike))


def _projects(report: ClusterReport) -> Iterator[str]:
    rows = [
        (
            each["name"],
            each["quota"],
            each["limit"] or "-",
            each["allocatedBefore"],
            each["allocatedAfter"],
            each["fairShare"],
        )
        for each in report.projects
    ]
    yield from columns(("PROJECT", "QUOTA", "LIMIT", "HOLDS NOW", "THEN", "FAIR SHARE"), rows)
    for each in report.projects:
        if each["problem"]:
            yield from wrapped(f"{each['name']} cannot be used: {each['problem']}", _INDENT)


def columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], all_in: str = "-o json"
) -> Iterator[str]:
    """Rows below names, as wide as their widest cell; the widest give way where it is too much.

    ``all_in``: what has them all where there are too many.
    """
    shown = [names, *rows[:MOST_ROWS]]
    widths = [max(len(row[i]) for row in shown) for i in range(len(names))]
    while sum(widths) + len(_GAP) * len(widths) > WIDTH:
        widths[widths.index(max(widths))] -= 1
    for row in shown:
        cells = (_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (_GAP + _GAP.join(cells)).rstrip()
    yield from more(len(rows), all_in)


def more(count: int, all_in: str = "-o json") -> Iterator[str]:
    """How many rows are left out, and what has them all."""
    if count > MOST_ROWS:
        yield f"  and {count - MOST_ROWS:,} more ({all_in} has them all)"


def _cut(text: str, width: int) -> str:
    """A text in so many columns; what is left out is in the middle, as names differ at the end."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def wrapped(text: str, indent: str, hanging: str = "") -> list[str]:
    """Lines of a sentence; ``hanging``: before all but the first, else as before the first."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging or indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
