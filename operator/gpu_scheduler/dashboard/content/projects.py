"""The list of projects, and the page of one."""

from collections.abc import Sequence

from gpu_scheduler.dashboard.content.rows import (
    projects_for,
    queue_for,
    reasons,
    works_for,
)
from gpu_scheduler.dashboard.content.words import (
    Sentence,
    amount,
    begin,
    count,
    duration,
    gpus,
    is_are,
    listed,
    many,
    sentence,
)
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import MOST_ROWS, RequestParameters
from gpu_scheduler.dashboard.rows import Lead, ProjectRow, QueueRow
from gpu_scheduler.dashboard.views import ProjectsView, ProjectView
from gpu_scheduler.dashboard.visible import Visible


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> ProjectsView:
    """Those that the reader may see; nothing is asked for."""
    rows = tuple(projects_for(picture.projects, visible))
    return ProjectsView(at=picture.at, lead=lead(rows, picture.at), rows=rows)


def lead(rows: tuple[ProjectRow, ...], now: float) -> Lead:
    """What is promised and held; and who borrows since when, who has less than is due."""
    if not rows:
        return Lead(
            first=sentence("There is no project that you may see."),
            then=sentence("A GPUProject gives namespaces a quota of GPUs."),
        )
    quota, held = sum(row.quota for row in rows), sum(row.held for row in rows)
    first = sentence(
        f"{begin(many(len(rows), 'project'))} {'holds' if len(rows) == 1 else 'hold'} "
        f"{gpus(held)} of {amount(quota)} guaranteed."
    )
    borrowing = sorted((row for row in rows if row.borrowed), key=lambda row: -row.borrowed)
    if not borrowing:
        return Lead(first=first, then=sentence("Nobody borrows."))
    top = borrowing[0]
    borrows, since = f" borrows {amount(top.borrowed)}", ""
    if top.borrowed_since is not None:
        borrows = f" has borrowed {amount(top.borrowed)}"
        since = f" for {duration(now - top.borrowed_since)}"
    rest = f", and {many(len(borrowing) - 1, 'other project')} too" if len(borrowing) > 1 else ""
    short = [row.name for row in rows if row.pending and row.held < row.quota]
    less = (
        "waits, and holds less than its quota"
        if len(short) == 1
        else "wait, and hold less than their quotas"
    )
    lack = f" {listed(short)} {less}."
    return Lead(
        first=first,
        then=sentence(
            (top.name, f"/projects/{top.name}"),
            f"{borrows}{since}{rest}.",
            lack if short else "",
        ),
    )


def one(picture: Picture, visible: Visible, asked: RequestParameters) -> ProjectView | None:
    """Asked for by name."""
    rows = projects_for(picture.projects, visible)
    row = next((each for each in rows if each.name == asked["name"]), None)
    if row is None:
        return None
    waiting = [each for each in queue_for(picture, visible) if each.project == row.name]
    holding = [
        each for each in works_for(picture, visible) if each.project == row.name and each.held > 0
    ]
    return ProjectView(
        at=picture.at,
        lead=Lead(first=_first(row), then=_then(row, waiting, picture.at)),
        row=row,
        reasons=reasons(waiting),
        holding=tuple(sorted(holding, key=lambda each: -each.held)[:MOST_ROWS]),
        waiting=tuple(waiting[:MOST_ROWS]),
    )


def _first(row: ProjectRow) -> Sentence:
    if row.problem:
        return sentence(f"{row.name} cannot be used: {row.problem}")
    limit = f", and may hold {amount(row.limit)}" if row.limit is not None else ""
    return sentence(
        f"{row.name} holds {amount(row.held)} of its quota of {amount(row.quota)}{limit}."
    )


def _then(row: ProjectRow, waiting: Sequence[QueueRow], now: float) -> Sentence:
    found = []
    if row.borrowed and row.borrowed_since is not None:
        have = "has" if is_are(row.borrowed) == "is" else "have"
        since = duration(now - row.borrowed_since)
        found.append(f"{gpus(row.borrowed)} {have} been borrowed for {since}.")
    elif row.borrowed:
        found.append(f"{gpus(row.borrowed)} {is_are(row.borrowed)} borrowed.")
    if row.waiting:
        found.append(_waits(row, sum(each.mends for each in waiting)))
    return sentence(" ".join(found) or "Nothing of it waits.")


def _waits(row: ProjectRow, mended: int) -> str:
    """``mended``: how many of those that wait cannot start as they are."""
    said = f"{begin(many(row.waiting, 'job'))} {'waits' if row.waiting == 1 else 'wait'}"
    if mended >= row.waiting:
        return f"{said}, and cannot start before somebody changes something."
    said = f"{said} for {gpus(row.pending)}"
    if mended:
        said = f"{said}; {count(mended)} of them cannot start before somebody changes something"
    return f"{said}."
