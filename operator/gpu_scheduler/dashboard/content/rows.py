"""Rows of lists: which the reader may see, which were asked for, in which order."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Protocol, TypeVar

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters
from gpu_scheduler.dashboard.rows import JobRow, ProjectRow, QueueRow, ReasonRow, WorkRef
from gpu_scheduler.dashboard.visible import Visible

_MOST_TEXT = 100


class _OfWork(Protocol):
    @property
    def ref(self) -> WorkRef: ...


Row = TypeVar("Row", bound=_OfWork)
ListRow = TypeVar("ListRow", JobRow, QueueRow)


def chosen(
    rows: Iterable[ListRow], asked: RequestParameters, fields: Sequence[str]
) -> list[ListRow]:
    """Rows that have what was asked for in these fields, each by its name.

    And the text that is searched for: in their name, namespace or project.
    """
    text = asked.get("q", "")[:_MOST_TEXT].strip().lower()
    wanted = [(each, asked[each]) for each in fields if asked.get(each)]
    return [
        row
        for row in rows
        if (not text or text in f"{row.ref.namespace}/{row.ref.name} {row.project}".lower())
        and all(getattr(row, field) == value for field, value in wanted)
    ]


def seen(rows: Iterable[Row], visible: Visible) -> list[Row]:
    """Those about work that the reader may see."""
    return list(rows) if visible.all else [r for r in rows if visible.sees(r.ref.namespace)]


def _in_sight(
    rows: Sequence[Row], known: Callable[[], Mapping[str, list[tuple[int, Row]]]], visible: Visible
) -> list[Row]:
    """The same of a long list; ``known``: what is in each namespace, with its place in the list."""
    if visible.namespaces is None:
        return list(rows)
    by_namespace = known()
    found = [each for name in visible.namespaces for each in by_namespace.get(name, ())]
    return [row for _, row in sorted(found, key=itemgetter(0))]


def works_for(picture: Picture, visible: Visible) -> list[JobRow]:
    """Workloads that the reader may see, the newest first."""
    return _in_sight(picture.works, lambda: picture.works_in, visible)


def queue_for(picture: Picture, visible: Visible) -> list[QueueRow]:
    """Those that wait and that the reader may see, in the order in which they are served."""
    return _in_sight(picture.queue, lambda: picture.queue_in, visible)


def projects_for(rows: Iterable[ProjectRow], visible: Visible) -> list[ProjectRow]:
    """Those that the reader may see: all, or those that own a namespace of theirs."""
    if visible.all or visible.inventory:
        return list(rows)
    return [row for row in rows if any(map(visible.sees, row.namespaces))]


def reasons(rows: Iterable[QueueRow]) -> tuple[ReasonRow, ...]:
    """Why they wait, most first."""
    found: defaultdict[str, list[QueueRow]] = defaultdict(list)
    for row in rows:
        found[row.reason].append(row)
    made = []
    for reason, same in found.items():
        first = min(same, key=lambda row: row.since)
        made.append(
            ReasonRow(
                reason=reason,
                jobs=len(same),
                gpus=round(sum(row.gpus for row in same), 3),
                since=first.since,
                message=first.message,
                first=first.ref,
            )
        )
    return tuple(sorted(made, key=lambda row: (-row.jobs, row.reason)))


def names_of(rows: Iterable[JobRow | QueueRow]) -> tuple[str, ...]:
    """The projects of rows."""
    return tuple(sorted({row.project for row in rows if row.project}))
