"""The list of searches, and the page of one."""

from gpu_scheduler.dashboard.content.rows import seen
from gpu_scheduler.dashboard.content.words import begin, many, sentence
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters, page_of
from gpu_scheduler.dashboard.rows import Lead, SweepRow, WorkRef
from gpu_scheduler.dashboard.views import SweepsView, SweepView
from gpu_scheduler.dashboard.visible import Visible


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> SweepsView:
    """Asked for: offset, limit; the newest first.

    Raises:
        BadQuestionError: one of them is no number.
    """
    rows = seen(picture.sweeps, visible)
    offset, shown = page_of(rows, asked)
    return SweepsView(at=picture.at, lead=lead(rows), total=len(rows), offset=offset, rows=shown)


def lead(rows: list[SweepRow]) -> Lead:
    """How many search."""
    if not rows:
        return Lead(
            first=sentence("There is no sweep yet."),
            then=sentence("A GPUJob with spec.sweep searches for the best parameters."),
        )
    running = [row for row in rows if row.phase == "Running"]
    trials = sum(row.counts.get("running", 0) for row in rows)
    first = (
        f"{begin(many(len(running), 'sweep'))} {'runs' if len(running) == 1 else 'run'}, "
        f"with {many(trials, 'trial')} on GPUs."
        if running
        else f"None of {many(len(rows), 'sweep')} runs."
        if len(rows) > 1
        else "The sweep does not run."
    )
    return Lead(first=sentence(first))


def one(picture: Picture, visible: Visible, asked: RequestParameters) -> SweepView | None:
    """Asked for by namespace and name."""
    ref = WorkRef(namespace=asked["namespace"], kind="GPUJob", name=asked["name"])
    if not visible.sees(ref.namespace):
        return None
    row = next((each for each in picture.sweeps if each.ref == ref), None)
    detail = picture.details.sweep(ref) if row is not None else None
    if row is None or detail is None:
        return None
    return SweepView(
        at=picture.at,
        lead=lead_of(row),
        row=row,
        top=detail.top,
        errors=detail.errors,
        command=f"kubectl gpu sweep trials {ref.name} -n {ref.namespace}",
    )


def lead_of(row: SweepRow) -> Lead:
    """How far it has come, and its best trial."""
    done = sum(row.counts.get(each, 0) for each in ("succeeded", "pruned", "failed"))
    best = row.best
    so_far = "so far " if row.phase in ("Running", "Pending", "Suspended") else ""
    trials = f"{row.trials:,} trial{'s' if row.trials != 1 else ''}"
    first = f"{row.ref.name} has {so_far}ended {done:,} of {trials}."
    if best is None:
        return Lead(first=sentence(first), then=sentence("None has a result yet."))
    return Lead(
        first=sentence(first),
        then=sentence(
            f"Best: trial {best.trial} with {row.objective or 'objective'} {best.value:g}."
        ),
    )
