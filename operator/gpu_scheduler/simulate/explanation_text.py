"""An explanation as one screen: the verdict, its numbers, what is before it, what is missing.

Of long lists the first few are shown; ``-o json`` has all. Made of the value that ``explanation``
describes and of nothing else. Pure.
"""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from gpu_scheduler.api import states
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.wording import span

Json = dict[str, Any]

_MOST_ROWS, _MOST_HOLDERS, _MOST_PLACES, _MOST_PROJECTS = 10, 5, 4, 4
_LEAST_COLUMN = 8
_GAP, _INDENT = "  ", "  "
_KINDS = {"gpujob": "GPUJob"}
_COLOURS = {"Running": "green", "Succeeded": "green", "Failed": "red"}


class Line(NamedTuple):
    """A line, and how it looks on a terminal that has colours."""

    text: str
    style: str = ""


def lines(explanation: Json, now: str, width: int | None = None) -> list[Line]:
    """The screen.

    Args:
        explanation: what to show.
        now: RFC 3339.
        width: columns; None: as wide as it is.
    """
    screen = _Screen(explanation, _seconds(now), width)
    return [line for part in screen.parts() for line in (Line(""), *part)][1:]


class _Screen:
    def __init__(self, explanation: Json, now: float, width: int | None) -> None:
        self._all = explanation
        self._now = now
        self._width = width
        self._prefix = f"{explanation['object']['namespace']}/"

    def parts(self) -> Iterator[list[Line]]:
        """With an empty line between them."""
        found = self._all
        yield list(self._headline())
        if found["estimate"]:
            yield list(self._estimate(found["estimate"]))
        if found["candidates"]:
            yield list(self._nodes(found["candidates"]))
        if found["holders"]:
            yield list(self._holders(found["holders"]))
        if found["place"]:
            yield list(self._queue(found["place"], found["before"]))
        if found["place"]:
            yield list(self._projects(found["projects"], found["project"]))
        if found["notShown"]:
            yield list(self._sentence(f"More is not shown: {found['notShown']}", ""))

    def _headline(self) -> Iterator[Line]:
        asked, verdict = self._all["object"], self._all["verdict"]
        kind = _KINDS.get(asked["kind"], asked["kind"])
        name = f"{kind} {asked['namespace']}/{asked['name']}"
        if asked["pod"] and asked["pod"] != asked["name"]:
            name += f", pod {asked['pod']}"
        phase = verdict["phase"]
        reason = f": {verdict['reason']}" if verdict["reason"] else ""
        state = f"is {phase}" if phase else "has no phase yet"
        yield from self._title(f"{name} {state}{reason}", _COLOURS.get(phase, "yellow"))
        if verdict["message"]:
            yield from self._sentence(verdict["message"])
        if verdict["note"]:
            yield from self._sentence(verdict["note"])
        if when := self._when(phase, verdict):
            yield from self._sentence(when)
        yield from self._places(verdict["places"])
        if verdict["movedOnBy"] and not self._all["estimate"] and phase != "Running":
            yield from self._sentence(f"Moved on by: {verdict['movedOnBy']}")
        if verdict["helps"]:
            yield from self._sentence(verdict["helps"])

    def _when(self, phase: str, verdict: Json) -> str:
        ago = self._ago(verdict["since"])
        if phase in ("Succeeded", "Failed"):
            return f"It ended {ago} ago." if ago else ""
        if phase == "Running":
            since = f" for {ago}" if ago else ""
            holds = f", with {verdict['holdsGPU']} GPU" if verdict["holdsGPU"] else ""
            return f"It runs{since}{holds}." if since or holds else ""
        if not ago:
            return ""
        place = self._all["place"] or {}
        position = verdict["queuePosition"] or place.get("position")
        project = self._all["project"]
        queue = f"; number {position} in the queue" if position else ""
        whose = f" of project {project['name']}" if queue and project else " of its project"
        return f"Submitted {ago} ago{queue}{whose if queue else ''}."

    def _places(self, places: Sequence[Json]) -> Iterator[Line]:
        for each in places[:_MOST_PLACES]:
            several = "s" * (len(each["devices"]) > 1)
            of = f" of device{several} {', '.join(each['devices'])}"
            devices = of if each["devices"] else " GPU"
            memory = f" ({each['memoryMiB']} MiB)" if each["memoryMiB"] else ""
            held = f": {each['gpu']}{devices}{memory}" if each["gpu"] != "0" else ""
            yield from self._sentence(f"{each['pod']} on {each['node']}{held}")
        yield from self._more(len(places) - _MOST_PLACES)

    def _estimate(self, found: Json) -> Iterator[Line]:
        by = found["startsBy"]
        when = ""
        if by and found["kind"] == "time limits":
            when = f"by {by} at the latest, in {self._until(by)}: "
        yield from self._sentence(f"Estimate: {when}{found['text']}", "")
        for each in found["givesWay"][:_MOST_HOLDERS]:
            yield from self._sentence(each["message"])
        yield from self._more(len(found["givesWay"]) - _MOST_HOLDERS)

    def _nodes(self, nodes: Sequence[Json]) -> Iterator[Line]:
        gang = self._all["place"] and self._all["place"]["gang"]
        what = " for one of its pods" if gang else ""
        yield from self._title(f"Nodes{what}, the closest first")
        alike: dict[tuple[Any, ...], list[str]] = {}
        for each in nodes:
            alike.setdefault((each["freeGPU"], *each["lacks"]), []).append(each["node"])
        rows = [
            (
                _names(names),
                key[0],
                "; ".join(key[1:]) or "nothing",
            )
            for key, names in alike.items()
        ]
        yield from self._table(("NODE", "GPU FREE", "WHAT IT LACKS"), rows)

    def _holders(self, holders: Sequence[Json]) -> Iterator[Line]:
        yield from self._title("Held by")
        rows = [
            (self._short(each["job"]), each["gpu"], _names(each["nodes"]), self._ends(each))
            for each in holders
        ]
        yield from self._table(("JOB", "GPUS", "NODES", "ENDS"), rows, _MOST_HOLDERS)

    def _ends(self, holder: Json) -> str:
        if holder["ending"]:
            return "is ending"
        by = holder["endsBy"]
        if not by:
            return "no time limit"
        return f"in {self._until(by)} at the latest"

    def _queue(self, place: Json, before: Sequence[Json]) -> Iterator[Line]:
        """What is before it, and itself."""
        title = f"Queue of project {self._all['project']['name']}"
        yield from self._title(f"{title}: interactive first, then by priority, then the oldest")
        rows = []
        for _, group in groupby(before, key=_alike):
            same = list(group)
            never = f" (cannot start: {same[0]['reason']})"
            asks = same[0]["asks"] + (never if same[0]["reason"] in states.NEVER else "")
            pods = sum(each["pods"] for each in same)
            rows.append(self._queued(same[0], str(same[0]["position"]), asks, pods))
        gang = f", {place['gang']} pods at once" if place["gang"] else ""
        own = {**place, "job": f"{self._own()} <-"}
        number = str(place["position"] or "-")
        mine = self._queued(own, number, f"{place['asks']}{gang}", place["pods"])
        more = len(rows) - _MOST_ROWS
        if more > 0:
            rows[_MOST_ROWS:] = [("", f"{more:,} more", "", "", "", "", "")]
        names = ("#", "JOB", "ASKS FOR", "PODS", "TYPE", "PRIORITY", "AGE")
        yield from self._table(names, [*rows, mine], _MOST_ROWS + 2)

    def _queued(self, job: Json, number: str, asks: str, pods: int) -> tuple[str, ...]:
        name, age = self._short(job["job"]), self._ago(job["created"])
        return number, name, asks, str(pods), job["type"], str(job["priority"]), age

    def _own(self) -> str:
        asked = self._all["object"]
        return str(asked["pod"] or asked["name"])

    def _projects(self, projects: Sequence[Json], own: Json) -> Iterator[Line]:
        if len(projects) > 1:
            yield from self._title(
                "Projects: that goes first which holds the smallest part of its fair share"
            )
        else:
            yield from self._title("Project")
        at = next(n for n, each in enumerate(projects) if each["name"] == own["name"])
        shown = [*projects[:_MOST_PROJECTS], *([own] if at >= _MOST_PROJECTS else [])]
        rows = [
            (
                each["name"] + (" <-" if each is own and len(projects) > 1 else ""),
                each["allocated"],
                each["quota"],
                each["borrowed"],
                each["limit"] or "-",
                each["fairShare"],
                f"{each['pending']} in {_count(each['waiting'], 'job')}",
            )
            for each in shown
        ]
        names = ("PROJECT", "HOLDS", "QUOTA", "BORROWS", "LIMIT", "FAIR SHARE", "WAITING")
        yield from self._table(names, rows)
        yield from self._more(len(projects) - len(shown))
        waits_for_quota = self._all["verdict"]["reason"] == Reason.WAITING_FOR_QUOTA
        at_limit = waits_for_quota and own["weight"] and own["limit"] is not None
        if not self._all["place"]["insideQuota"] and not at_limit:
            name, may = own["name"], "others may take back what it borrows"
            if not own["weight"]:
                may = "which its weight 0 forbids"
            yield from self._sentence(f"With this one {name} would be above its quota: {may}.")

    def _short(self, job: str) -> str:
        """Without the namespace where it is the same."""
        return job.removeprefix(self._prefix)

    def _until(self, moment: str) -> str:
        return span(max(0.0, _seconds(moment) - self._now))

    def _ago(self, moment: str | None) -> str:
        since = _seconds(moment or "")
        return span(max(0.0, self._now - since)) if since else ""

    def _sentence(self, text: str, indent: str = _INDENT) -> Iterator[Line]:
        if self._width is None:
            yield Line(f"{indent}{text}")
            return
        for each in _folded(text, max(_LEAST_COLUMN, self._width - len(indent))):
            yield Line(f"{indent}{each}")

    def _title(self, text: str, colour: str = "") -> Iterator[Line]:
        for line in self._sentence(text, ""):
            yield Line(line.text, f"bold {colour}".rstrip())

    def _table(
        self, names: Sequence[str], rows: Sequence[Sequence[str]], most: int = _MOST_ROWS
    ) -> Iterator[Line]:
        shown = [names, *rows[:most]]
        widths = [max(len(row[i]) for row in shown) for i in range(len(names))]
        room = (self._width or 1 << 30) - len(_INDENT) - len(_GAP) * (len(names) - 1)
        while sum(widths) > room and max(widths) > _LEAST_COLUMN:
            widths[widths.index(max(widths))] -= 1
        for row in shown:
            cells = [_folded(cell, size) for cell, size in zip(row, widths, strict=True)]
            for at in range(max(map(len, cells))):
                parts = (
                    (cell[at] if at < len(cell) else "").ljust(size)
                    for cell, size in zip(cells, widths, strict=True)
                )
                yield Line((_INDENT + _GAP.join(parts)).rstrip(), "dim" if row is names else "")
        yield from self._more(len(rows) - most)

    def _more(self, count: int) -> Iterator[Line]:
        if count > 0:
            yield Line(f"{_INDENT}and {count:,} more (-o json has them all)")


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(1, width), break_on_hyphens=False) or [""]


def _alike(job: Json) -> tuple[Any, ...]:
    return job["job"], job["asks"], job["type"], job["priority"], job["reason"]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1:,} more"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _seconds(moment: str) -> float:
    """Seconds since the epoch; 0 where there is no time that can be read."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0
