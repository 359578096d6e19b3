"""A picture of runs by several policies (PNG, SVG, PDF): what stays unused, what is lost and why.

Shows the part in which the cluster fills: before it every policy places everything. Needs
matplotlib, which the extra ``plot`` installs; it is imported when a picture is asked for.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.perf.replay.causes import IN_WORDS, Cause
from tests.perf.replay.lifetimes import COUNTED_FROM
from tests.perf.replay.run import Step

from gpu_scheduler.core.packing.policy import Packing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FROM_PERCENT = 70.0  # of demand: what came before is no difference between policies
_COLOURS = {
    Cause.FRAGMENTED: "#d95f02",
    Cause.RESOURCES: "#7570b3",
    Cause.MODEL: "#1b9e77",
    Cause.NEVER: "#444444",
    Cause.OVERLOAD: "#d0d0d0",
}


def draw(
    path: Path,
    title: str,
    played: Mapping[Packing, Sequence[Step]],
    capacity_milli: int,
    *,
    releasing: bool = False,
) -> None:
    """Write the picture.

    Args:
        path: where to.
        title: above it.
        played: by policy, the arrivals.
        capacity_milli: milli-GPU of the cluster.
        releasing: pods leave, so it is drawn over time and not over demand.
    """
    from matplotlib.figure import Figure

    count = len(played)
    figure = Figure(figsize=(11, max(4.8, 1.9 * count)), layout="constrained")
    figure.suptitle(title)
    grid = figure.add_gridspec(count, 2)
    unused = figure.add_subplot(grid[:, 0])
    panels: list[Axes] = []
    name = "mean lifetimes that went by" if releasing else "demand that has arrived, % of all GPUs"
    over = {
        policy: [step.time for step in steps] if releasing else demand(steps, capacity_milli)
        for policy, steps in played.items()
    }
    begin = COUNTED_FROM if releasing else fills(played, over)
    causes: list[Cause] = []
    highest = 0.0
    for number, (policy, steps) in enumerate(played.items()):
        shown = [i for i, x in enumerate(over[policy]) if x >= begin]
        xs = [over[policy][i] for i in shown]
        free = [100 - 100 * steps[i].allocated_milli / capacity_milli for i in shown]
        highest = max([highest, *free])
        unused.plot(xs, free, color=f"C{number}", label=policy, linewidth=1.2, zorder=9 - number)
        lost = lost_by_cause([steps[i] for i in shown] if releasing else steps, capacity_milli)
        if not releasing:
            lost = {cause: [line[i] for i in shown] for cause, line in lost.items()}
        causes += [cause for cause, line in lost.items() if any(line) and cause not in causes]
        first = panels[0] if panels else None
        panels.append(figure.add_subplot(grid[number, 1], sharex=first, sharey=first))
        _stacked(panels[-1], policy, xs, lost)
        panels[-1].tick_params(labelbottom=number == count - 1)
    if not releasing:
        xs = next(iter(over.values()))
        ideal = [max(0.0, 100 - x) for x in xs]
        unused.plot(xs, ideal, ":", color="black", linewidth=1, label="if nothing were lost")
    unused.set(xlabel=name, ylabel="unallocated GPUs, %", title="What stays unused")
    unused.set_ylim(0, 1.05 * highest or 1)
    unused.legend(fontsize="small")
    unused.grid(alpha=0.3)
    panels[0].set_title("What is lost, and why")
    panels[-1].set_xlabel(name)
    patches = dict(zip(_COLOURS, panels[0].collections, strict=False))
    figure.legend(
        [patches[cause] for cause in _COLOURS if cause in causes],
        [IN_WORDS[cause] for cause in _COLOURS if cause in causes],
        loc="outside lower center",
        fontsize="small",
        ncols=3,
    )
    for axes in (unused, *panels):
        axes.set_xlim(begin, max((line[-1] for line in over.values() if line), default=100.0))
    figure.savefig(path, dpi=150)


def fills(
    played: Mapping[Packing, Sequence[Step]], over: Mapping[Packing, Sequence[float]]
) -> float:
    """From which demand on, in percent, it is drawn: a little before anything is lost."""
    losses = [
        x
        for policy, steps in played.items()
        if (x := next((x for s, x in zip(steps, over[policy], strict=True) if not s.placed), None))
        is not None
    ]
    end = max((line[-1] for line in over.values() if line), default=100.0)
    return min(0.7 * end, max(_FROM_PERCENT, min(losses, default=0.0) - 5))


def demand(steps: Sequence[Step], capacity_milli: int) -> list[float]:
    """After each arrival: demand so far, in percent of the cluster."""
    found, sum_milli = [], 0
    for step in steps:
        sum_milli += step.milli
        found.append(100 * sum_milli / capacity_milli)
    return found


def lost_by_cause(steps: Sequence[Step], capacity_milli: int) -> dict[Cause, list[float]]:
    """After each arrival, by cause: demand that was lost so far, in percent of the cluster."""
    found: dict[Cause, list[float]] = {}
    for cause in Cause:
        line, sum_milli = [], 0
        for step in steps:
            sum_milli += step.milli if step.cause is cause else 0
            line.append(100 * sum_milli / capacity_milli)
        found[cause] = line
    return found


def _stacked(
    axes: "Axes", policy: str, xs: Sequence[float], lost: Mapping[Cause, Sequence[float]]
) -> None:
    causes = list(_COLOURS)
    axes.stackplot(
        xs,
        *(lost[cause] for cause in causes),
        colors=[_COLOURS[cause] for cause in causes],
        step="post",
    )
    axes.annotate(policy, (0.02, 0.86), xycoords="axes fraction", fontweight="bold")
    axes.set_ylabel("lost, % of all GPUs", fontsize="small")
    axes.grid(alpha=0.3)
