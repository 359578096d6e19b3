"""What workloads could do better, as lines and as values. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

from gpu_scheduler.cli.holders.held import gpus
from gpu_scheduler.cli.use.amounts import percent
from gpu_scheduler.cli.use.saving import saving
from gpu_scheduler.cli.use.values import advice_json
from gpu_scheduler.cli.use.workload import UsedWorkload


def advised(found: Iterable[UsedWorkload]) -> list[UsedWorkload]:
    """Those that have advice, who holds most first."""
    return sorted((each for each in found if each.advice), key=lambda w: (-w.milli, w.key))


def lines(use: UsedWorkload) -> Iterator[str]:
    """Its advice, the headline first; what is indented belongs to the line above."""
    held = "holds" if use.runs else "held"
    yield f"{use}: {held} {gpus(use.milli)} GPUs, busy {percent(use.busy.mean)} of the time"
    for each in use.advice:
        yield f"  {each.rule}: {each.message}"
        if each.command:
            yield f"    {each.command}"
        if said := saving(use, each):
            yield f"    {said}"


def values(found: Iterable[UsedWorkload]) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {
            "namespace": each.namespace,
            "kind": each.kind,
            "name": each.name,
            "project": each.project or None,
            "state": "Running" if each.runs else "Ended",
            "milliGPU": each.milli,
            "advice": [advice_json(each, one) for one in each.advice],
        }
        for each in found
    ]
