"""What ``gpu-scheduler simulate`` was told on the command line: a workload, a trace or a cluster.

Options of one are refused with the others. What a simulation needs is imported when it runs:
one on a cluster needs the client, one on a trace does not. Called by ``main``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

from gpu_scheduler.core.model.promises import Promises
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.simulate.sharing.rules import promises_of

_TRACE = ("arrive", "releasing")
_SEEDED = ("seed", "plot")  # of a trace and of a workload
_FAIR = ("guarantee_seconds", "patience_seconds", "min_runtime_seconds", "share_window_seconds")
_RULES = ("preemption", *_FAIR)  # of a workload and of a cluster
_WORKLOAD = ("load", "hours", "checkpoint_seconds")
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
    add: Sequence[Path]
    remove: Sequence[str]
    operator_namespace: str | None
    consolidation: bool = False
    context: str | None = None
    workload: str | None = None
    load: float | None = None
    hours: float | None = None
    checkpoint_seconds: float | None = None
    preemption: Sequence[str] = ()
    guarantee_seconds: float | None = None
    patience_seconds: float | None = None
    min_runtime_seconds: float | None = None
    share_window_seconds: float | None = None


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
    for name in ("arrive", "releasing", "load"):
        value = getattr(arguments, name)
        if value is not None and not isfinite(value):
            raise ValueError(f"--{name} {value}: a number from 0.01 to 10")
    if arguments.workload is not None:
        _refuse(arguments, (*_TRACE, *_CLUSTER), "is not for a workload: leave it out")
        if arguments.workload != "trace":
            _refuse(arguments, ("nodes", "pods"), "is for --workload trace: leave it out")
        return _on_workload(arguments, arguments.workload, bar)
    _refuse(arguments, _WORKLOAD, "is for a workload: give --workload too")
    if (arguments.nodes is None) != (arguments.pods is None):
        missing, given = ("pods", "nodes") if arguments.pods is None else ("nodes", "pods")
        raise ValueError(f"--{missing}: is needed with --{given}; without both a cluster is read")
    if arguments.nodes is not None and arguments.pods is not None:
        _refuse(arguments, _RULES, "is for a workload or a cluster: --workload trace has projects")
        _refuse(arguments, _CLUSTER, "is for a cluster: leave out --nodes and --pods")
        return _on_trace(arguments, arguments.nodes, arguments.pods, bar)
    _refuse(arguments, (*_TRACE, *_SEEDED), "is for a trace: give --nodes and --pods too")
    return _on_cluster(arguments)


def _refuse(arguments: Arguments, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(arguments, name) not in (None, (), False):
            raise ValueError(f"--{name.replace('_', '-')}: {why}")


def _on_workload(arguments: Arguments, workload: str, bar: TextIO) -> str:
    from gpu_scheduler.simulate.sharing import command

    promises = _promises(arguments, "fair,strict")
    if arguments.checkpoint_seconds is not None and workload != "random":
        raise ValueError("--checkpoint-seconds: is for --workload random")
    request = command.Request(
        workload,
        seed=42 if arguments.seed is None else arguments.seed,
        load=0.9 if arguments.load is None else arguments.load,
        hours=arguments.hours,
        checkpoint_seconds=arguments.checkpoint_seconds,
        nodes=arguments.nodes,
        pods=arguments.pods,
        plot=arguments.plot,
    )
    found = command.simulate(request, promises, bar)
    return command.as_json(found) if arguments.output == "json" else command.as_table(found)


def _promises(arguments: Arguments, default: str) -> dict[str, Promises]:
    """The rules that were asked for, by name."""
    names = [n for each in arguments.preemption or [default] for n in each.split(",")]
    changed = {name: getattr(arguments, name) for name in _FAIR}
    changed["window_seconds"] = changed.pop("share_window_seconds")
    return promises_of(names, changed)


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

    promises = _promises(arguments, "fair")
    if len(promises) > 1:
        raise ValueError(f"--preemption {','.join(promises)}: on a cluster one of them")
    request = ClusterRequest(
        promises=next(iter(promises.values())),
        packing=Packing(arguments.policy),
        add=arguments.add,
        remove=arguments.remove,
        operator_namespace=arguments.operator_namespace or "gpu-scheduler",
        consolidation=arguments.consolidation,
        context=arguments.context,
    )
    report = simulate(request)
    if arguments.output == "json":
        return json.dumps(report.to_json(), indent=2)
    return table(report)
