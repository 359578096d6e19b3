"""The table of projects, and one project on a screen. Pure but for the printing in ``describe``."""

from collections.abc import Iterable, Mapping, Sequence

from gpu_scheduler.api.names import ALLOCATION, ASK_GPU
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.holders.bars import print_text
from gpu_scheduler.cli.holders.holder import Holder
from gpu_scheduler.cli.one_pod.choosing import scheduled
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import print_table, say


def table(projects: Sequence[Body]) -> PrintedTable:
    """The table; a limit has a column where one has a limit."""
    limits = any((body.get("spec") or {}).get("limit") is not None for body in projects)
    table = PrintedTable(
        [
            *("NAME", "QUOTA", "ALLOCATED", "BORROWED", "PENDING", "JOBS"),
            *(("LIMIT",) if limits else ()),
            *("FAIR SHARE|", "WEIGHT|", "NAMESPACES|", "PROBLEM"),
        ]
    )
    for body in projects:
        spec, status = body.get("spec") or {}, body.get("status") or {}
        jobs = status.get("jobs") or {}
        table.rows.append(
            [
                _name(body),
                _text(spec.get("quota")),
                _text(status.get("allocatedGPU")),
                _text(status.get("borrowedGPU")),
                _text(status.get("pendingGPU")),
                f"{jobs.get('running', 0)} running, {jobs.get('pending', 0)} pending",
                *((_text(spec.get("limit")),) if limits else ()),
                _text(status.get("fairShareGPU")),
                _text(spec.get("weight", 1)),
                ",".join(map(str, spec.get("namespaces") or ())),
                "; ".join(str(each.get("reason", "")) for each in problems(status)),
            ]
        )
    if not any(row[-1] for row in table.rows):
        table = PrintedTable(table.columns[:-1], [row[:-1] for row in table.rows])
    return table


_FALSE_IS_WRONG = ("Accepted", "QuotaCovered", "NamespacesExist")


def problems(status: Body) -> list[Body]:
    """Conditions that say what is wrong."""
    return [
        each
        for each in status.get("conditions") or ()
        if isinstance(each, Mapping)
        and (
            (each.get("type") in _FALSE_IS_WRONG and each.get("status") == "False")
            or (each.get("type") == "SetAside" and each.get("status") == "True")
        )
    ]


def describe(
    body: Body,
    holders: Sequence[Holder] | None,
    waiting: Sequence[Body] | None,
) -> None:
    """Print all about a project.

    Args:
        body: the GPUProject.
        holders: what holds GPUs; None: it may not be read.
        waiting: GPUJobs that wait; None: they may not be read.
    """
    for label, text in numbers(body):
        say(f"{label + ':':<13}{text}")
    status = body.get("status") or {}
    for each in status.get("byModel") or ():
        say(
            f"  {each.get('model', '?')}: {_text(each.get('allocatedGPU'))} of "
            f"{_text(each.get('quotaGPU'))} held, fair share {_text(each.get('fairShareGPU'))}"
        )
    if bad := problems(status):
        say("\nProblems:")
        for each in bad:
            said = f"{each.get('type')}: {each.get('message') or each.get('reason')}"
            print_text(said, indent="  ")
    if holders is None or waiting is None:
        say()
        print_text("Who holds and what waits may not be read in its namespaces.")
        return
    say(f"\nHolds GPUs: {'' if holders else 'nobody'}".rstrip())
    if holders:
        rows = [[f"  {h.key}", f"{h.milli / 1000:g}", str(len(h.pods))] for h in holders]
        print_table(PrintedTable(["  NAME", "GPU", "PODS"], [*rows]))
    say(f"\nWaits: {'' if waiting else 'nothing'}".rstrip())
    if waiting:
        print_table(PrintedTable(["  NAME", "GPU", "REASON", "WHY"], waits(waiting)))


def numbers(body: Body) -> list[tuple[str, str]]:
    """What it is entitled to, and what it holds; what is not known yet is "-"."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    jobs = status.get("jobs") or {}
    rows = [
        ("Name", _name(body)),
        ("Namespaces", ", ".join(map(str, spec.get("namespaces") or ()))),
        ("Quota", _text(spec.get("quota"))),
        ("Limit", _text(spec.get("limit"))),
        ("Weight", _text(spec.get("weight", 1))),
        ("Allocated", _text(status.get("allocatedGPU"))),
        ("Borrowed", _text(status.get("borrowedGPU"))),
        ("Fair share", _text(status.get("fairShareGPU"))),
        ("Pending", _text(status.get("pendingGPU"))),
        ("Jobs", f"{jobs.get('running', 0)} running, {jobs.get('pending', 0)} pending"),
    ]
    if not status:
        rows.append(("Status", "the operator has not looked at it yet: kubectl gpu check"))
    return rows


def waits(jobs: Sequence[Body]) -> list[Sequence[str]]:
    """Rows of jobs that wait, by their place in the queue."""

    def place(job: Body) -> tuple[int, str]:
        position = (job.get("status") or {}).get("queuePosition")
        return (position if isinstance(position, int) else 1 << 30, _name(job))

    rows: list[Sequence[str]] = []
    for job in sorted(jobs, key=place):
        status = job.get("status") or {}
        asked = str(status.get("gpu") or "").rpartition("/")[2].strip() or "-"
        where = (job.get("metadata") or {}).get("namespace", "")
        rows.append(
            [
                f"  {where}/{_name(job)}",
                asked,
                str(status.get("reason") or "-"),
                str(status.get("message") or ""),
            ]
        )
    return rows


def waiting_alone(pods: Iterable[Body]) -> list[Body]:
    """Pods without a GPUJob that ask for a share and have no place, in the form of such a job."""
    found: list[Body] = []
    for pod in pods:
        meta, status = pod.get("metadata") or {}, pod.get("status") or {}
        if ALLOCATION in (meta.get("annotations") or {}) or status.get("phase") != "Pending":
            continue
        condition = scheduled(pod)
        asked = (meta.get("labels") or {}).get(ASK_GPU) or (meta.get("annotations") or {}).get(
            ASK_GPU
        )
        shown = {"gpu": asked, "reason": condition.get("reason")}
        shown["message"] = condition.get("message")
        found.append({"metadata": meta, "status": {**shown, "phase": "Pending"}})
    return found


def _name(body: Body) -> str:
    return str((body.get("metadata") or {}).get("name", ""))


def _text(value: object) -> str:
    return "-" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)
