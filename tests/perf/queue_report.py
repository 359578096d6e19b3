"""The section of docs/benchmarks.md about many jobs that wait: pure.

Puts what was to be reached, what was so before, and what each contender shows side by side. Called
by ``report`` with the part ``queues`` of a result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
NOTHING = "–"

OTHERS = (
    "KAI, HAMi and Kueue cannot be installed here. What was measured of them while this was "
    "designed, with raised client limits on two cores, stays as it was: KAI 15–16 pods/s and 26 "
    "writes per pod of 0.5 GPU, HAMi 10–17 pods/s and 11–15 writes, Kueue's topology path 4 writes "
    "per pod and about 5 per job. The common measure is the stock scheduler, which ran beside ours."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        title: what was measured.
        before: what the design names as the state before.
        goal: what was to be reached.
        scene: where the figure comes from.
        show: the cell, from the figures of one contender in that scene.
    """

    title: str
    before: str
    goal: str
    scene: str
    show: Callable[[Json], str]


def span(figures: Json, key: str, unit: str = "", digits: int = 1, times: float = 1) -> str:
    """Median (least–most)."""
    found = figures.get(key)
    if found is None:
        return NOTHING
    middle, least, most = (
        f"{found[name] * times:,.{digits}f}" for name in ("median", "min", "max")
    )
    return (middle if least == most else f"{middle} ({least}–{most})") + unit


def judged(figures: Json) -> str:
    """Seconds, where all jobs got their verdict in every run; else how many did."""
    percent = figures.get("judged_percent")
    if percent is None:
        return NOTHING
    if percent["min"] < 100:
        cap = figures["wait_seconds"]["median"]
        return f"{span(figures, 'judged_percent', ' %', 0)} after {cap:.0f} s"
    return span(figures, "judged_seconds", " s")


def writes_until_judged(figures: Json) -> str:
    """Writes per job; where not all got their verdict, more of them were still to come."""
    late = figures.get("judged_percent", {"min": 100})["min"] < 100
    return ("≥ " if late else "") + span(figures, "writes_per_job", digits=2)


def idle(figures: Json) -> str:
    """CPU while nothing was to be done; where things were written all the same, how many."""
    written = figures.get("idle.writes", {"median": 0})["median"]
    meanwhile = f", {written:,.0f} writes meanwhile" if written else ""
    return span(figures, "idle.cpu_percent.operator", " %") + meanwhile


def bound(figures: Json) -> str:
    """Seconds, where all were bound in every run; else how many were."""
    percent = figures.get("bound_percent")
    if percent is None:
        return NOTHING
    if percent["min"] < 100:
        return span(figures, "bound_percent", " % of them", 0)
    return span(figures, "bound_seconds", " s")


def _of(key: str, unit: str = "", digits: int = 1, times: float = 1) -> Callable[[Json], str]:
    return lambda figures: span(figures, key, unit, digits, times)


def named_writes(figures: Json) -> str:
    """Writes per job without which it is not placed and told of, by median."""
    kinds = ("POST jobs", "POST pods", "POST pods/binding", "PATCH gpujobs/status")
    found = [figures.get(f"writes_per_job_when_bound_by_kind.{kind}") for kind in kinds]
    there = [each["median"] for each in found if each is not None]
    return f"{sum(there):.2f}" if there else NOTHING


REACHED = (
    Row("all waiting, every job has its reason, after the last apply", "64 % after 400 s", "≤ 5 s",
        "waiting", judged),
    Row("of them within 5 s", "", "100 %", "waiting",
        _of("judged_percent_after_5_seconds", " %", 0)),
    Row("objects per waiting GPUJob beside itself", "Job, pod", "0", "waiting",
        _of("objects_per_job", digits=2)),
    Row("writes per waiting job until its reason stands", "4 and more", "1", "waiting",
        writes_until_judged),
    Row("writes per single-pod job until the last is bound: Job, pod, binding, our statuses", "8",
        "≤ 5", "fits", named_writes),
    Row("with those of others: statuses and Events of the Job controller", "", "", "fits",
        _of("writes_per_job_when_bound", digits=2)),
    Row("until all run and nothing is written any more", "", "", "fits",
        _of("writes_per_job", digits=2)),
    Row("apply to bound, idle, p50", "51 to 100 ms", "≤ 100 ms", "fits",
        _of("latency.p50_seconds", " ms", 0, 1000)),
    Row("apply to bound, idle, p99", "", "", "fits", _of("latency.p99_seconds", " ms", 0, 1000)),
    Row("separate jobs that fit: last one bound after the last apply", "40 s", "≤ 5 s",
        "fits", bound),
    Row("idle CPU of the operator while they wait", "28 % of a core", "≤ 3 %", "waiting",
        idle),
    Row("restart while they wait, until the first pod is bound", "19 s", "≤ 5 s", "waiting",
        _of("restart.first_bound_seconds", " s")),
    Row("the operator's memory while they wait", "", "", "waiting", _of("rss_mib", " MiB", 0)),
    Row("the same after the restart", "", "", "waiting", _of("restart.rss_mib", " MiB", 0)),
)  # fmt: skip

