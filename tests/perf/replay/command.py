"""Reads the files of a trace, plays it by each policy, says what came out.

Apart from the command line for the benchmark and the tests: everything it writes goes to the
streams that it is given.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TextIO

from tests.perf.progress import progress
from tests.perf.replay import plot
from tests.perf.replay.arrivals import arriving, in_random_order
from tests.perf.replay.causes import IN_WORDS, Cause
from tests.perf.replay.lifetimes import coming_and_going
from tests.perf.replay.result import Result, churned, filled
from tests.perf.replay.run import FillPlayer, Step
from tests.perf.replay.trace import TraceError, read_nodes, read_pods

from gpu_scheduler import picture
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.policy import Packing


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What is to be played.

    Attributes:
        nodes: file of nodes.
        pods: file of pods.
        packings: policies; each plays the same pods on the same nodes.
        seed: decides all that is random.
        arrive: demand in the end, in clusters.
        releasing: let pods come and go at this load instead; None: nobody leaves.
        plot: where to draw it.
        causes: find out why pods are lost; a picture shows it.
    """

    nodes: Path
    pods: Path
    packings: Sequence[Packing]
    seed: int
    arrive: float = 1.3
    releasing: float | None = None
    plot: Path | None = None
    causes: bool = False


def replay(request: ReplayRequest, bar: TextIO) -> dict[Packing, Result]:
    """Play a trace by each policy.

    Args:
        request: what is to be played.
        bar: where progress is shown, if it is a terminal.

    Raises:
        TraceError: a file cannot be used.
        picture.PlotError: the picture cannot be made.
    """
    if request.plot is not None:
        picture.check(request.plot, "--plot")
    nodes, pods = read_nodes(request.nodes), read_pods(request.pods)
    capacity = sum(node.gpus for node in nodes) * DEVICE_MILLI
    if not capacity:
        raise TraceError(f"{request.nodes}: no node has a GPU")
    if not any(pod.devices for pod in pods):
        raise TraceError(f"{request.pods}: no pod wants a GPU")
    random = Random(request.seed)
    shuffled = in_random_order(nodes, random)
    causes = request.causes or request.plot is not None
    played: dict[Packing, list[Step]] = {}
    if request.releasing is None:
        stream = arriving(pods, capacity, request.arrive, random)
        with progress(bar, len(stream) * len(request.packings)) as tell:
            for packing in request.packings:
                player = FillPlayer(shuffled, pods, packing, causes=causes)
                played[packing] = player.fill(stream, tell)
        results = {packing: filled(steps, capacity) for packing, steps in played.items()}
    else:
        events = list(coming_and_going(pods, capacity, request.releasing, random))
        arrivals = sum(event.pod_shape is not None for event in events)
        with progress(bar, arrivals * len(request.packings)) as tell:
            for packing in request.packings:
                player = FillPlayer(shuffled, pods, packing, causes=causes)
                played[packing] = player.churn(events, tell)
        results = {packing: churned(steps, capacity) for packing, steps in played.items()}
    if request.plot is not None:
        title = f"{request.pods.name}, seed {request.seed}"
        releasing = request.releasing is not None
        plot.draw(request.plot, title, played, capacity, releasing=releasing)
    return results


def as_json(results: Mapping[Packing, Result]) -> str:
    """The figures as one JSON object; of several policies by their names."""
    bodies: dict[str, dict[str, Any]] = {}
    for packing, result in results.items():
        lost = {cause: round(lost, 4) for cause, lost in result.lost_by_cause.items()}
        bodies[packing] = result.to_json() | {"lostPercentByCause": lost}
    return json.dumps(bodies if len(bodies) > 1 else next(iter(bodies.values())), indent=2)


def as_table(results: Mapping[Packing, Result]) -> str:
    """The figures in words, one a line, a column for each policy."""
    several = len(results) > 1
    rows = [("", *results)] if several else []
    there = [each for each in Cause if any(each in r.lost_by_cause for r in results.values())]
    columns = [_figures(result, there) for result in results.values()]
    rows += [(label, *(column[label] for column in columns)) for label in columns[0]]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if several and i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _figures(result: Result, causes: Sequence[Cause]) -> dict[str, str]:
    unallocated = result.unallocated_percent
    never = "demand never came to 100 %"
    return {
        "unallocated GPU": never if unallocated is None else f"{unallocated:.2f} %",
        "pods placed": f"{result.placed_pods:,}",
        "pods lost": f"{result.lost_pods:,}",
        "GPU demand lost": f"{result.lost_demand_percent:.2f} %",
        **{
            f"  {IN_WORDS[cause]}": f"{result.lost_by_cause.get(cause, 0.0):.2f} %"
            for cause in causes
        },
        "of pods with several GPUs": f"{result.lost_multi_gpu_percent:.2f} %",
        "decisions per second of CPU": f"{result.decisions_per_second:,.0f}",
    }
