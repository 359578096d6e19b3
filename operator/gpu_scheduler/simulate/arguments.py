"""What ``gpu-scheduler simulate`` was told on the command line: a trace, or a cluster.

Options of the one are refused with the other. What a simulation needs is imported when it runs:
one on a cluster needs the client, one on a trace does not. Called by ``main``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

from gpu_scheduler.core.packing.policy import Packing

_TRACE = ("seed", "arrive", "releasing", "plot")
_CLUSTER = ("add", "remove", "operator_namespace", "consolidation", "context")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Options as given; None or empty: not given."""

    nodes: Path | None
    pods: Path | None
    policy: str
    output: str
    seed: int | None
    arrive: float | None
    releasing: float | None
    plot: Path | None
    add: Sequence[Path] | None
    remove: Sequence[str] | None
    operator_namespace: str | None
    consolidation: bool = False
    context: str | None = None


def run(arguments: Arguments, bar: TextIO) -> str:
    """The answer, as a table or as JSON.

    Args:
        arguments: from the command line.
        bar: where progress is shown, if it is a terminal.

    Raises:
        ValueError: an option, a file or the cluster cannot be used; the message says why.
    """
    if arguments.output not in ("table", "json"):
        raise ValueError(f"--output {arguments.output}: table or json")
    if arguments.policy not in list(Packing):
        raise ValueError(f"--policy {arguments.policy}: one of {', '.join(Packing)}")
    for name in ("arrive", "releasing"):
        value = getattr(arguments, name)
        if value is not None and not isfinite(value):
            raise ValueError(f"--{name} {value}: a number from 0.01 to 10")
    if (arguments.nodes is None) != (arguments.pods is None):
        missing, given = ("pods", "nodes") if arguments.pods is None else ("nodes", "pods")
        raise ValueError(f"--{missing}: is needed with --{given}; without both a cluster is read")
    if arguments.nodes is not None and arguments.pods is not None:
        _refuse(arguments, _CLUSTER, "is for a cluster: leave out --nodes and --pods")
        return _on_trace(arguments, arguments.nodes, arguments.pods, bar)
    _refuse(arguments, _TRACE, "is for a trace: give --nodes and --pods too")
    return _on_cluster(arguments)


def _refuse(arguments: Arguments, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name) not in (None, [], False):
            raise ValueError(f"--{name.replace('_', '-')}: {why}")


def _on_trace(arguments: Arguments, nodes: Path, pods: Path, bar: TextIO) -> str:
    from gpu_scheduler.simulate import command

    request = command.Request(
        nodes=nodes,
        pods=pods,
        packing=Packing(arguments.policy),
        seed=42 if arguments.seed is None else arguments.seed,
        arrive=1.3 if arguments.arrive is None else arguments.arrive,
        releasing=arguments.releasing,
        plot=arguments.plot,
    )
    result = command.simulate(request, bar)
    return command.as_json(result) if arguments.output == "json" else command.as_table(result)


def _on_cluster(arguments: Arguments) -> str:
    try:
        from gpu_scheduler.simulate.cluster_command import ClusterRequest, simulate
        from gpu_scheduler.simulate.cluster_table import table
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("gpu_scheduler"):
            raise
        raise ValueError(
            f"{error.name} is missing: pip install '.[cli]' where the sources are"
        ) from None

    request = ClusterRequest(
        packing=Packing(arguments.policy),
        add=arguments.add or (),
        remove=arguments.remove or (),
        operator_namespace=arguments.operator_namespace or "gpu-scheduler",
        consolidation=arguments.consolidation,
        context=arguments.context,
    )
    report = simulate(request)
    if arguments.output == "json":
        return json.dumps(report.to_json(), indent=2)
    return table(report)