MANY = (
    Row("applied", "", "", "many", _of("applied.jobs_per_second", " jobs/s", 0)),
    Row("every job has its reason, after the last apply", "", "", "many", judged),
    Row("writes per waiting job", "", "", "many", writes_until_judged),
    Row("CPU of the operator until then", "", "", "many",
        _of("cpu_seconds_until_judged.operator", " s", 0)),
    Row("of the API server", "", "", "many",
        _of("cpu_seconds_until_judged.kube-apiserver", " s", 0)),
    Row("idle CPU of the operator", "", "", "many", idle),
    Row("restart until the first pod is bound", "", "", "many",
        _of("restart.first_bound_seconds", " s")),
    Row("the operator's memory", "", "", "many", _of("rss_mib", " MiB", 0)),
)  # fmt: skip


def churn_rows(scene: str) -> tuple[Row, ...]:
    """The lines about short jobs."""
    return tuple(
        Row(title, "", "", scene, show)
        for title, show in (
            ("GPU time that nobody held", _of("idle_gpu_percent", " %")),
            ("pods that ended per second", _of("pods_ended_per_second")),
            ("jobs that ended per second", _of("jobs_ended_per_second")),
            ("all writes per second", _of("writes_per_second", "", 0)),
            ("CPU of the operator", _of("cpu_percent.operator", " % of a core", 0)),
            ("CPU of the API server", _of("cpu_percent.kube-apiserver", " % of a core", 0)),
            ("CPU of kube-controller-manager",
             _of("cpu_percent.kube-controller-manager", " % of a core", 0)),
            ("CPU of the harness", _of("cpu_percent.harness", " % of a core", 0)),
            ("CPU of others on the machine", _of("cpu_percent.others", " % of a core", 0)),
        )
    )  # fmt: skip


def section(part: Json, settings: Json) -> str:
    """The whole section, as Markdown."""
    gpus = settings["queue_nodes"] * 8
    few, many = settings["queue_jobs"], settings["queue_many_jobs"]
    names = list(part["contenders"])
    measured = "; ".join(f"{name}: {of['commit']}" for name, of in part["contenders"].items())
    tables = [
        (f"{few:,} jobs wait, {settings['queue_fitting_jobs']} fit", REACHED, True),
        (f"{many:,} jobs wait", MANY, False),
        (f"{few:,} jobs of 1 to 5 s", churn_rows("churn"), False),
        (f"{few:,} jobs of 10 to 50 s", churn_rows("turnover"), False),
        (f"{many:,} jobs of 1 to 5 s", churn_rows("churn-many"), False),
    ]
    found = [_table(title, rows, part, names, goals) for title, rows, goals in tables]
    return "\n\n".join(
        [
            "### Many jobs that wait",
            f"{gpus} GPUs, jobs of one pod, client limits raised; median (least–most) of up to "
            f"{settings['queue_rounds']} runs. Measured: {measured}.",
            *(each for each in found if each),
            *_errors(part),
            OTHERS,
        ]
    )


def _table(title: str, rows: Sequence[Row], part: Json, names: Sequence[str], goals: bool) -> str:
    scenes = part.get("summary", {})
    shown = [n for n in names if any(n in scenes.get(row.scene, {}) for row in rows)]
    if not shown:
        return ""
    head = [title, *(("before", "to reach") if goals else ()), *shown]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for row in rows:
        cells = [row.show(scenes.get(row.scene, {}).get(name, {})) for name in shown]
        texts = [row.title, *((row.before, row.goal) if goals else ()), *cells]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _errors(part: Json) -> list[str]:
    lines = []
    for run in part["runs"]:
        if "error" in run:
            why = run["error"].splitlines()[0]
            lines.append(f"- {run['scene']}, {run['contender']}, run {run['round'] + 1}: {why}")
    return ["Not measured:\n\n" + "\n".join(lines)] if lines else []
