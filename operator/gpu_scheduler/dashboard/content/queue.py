"""The page of what waits."""

from gpu_scheduler.dashboard.content.jobs import address
from gpu_scheduler.dashboard.content.rows import (
    chosen,
    names_of,
    queue_for,
    reasons,
)
from gpu_scheduler.dashboard.content.words import begin, count, duration, many, sentence
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters, one_of, page_of
from gpu_scheduler.dashboard.rows import Lead, QueueRow
from gpu_scheduler.dashboard.views import QueueView
from gpu_scheduler.dashboard.visible import Visible

_SORTS = ("", "position", "since", "-since", "gpus", "-gpus", "name")


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> QueueView:
    """Asked for: q, project, type, reason, sort, offset, limit.

    Raises:
        BadQuestionError: one of them cannot be understood.
    """
    rows = queue_for(picture, visible)
    order = one_of(asked, "sort", _SORTS)
    found = chosen(rows, asked, ("project", "type", "reason"))
    offset, shown = page_of(_sorted(found, order), asked)
    return QueueView(
        at=picture.at,
        lead=lead(rows, picture.at),
        reasons=reasons(rows),
        projects=names_of(rows),
        total=len(found),
        offset=offset,
        rows=shown,
    )


def _sorted(rows: list[QueueRow], order: str) -> list[QueueRow]:
    if order in ("", "position"):
        return rows
    if order == "name":
        return sorted(rows, key=lambda row: (row.ref.namespace, row.ref.name))
    if order.endswith("since"):
        return sorted(rows, key=lambda row: row.since, reverse=order.startswith("-"))
    return sorted(rows, key=lambda row: row.gpus, reverse=order.startswith("-"))


def lead(rows: list[QueueRow], now: float) -> Lead:
    """How many wait, and for how long; and who is next, and who cannot start as it is."""
    if not rows:
        return Lead(first=sentence("Nothing waits."))
    waits = sorted(now - row.since for row in rows)
    if len(rows) == 1:
        first = sentence(f"One job waits, for {duration(waits[0])}.")
    else:
        half = duration(waits[(len(waits) - 1) // 2])
        first = sentence(
            f"{begin(many(len(rows), 'job'))} wait, half of them for no longer than {half}."
        )
    mended = sum(row.mends for row in rows)
    served = [row for row in rows if not row.mends]
    then = sentence()
    if served:
        row = served[0]
        page = address(row.ref)
        then = sentence(
            "Next is ", (row.ref.name, page), f" of {row.project}." if row.project else "."
        )
    if mended:
        who = "It" if len(rows) == 1 else f"{begin(count(mended))} of them"
        space = " " if then else ""
        then += sentence(f"{space}{who} cannot start before somebody changes something.")
    return Lead(first=first, then=then)
