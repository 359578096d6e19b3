"""Two pictures of a sweep: the best value over the trials, and parallel coordinates.

Each line of the second one is a trial, each axis a parameter or the objective; good trials are
dark. Needs matplotlib, which the extra ``plot`` installs; it is imported when a picture is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_scheduler.api.search import (
    Constant,
    Goal,
    IntRange,
    LogUniform,
    Parameter,
    Space,
    Uniform,
    Value,
    text_of,
)
from gpu_scheduler.sweeps.commands.record import NoResultsError, SweepOutcomes
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 1000  # of trials drawn: the best ones; more would be one dark area
_MARGIN = 0.03  # of an axis, above and below its values


@dataclass(frozen=True, slots=True)
class AxisScale:
    """One vertical axis: where values lie between 0 and 1, and what is written beside it."""

    name: str
    places: list[float]  # of the trials, in their order
    ticks: list[tuple[float, str]]


def draw(record: SweepOutcomes, path: Path) -> None:
    """Write both pictures into one file.

    Raises:
        NoResultsError: no trial has succeeded with a value.
    """
    from matplotlib.figure import Figure

    objective = record.sweep.sweep.core_objective()
    good = [o for o in record.table if o.state is TrialState.SUCCEEDED and o.value is not None]
    if objective is None or not good:
        raise NoResultsError(f"no trial of {record.sweep.name} has succeeded with a result yet")
    figure = Figure(figsize=(max(8.0, 1.5 * len(record.sweep.sweep.search().names)), 8))
    figure.set_layout_engine("constrained")
    figure.suptitle(record.sweep.name)
    above, below = figure.subplots(2, 1, height_ratios=(2, 3))
    _best_so_far(above, good, objective.metric, minimize=objective.goal is Goal.MINIMIZE)
    if objective.target is not None:
        above.axhline(objective.target, linestyle=":", color="tab:red", label="target")
    above.legend(loc="best")
    good.sort(key=lambda o: objective.cost(o.value or 0.0))
    _parallel(below, scales(record, good[:MOST_LINES], objective.metric))
    figure.savefig(path, dpi=150)


def _best_so_far(axes: "Axes", good: Sequence[Outcome], metric: str, *, minimize: bool) -> None:
    trials = [outcome.trial for outcome in good]
    values = [outcome.value or 0.0 for outcome in good]
    best, so_far = values[0], []
    for value in values:
        best = min(best, value) if minimize else max(best, value)
        so_far.append(best)
    axes.plot(trials, values, ".", color="tab:gray", alpha=0.5, label="trials")
    axes.step(trials, so_far, where="post", color="tab:blue", label="best so far")
    if min(values) > 0 and max(values) > 100 * min(values):
        axes.set_yscale("log")
    axes.set(xlabel="trial", ylabel=metric)
    axes.grid(alpha=0.3)


def scales(record: SweepOutcomes, outcomes: Sequence[Outcome], metric: str) -> list[AxisScale]:
    """The axes of the second picture: the parameters that are searched, then the objective."""
    search = record.sweep.sweep.search()
    sets = [record.parameters(outcome) for outcome in outcomes]
    found = []
    for name in search.names:
        parameter = _known(search.space, name)
        if not isinstance(parameter, Constant):
            found.append(_scale(name, parameter, [each[name] for each in sets]))
    values: list[Value] = [outcome.value or 0.0 for outcome in outcomes]
    return [*found, _scale(metric, None, values)]


def _known(space: Space, name: str) -> Parameter | None:
    return space.parameters.get(name)


def _scale(name: str, parameter: Parameter | None, values: Sequence[Value]) -> AxisScale:
    """An axis: logarithmic, linear, or one place for each value that is no number."""
    from math import log10

    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    continuous = parameter is None or isinstance(parameter, Uniform | LogUniform | IntRange)
    if not continuous or len(numbers) < len(values):
        texts = sorted({text_of(v) for v in values}, key=_as_people_count)
        at = {text: (i + 0.5) / len(texts) for i, text in enumerate(texts)}
        return AxisScale(name, [at[text_of(v)] for v in values], [(p, t) for t, p in at.items()])
    low, high = min(numbers), max(numbers)
    if isinstance(parameter, LogUniform) and low < high:
        places = [log10(n / low) / log10(high / low) for n in numbers]
    else:
        places = [(n - low) / (high - low) if high > low else 0.5 for n in numbers]
    ticks = [(0.0, f"{low:.4g}"), (1.0, f"{high:.4g}")] if low < high else [(0.5, f"{low:.4g}")]
    return AxisScale(name, places, ticks)


def _as_people_count(text: str) -> tuple[int, float, str]:
    try:
        return (0, float(text), text)
    except ValueError:
        return (1, 0.0, text)


def _parallel(axes: "Axes", columns: Sequence[AxisScale]) -> None:
    from matplotlib import colormaps

    across = range(len(columns))
    count = len(columns[0].places)
    for rank in reversed(range(count)):  # the best on top
        color = colormaps["viridis"](rank / max(1, count - 1) * 0.95)
        line = [column.places[rank] for column in columns]
        axes.plot(across, line, color=color, alpha=0.9 if rank < 10 else 0.5, linewidth=1)
    for x, column in enumerate(columns):
        axes.axvline(x, color="black", linewidth=0.8)
        for place, text in column.ticks:
            axes.annotate(
                text,
                (x, place),
                xytext=(4, 0),
                textcoords="offset points",
                fontsize="small",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
            )
    axes.set_xticks(list(across), [column.name for column in columns])
    axes.set_yticks([])
    axes.set_ylim(-_MARGIN, 1 + _MARGIN)
    axes.set_xlim(-0.1, len(columns) - 1 + 0.35)
    for side in axes.spines.values():
        side.set_visible(False)
