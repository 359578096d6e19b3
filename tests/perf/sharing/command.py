"""Plays work of several projects, by one or several rules.

Everything it writes goes to the streams that it is given.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tests.perf.progress import progress
from tests.perf.replay.trace import read_nodes, read_pods
from tests.perf.sharing import workloads
from tests.perf.sharing.counting import Counting
from tests.perf.sharing.figures import Figures
from tests.perf.sharing.player import SharingPlayer
from tests.perf.sharing.workload import Workload
from tests.perf.sharing.workload_file import read

from gpu_scheduler import picture
from gpu_scheduler.core.model.preemption_policy import PreemptionPolicy

NAMES = ("random", "day", "sweep", "trace")
HOURS = {"day": 24.0, "sweep": 2.0}  # that are played; of the others one


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """What is to be played: a workload by name or file, and by which rules."""

    workload: str
    seed: int
    load: float
    hours: float | None = None
    checkpoint_seconds: float | None = None
    nodes: Path | None = None
    pods: Path | None = None
    plot: Path | None = None


def workload_of(request: ComparisonRequest) -> Workload:
    """The workload that is asked for.

    Raises:
        ValueError: there is none of that name, or a file cannot be used.
    """
    seed, load = request.seed, request.load
    hours = request.hours or HOURS.get(request.workload, 1.0)
    if request.workload == "random":
        saved = request.checkpoint_seconds
        return workloads.random_work(seed, load, hours=hours, checkpoint_seconds=saved)
    if request.workload == "day":
        return workloads.day_work(seed, load, hours=hours)
    if request.workload == "sweep":
        return workloads.sweep_work(seed, load, hours=hours)
    if request.workload == "trace":
        if request.nodes is None or request.pods is None:
            raise ValueError("trace: give --nodes and --pods too")
        machines, pods = read_nodes(request.nodes), read_pods(request.pods)
        if not any(node.gpus for node in machines) or not any(pod.devices for pod in pods):
            raise ValueError(f"{request.nodes}, {request.pods}: nobody has or wants a GPU")
        return workloads.trace_work(seed, load, machines, pods, hours=hours)
    path = Path(request.workload)
    if path.suffix not in (".yaml", ".yml"):
        names = ", ".join(NAMES)
        raise ValueError(f"{request.workload}: one of {names}, or a .yaml file")
    return read(path)


def play(
    workload: Workload,
    preemption_policy: PreemptionPolicy,
    tell: Callable[[int], None] = lambda seconds: None,
) -> Figures:
    """One play; the figures depend on nothing else. ``tell`` hears how many seconds went by."""
    counting, player = (
        Counting(workload),
        SharingPlayer(workload, preemption_policy),
    )
    player.play(counting, tell)
    return counting.finish(player)


def compare(
    request: ComparisonRequest, policies: Mapping[str, PreemptionPolicy], bar: TextIO
) -> dict[str, Figures]:
    """Play a workload by several rules.

    Args:
        request: what is to be played.
        policies: by name of the rules.
        bar: where progress is shown, if it is a terminal.

    Raises:
        ValueError: something that is asked for cannot be had.
        picture.PlotError: the picture cannot be made.
    """
    if request.plot is not None:
        picture.check(request.plot, "--plot")
    workload = workload_of(request)
    with progress(bar, round(workload.seconds) * len(policies)) as tell:
        found = {name: play(workload, each, tell) for name, each in policies.items()}
    if request.plot is not None:
        from tests.perf.sharing import frontier

        frontier.draw(request.plot, {workload.name: found})
    return found


def as_json(found: Mapping[str, Figures]) -> str:
    """The figures by rules, as one JSON object."""
    return json.dumps({name: figures.to_json() for name, figures in found.items()}, indent=2)


def as_table(found: Mapping[str, Figures]) -> str:
    """A row for each figure, a column for each of the rules."""
    rows = [("", list(found))]
    columns = [figures.to_rows() for figures in found.values()]
    rows += [(label, [column[label] for column in columns]) for label in columns[0]]
    return aligned(rows)


def aligned(rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Rows of a label and cells: labels to the left, cells to the right."""
    first = max(len(label) for label, _ in rows)
    widths = [max(map(len, cells)) for cells in zip(*(cells for _, cells in rows), strict=True)]
    return "\n".join(
        "  ".join(
            [label.ljust(first), *(c.rjust(w) for c, w in zip(cells, widths, strict=True))]
        ).rstrip()
        for label, cells in rows
    )
