"""``gpu-scheduler simulate``: reads the files, plays the trace, prints what came out.

Kept apart from the command line so that a test or another program can call it: everything it
writes goes to the streams that it is given.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TextIO

from gpu_scheduler import picture
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.simulate import plot
from gpu_scheduler.simulate.arrivals import arriving, in_random_order
from gpu_scheduler.simulate.lifetimes import coming_and_going
from gpu_scheduler.simulate.progress import progress
from gpu_scheduler.simulate.result import Result, churned, curve, filled
from gpu_scheduler.simulate.run import Player, Step
from gpu_scheduler.simulate.trace import TraceError, read_nodes, read_pods


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be simulated; ``releasing`` is a load, None = nobody leaves."""

    nodes: Path
    pods: Path
    packing: Packing
    seed: int
    arrive: float = 1.3
    releasing: float | None = None
    plot: Path | None = None


def simulate(request: Request, bar: TextIO) -> Result:
    """Play a trace.

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
    player = Player(in_random_order(nodes, random), pods, request.packing)
    steps: list[Step]
    if request.releasing is None:
        stream = arriving(pods, capacity, request.arrive, random)
        with progress(bar, len(stream)) as tell:
            steps = player.fill(stream, tell)
        result = filled(steps, capacity)
    else:
        events = list(coming_and_going(pods, capacity, request.releasing, random))
        with progress(bar, sum(event.pod_kind is not None for event in events)) as tell:
            steps = player.churn(events, tell)
        result = churned(steps, capacity)
    if request.plot is not None:
        title = f"{request.packing} on {request.pods.name}, seed {request.seed}"
        plot.draw(request.plot, title, curve(steps, capacity))
    return result


def as_json(result: Result) -> str:
    """The figures as one JSON object."""
    return json.dumps(result.to_json(), indent=2)


def as_table(result: Result) -> str:
    """The figures in words, one a line."""
    unallocated = result.unallocated_percent
    rows = [
        (
            "unallocated GPU",
            "demand never came to 100 %" if unallocated is None else f"{unallocated:.2f} %",
        ),
        ("pods placed", f"{result.placed_pods:,}"),
        ("pods lost", f"{result.lost_pods:,}"),
        ("GPU demand lost", f"{result.lost_demand_percent:.2f} %"),
        ("of pods with several GPUs", f"{result.lost_multi_gpu_percent:.2f} %"),
        ("decisions per second of CPU", f"{result.decisions_per_second:,.0f}"),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)
