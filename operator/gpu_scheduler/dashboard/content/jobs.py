"""The list of workloads, and the page of one."""

from collections import Counter
from urllib.parse import quote

from gpu_scheduler.dashboard.content import job_lead
from gpu_scheduler.dashboard.content.hidden import nodes_with
from gpu_scheduler.dashboard.content.rows import (
    chosen,
    names_of,
    works_for,
)
from gpu_scheduler.dashboard.content.words import begin, many, sentence
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import RequestParameters, one_of, page_of
from gpu_scheduler.dashboard.rows import BesideRow, JobRow, Lead, WorkRef
from gpu_scheduler.dashboard.views import JobsView, JobView
from gpu_scheduler.dashboard.visible import Visible

_SORTS = ("", "-created", "created", "name", "-held", "held", "-busy", "busy", "phase")


def page(picture: Picture, visible: Visible, asked: RequestParameters) -> JobsView:
    """Asked for: q, project, type, phase, reason, advice, idle=1, sort, offset, limit.

    Raises:
        BadQuestionError: one of them cannot be understood.
    """
    rows = works_for(picture, visible)
    order = one_of(asked, "sort", _SORTS)
    fields = ("project", "type", "phase", "reason", "advice")
    idle = one_of(asked, "idle", ("", "1"))
    found = [row for row in chosen(rows, asked, fields) if not idle or row.idle_since is not None]
    offset, shown = page_of(_sorted(found, order), asked)
    phases = Counter(str(row.phase) for row in rows)
    return JobsView(
        at=picture.at,
        lead=lead(phases),
        phases=dict(sorted(phases.items())),
        projects=names_of(rows),
        total=len(found),
        offset=offset,
        rows=shown,
    )


def _sorted(rows: list[JobRow], order: str) -> list[JobRow]:
    down, field = order.startswith("-"), order.lstrip("-")
    if field == "name":
        return sorted(rows, key=lambda row: (row.ref.namespace, row.ref.name))
    if field == "phase":
        return sorted(rows, key=lambda row: row.phase)
    if field in ("held", "busy"):
        known = [row for row in rows if getattr(row, field) is not None]
        rest = [row for row in rows if getattr(row, field) is None]
        return sorted(known, key=lambda row: getattr(row, field), reverse=down) + rest
    return sorted(rows, key=lambda row: row.created, reverse=field == "" or down)


def lead(phases: Counter[str]) -> Lead:
    """How many there are, by what becomes of them."""
    whole = sum(phases.values())
    if not whole:
        return Lead(first=sentence("There is no work yet."))
    words = (
        ("Running", "runs", "run"),
        ("Pending", "waits", "wait"),
        ("Suspended", "is suspended", "are suspended"),
    )
    parts: list[str | tuple[str, str]] = []
    for phase, one, more in words:
        if number := phases[phase]:
            parts += [", " if parts else "", (f"{number:,}", f"/jobs?phase={phase}")]
            parts.append(f" {one if number == 1 else more}")
    first = sentence(*parts, ".") if parts else sentence("Nothing runs, and nothing waits.")
    ended = [
        f"{many(number, 'job')} {word}"
        for phase, word in (("Succeeded", "succeeded"), ("Failed", "failed"))
        if (number := phases[phase])
    ]
    then = sentence(begin(f"{' and '.join(ended)}.")) if ended else ()
    return Lead(first=first, then=then)


def find(picture: Picture, visible: Visible, ref: WorkRef) -> JobRow | None:
    """One workload; None: there is none, or the reader may not see it."""
    if not visible.sees(ref.namespace):
        return None
    there = picture.works_in.get(ref.namespace, ())
    return next((row for _, row in there if row.ref == ref), None)


def one(picture: Picture, visible: Visible, asked: RequestParameters) -> JobView | None:
    """Asked for by namespace, kind and name."""
    ref = WorkRef(namespace=asked["namespace"], kind=asked["kind"], name=asked["name"])
    row = find(picture, visible, ref)
    detail = picture.details.job(ref) if row is not None else None
    if row is None or detail is None:
        return None
    waiting = picture.queue_in.get(ref.namespace, ())
    queued = next((each for _, each in waiting if each.ref == ref), None)
    beside = tuple(
        BesideRow(node=node.name, device=device)
        for node in nodes_with(picture, visible, ref.namespace)
        for device in node.devices
        if any(share.ref == ref for share in device.shares)
    )
    return JobView(
        at=picture.at,
        lead=job_lead.lead(row, detail, queued, picture.at),
        row=row,
        facts=detail.facts,
        steps=detail.steps,
        steps_note=detail.steps_note,
        placed=detail.placed,
        slowest=detail.slowest,
        beside=beside[:16],
        advice=tuple(each for each in picture.advice if each.ref == ref),
        curve=detail.curve,
        ranks=detail.ranks,
        used=detail.used,
        commands=_commands(row),
        may_suspend=detail.may_suspend,
        suspended=detail.suspended,
    )


def _commands(row: JobRow) -> dict[str, str]:
    """Lines of a shell; names are Kubernetes' own, so nothing in them has to be quoted."""
    namespace, name = row.ref.namespace, row.ref.name
    if row.ref.kind != "GPUJob":
        what = f"{row.ref.kind.lower()}/{name}"
        return {
            "why": f"kubectl gpu why {what} -n {namespace}",
            "describe": f"kubectl describe {what} -n {namespace}",
        }
    found = {
        "why": f"kubectl gpu why {name} -n {namespace}",
        "report": f"kubectl gpu report {name} -n {namespace}",
        "describe": f"kubectl describe gpujob {name} -n {namespace}",
        "logs": f"kubectl gpu logs {name} -n {namespace}",
    }
    if row.phase == "Suspended":
        found["resume"] = f"kubectl gpu resume {name} -n {namespace}"
    elif row.phase in ("Pending", "Running"):
        found["suspend"] = f"kubectl gpu suspend {name} -n {namespace}"
    return found


def address(ref: WorkRef) -> str:
    """The page of a workload."""
    return "/jobs/" + "/".join(quote(each, safe="") for each in (ref.namespace, ref.kind, ref.name))
