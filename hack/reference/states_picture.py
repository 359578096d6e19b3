"""docs/states.svg: the groups of states as boxes, and the ways between them as arrows.

Boxes stand on a grid; an arrow leaves and enters at the sides that face each other, at points in
the order of what they lead to, so arrows of one side do not cross at it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from gpu_scheduler.api.states import EDGES, STATES, Group
from reference.picture import LINE, boxed, framed

CELLS = {
    Group.OWNER: (0, 0),
    Group.MAKING: (1, 0),
    Group.SUSPENDED: (2, 0),
    Group.WAITS: (0, 1),
    Group.PLACED: (1, 1),
    Group.RUNNING: (2, 1),
    Group.SUCCEEDED: (3, 1),
    Group.GAVE_BACK: (0, 2),
    Group.STUCK: (1, 2),
    Group.BETWEEN: (2, 2),
    Group.FAILED: (3, 2),
}
"""Column and row of each box."""

_WIDTH, _GAP_X, _GAP_Y, _MARGIN = 190, 60, 96, 14
_HEAD, _FOOT = 30, 10


@dataclass(frozen=True, slots=True)
class _Box:
    x: int
    y: int
    height: int


_End = tuple[Group, str, int]
"""One end of an arrow: which box, which side, and which arrow it is."""


def svg() -> str:
    """The picture as it should be."""
    boxes = _boxes()
    width = max(box.x for box in boxes.values()) + _WIDTH + _MARGIN
    height = max(box.y + box.height for box in boxes.values()) + _MARGIN
    lines = [*_arrows(boxes), *(line for group in Group for line in _drawn(group, boxes[group]))]
    title = "The states of a GPUJob, and the usual ways between them"
    return framed((width, height), title, _in_words(), 15, lines)


def _in_words() -> str:
    """The arrows, for who cannot see them."""
    to = {one: [_name(other) for start, other in EDGES if start is one] for one in Group}
    return " ".join(
        f"{_name(one)} leads to: {', '.join(ends)}." for one, ends in to.items() if ends
    )


def _name(group: Group) -> str:
    return str(group).capitalize()


def words(group: Group) -> list[str]:
    """What stands in the box of a group."""
    return [state.reason for state in STATES if state.group is group and state.reason]


def _boxes() -> dict[Group, _Box]:
    rows = sorted({row for _, row in CELLS.values()})
    heights = [
        _HEAD + _FOOT + LINE * max(len(words(g)) for g, (_, at) in CELLS.items() if at == row)
        for row in rows
    ]
    tops = [_MARGIN + sum(heights[:row]) + _GAP_Y * row for row in rows]
    return {
        group: _Box(_MARGIN + column * (_WIDTH + _GAP_X), tops[row], heights[row])
        for group, (column, row) in CELLS.items()
    }


def _drawn(group: Group, box: _Box) -> Iterator[str]:
    place = (box.x, box.y, _WIDTH, box.height)
    return boxed(place, _name(group), map(escape, words(group)), _HEAD + 16)


def _sides(one: Group, other: Group) -> tuple[str, str]:
    """The sides that face each other."""
    (x, y), (to_x, to_y) = CELLS[one], CELLS[other]
    if y != to_y:
        return ("bottom", "top") if to_y > y else ("top", "bottom")
    return ("right", "left") if to_x > x else ("left", "right")


def _arrows(boxes: dict[Group, _Box]) -> Iterator[str]:
    ends: dict[tuple[Group, str], list[tuple[_End, Group]]] = {}
    for number, (one, other) in enumerate(EDGES):
        leaves, enters = _sides(one, other)
        ends.setdefault((one, leaves), []).append(((one, leaves, number), other))
        ends.setdefault((other, enters), []).append(((other, enters, number), one))
    points: dict[_End, tuple[float, float]] = {}
    for (group, side), attached in ends.items():
        attached.sort(key=lambda each: (CELLS[each[1]], each[0][-1]))
        for place, (end, _) in enumerate(attached, 1):
            points[end] = _point(boxes[group], side, place / (len(attached) + 1))
    for number, (one, other) in enumerate(EDGES):
        leaves, enters = _sides(one, other)
        (x, y), (to_x, to_y) = points[one, leaves, number], points[other, enters, number]
        if leaves in ("left", "right"):
            path = f"M{x:g} {y:g} L{to_x:g} {to_y:g}"
        else:
            middle = (y + to_y) / 2
            path = f"M{x:g} {y:g} C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"
        yield f'<path class="way" marker-end="url(#tip)" d="{path}"/>'


def _point(box: _Box, side: str, share: float) -> tuple[float, float]:
    across, down = round(box.x + _WIDTH * share), round(box.y + box.height * share)
    return {
        "top": (across, box.y),
        "bottom": (across, box.y + box.height),
        "left": (box.x, down),
        "right": (box.x + _WIDTH, down),
    }[side]
