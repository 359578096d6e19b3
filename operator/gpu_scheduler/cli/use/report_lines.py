"""The screen of ``report``: one run, or two side by side. Pure but for the glyphs of the output."""

from collections.abc import Iterator

from gpu_scheduler.cli.holders.bars import curve_glyphs
from gpu_scheduler.cli.holders.held import gpus
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.use.amounts import (
    UNKNOWN,
    between,
    cores,
    duration,
    gib,
    hours,
    percent,
    sparkline,
)
from gpu_scheduler.cli.use.run_report import RunReport
from gpu_scheduler.cli.use.saving import saving
from gpu_scheduler.cli.use.workload import RankFigures, UsedWorkload

_ADVICE = 2  # told in full: the report is one screen
FORMULA = "GPU-hours used ÷ held; used is time with kernels, at most the share"


def rows(report: RunReport) -> list[tuple[str, str]]:
    """Label and text of each figure."""
    return [*_of_object(report), *_of_use(report), *_of_pods(report)]


def curves(report: RunReport) -> Iterator[tuple[str, str]]:
    """Label and text of its use and its memory over its life."""
    curve = None if report.use is None else report.use.curve
    if curve is None:
        return
    glyphs, most = curve_glyphs(), report.cap_mib
    yield "Busy curve", f"|{sparkline(curve.busy_percent, 100, glyphs=glyphs)}| 0 to 100 %"
    if most is None:
        most = max((mib or 0 for mib in curve.memory_mib), default=0)
    yield "Memory curve", f"|{sparkline(curve.memory_mib, most, glyphs=glyphs)}| 0 to {gib(most)}"
    yield "Each point", f"{duration(curve.step_seconds)}; a blank is not known"


def advice(report: RunReport) -> Iterator[str]:
    """What to change, the first matters most; of two each the command and what it would save."""
    use = report.use
    if use is None:
        return
    if not use.advice:
        yield "No advice."
    for number, each in enumerate(use.advice[:_ADVICE]):
        yield f"{'Also' if number else 'Advice'}: {each.rule}: {each.message}"
        if each.command:
            yield f"  {each.command}"
        if said := saving(use, each):
            yield f"  {said}"
    if rest := use.advice[_ADVICE:]:
        yield f"Also: {', '.join(each.rule for each in rest)} (kubectl gpu advise)"


def side_by_side(one: RunReport, other: RunReport) -> PrintedTable:
    """Two runs, a figure a row."""
    first, second = dict(rows(one)), dict(rows(other))
    labels = list(dict.fromkeys([*first, *second]))
    table = PrintedTable(["", one.name, other.name])
    for label in labels:
        table.rows.append([label, first.get(label, UNKNOWN), second.get(label, UNKNOWN)])
    heads = [_headline(one), _headline(other)]
    table.rows.append(["Advice", *heads])
    return table


def _of_object(report: RunReport) -> Iterator[tuple[str, str]]:
    taken = report.taken
    yield "State", report.state
    yield "Asked", report.asked.gpus or UNKNOWN
    if report.use is not None and report.use.milli:
        yield "Held", _held(report.use)
    if taken is not None:
        queued = duration(taken.queued_seconds)
        yield "Queued", f"{queued}, and waits still" if taken.waits else queued
    yield "Run", duration(report.run_seconds)


def _of_use(report: RunReport) -> Iterator[tuple[str, str]]:
    use, asked = report.use, report.asked
    yield "GPU-hours held", hours(report.held_gpu_hours)
    if use is None:
        if report.taken is not None:
            yield "Memory cap", f"{gib(report.cap_mib)} per GPU"
            yield "Busy now", percent(report.taken.percent)
        return
    busy, memory, host = use.busy, use.memory, use.host
    yield "GPU-hours used", hours(use.used_gpu_hours)
    yield "Efficiency", percent(use.efficiency_percent)
    now = f"now {percent(busy.now)}, " if use.runs else ""
    yield (
        "Busy",
        f"{now}mean {percent(busy.mean)}, p50 {percent(busy.p50)}, p95 {percent(busy.p95)}",
    )
    yield from _roles(use)
    if use.slowest is not None:
        yield "Slowest rank", slowest_rank(use.slowest)
    yield "Peak memory", f"{gib(memory.peak)} of {gib(report.cap_mib)}{_part(report)}"
    cpu = (cores(host.cpu_milli), cores(host.cpu_limit_milli), cores(asked.cpu_milli))
    yield "CPU cores", _host(*cpu)
    yield "RAM", _host(gib(host.ram_mib), gib(host.ram_limit_mib), gib(asked.ram_mib))
    yield "Idle", _idle(report)


def _roles(use: UsedWorkload) -> Iterator[tuple[str, str]]:
    """A line a role, with which of them is the least busy."""
    means = [each.mean for each in use.roles if each.mean is not None]
    least = min(means) if len(means) > 1 and min(means) < max(means) else None
    for each in use.roles:
        held = None if each.gpu_seconds is None else each.gpu_seconds / 3600
        said = f"mean {percent(each.mean)}, {hours(held)} GPU-hours, peak {gib(each.peak)}"
        marked = ", the least busy" if least is not None and each.mean == least else ""
        yield f"Role {each.name}", said + marked


def slowest_rank(rank: RankFigures) -> str:
    """Which of a gang's pods, and how far behind."""
    middle = f"median of {rank.ranks} ranks {percent(rank.median)}"
    return f"{rank.pod}, mean {percent(rank.mean)}, {middle}"


def _of_pods(report: RunReport) -> Iterator[tuple[str, str]]:
    taken = report.taken
    if taken is None:
        return
    yield "Pods", f"{taken.pods} there, {taken.failed} failed, {taken.restarts} restarts"
    lost = taken.lost_gpu_seconds or 0
    yield "Evictions", f"{taken.evictions or 0}, {lost / 3600:.2f} GPU-hours lost"


def _held(use: UsedWorkload) -> str:
    most = "" if use.runs else "at most "
    return f"{most}{gpus(use.milli)} GPUs by {use.pods} pod{'s' * (use.pods != 1)}"


def _part(report: RunReport) -> str:
    use, cap = report.use, report.cap_mib
    if use is None or use.memory.peak is None or not cap:
        return ""
    return f" ({round(100 * use.memory.peak / cap)} %)"


def _host(used: str, limit: str, asked: str) -> str:
    return f"{used} of {limit}, asked {asked}" if limit != UNKNOWN else f"{used}, asked {asked}"


def _idle(report: RunReport) -> str:
    use = report.use
    if use is not None and use.idle_since is not None:
        return f"for {duration(between(use.idle_since, report.now))}"
    if use is not None and use.idle_gpu_seconds:
        return f"{hours(use.idle_gpu_seconds / 3600)} GPU-hours in all"
    known = use is not None and (use.busy.now is not None or use.idle_gpu_seconds == 0)
    return "no" if known else UNKNOWN


def _headline(report: RunReport) -> str:
    use = report.use
    return use.advice[0].rule if use is not None and use.advice else UNKNOWN
