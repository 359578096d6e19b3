"""A picture of one run or two: use and memory over time, against the cap.

Needs matplotlib, which the extra ``plot`` installs; it is imported when a picture is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.use.amounts import percent
from gpu_scheduler.cli.use.report_lines import slowest_rank
from gpu_scheduler.cli.use.run_report import RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASH = 5.0  # and a gap as long, in which that of another cap of the same size is seen
_COLOURS = ("tab:blue", "tab:orange")


def draw(reports: Sequence[RunReport], path: Path) -> None:
    """Write it.

    Raises:
        Failed: of one of them no curve is recorded.
    """
    for each in reports:
        if each.use is None or each.use.curve is None:
            raise Failed(f"no curve of {each.name} is recorded; {each.missing}".rstrip("; "))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6))
    figure.set_layout_engine("constrained")
    figure.suptitle(" and ".join(each.name for each in reports))
    above, below = figure.subplots(2, 1, sharex=True)
    for number, (each, colour) in enumerate(zip(reports, _COLOURS, strict=False)):
        _busy(above, each, colour)
        _memory(below, each, colour, _DASH * number)
    above.set(ylabel="busy, %", ylim=(0, 105))
    below.set(ylabel="memory of one GPU, GiB", xlabel="hours since it began")
    below.set_ylim(bottom=0)
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.legend(loc="best")
    figure.savefig(path, dpi=150)


def _busy(axes: "Axes", report: RunReport, colour: str) -> None:
    assert report.use is not None and report.use.curve is not None
    curve, mean = report.use.curve, report.use.busy.mean
    axes.plot(*_line(curve.step_seconds, curve.busy_percent), color=colour, label=report.name)
    for each in report.use.roles:
        axes.plot([], [], " ", label=f"role {each.name}: {percent(each.mean)}")
    if (slowest := report.use.slowest) is not None:
        axes.plot([], [], " ", label=f"slowest rank {slowest_rank(slowest)}")
    if mean is not None:
        axes.axhline(mean, color=colour, linestyle=":", label=f"mean {mean} %")


def _memory(axes: "Axes", report: RunReport, colour: str, offset: float) -> None:
    assert report.use is not None and report.use.curve is not None
    curve, cap = report.use.curve, report.cap_mib
    gib = [None if mib is None else mib / 1024 for mib in curve.memory_mib]
    axes.plot(*_line(curve.step_seconds, gib), color=colour, label=report.name)
    if cap:
        dashes = (offset, (_DASH, _DASH))
        axes.axhline(cap / 1024, color=colour, linestyle=dashes, label=f"cap {cap / 1024:.1f} GiB")


def _line(step: int, values: Sequence[float | None]) -> tuple[list[float], list[float]]:
    """Hours and values; what is not known is a gap."""
    ends = [(number + 1) * step / 3600 for number in range(len(values))]
    return ends, [float("nan") if value is None else float(value) for value in values]
