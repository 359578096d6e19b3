"""GPUs that are held and have not been used for a while: rows and values. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpu_scheduler.cli.holders.held import gpus
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.use.amounts import UNKNOWN, between, duration, hours
from gpu_scheduler.cli.use.values import rfc3339
from gpu_scheduler.cli.use.workload import UsedWorkload
from gpu_scheduler.usage.giving_back import give_back

_COLUMNS = ("NAMESPACE/NAME", "PROJECT", "TYPE", "GPU", "IDLE", "GPU-HOURS", "GIVES THEM BACK")


@dataclass(frozen=True, slots=True)
class IdleWork:
    """One that is idle; ``seconds``: since its last kernel."""

    use: UsedWorkload
    seconds: float

    @property
    def wasted_gpu_hours(self) -> float:
        """GPUs that it holds × hours since its last kernel."""
        return self.use.milli / 1000 * self.seconds / 3600

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "namespace": self.use.namespace,
            "kind": self.use.kind,
            "name": self.use.name,
            "project": self.use.project or None,
            "milliGPU": self.use.milli,
            "idleSince": rfc3339(self.use.idle_since),
            "idleSeconds": round(self.seconds),
            "gpuHoursWasted": round(self.wasted_gpu_hours, 4),
            "command": _gives_back(self.use),
        }


def idle_work(found: Iterable[UsedWorkload], now: datetime) -> list[IdleWork]:
    """Those that hold GPUs and are idle; who wastes most first."""
    idle = [
        IdleWork(each, seconds)
        for each in found
        if each.runs and (seconds := between(each.idle_since, now)) is not None
    ]
    return sorted(idle, key=lambda each: (-each.wasted_gpu_hours, each.use.key))


def unknown(found: Iterable[UsedWorkload]) -> list[UsedWorkload]:
    """Those that hold GPUs and of whose use nobody knows."""
    return [w for w in found if w.runs and w.idle_since is None and w.busy.now is None]


def idle_table(found: Iterable[IdleWork]) -> PrintedTable:
    """A row for each."""
    table = PrintedTable(_COLUMNS)
    for each in found:
        use = each.use
        cells = [use.key, use.project or UNKNOWN, use.type or UNKNOWN, gpus(use.milli)]
        figures = [duration(each.seconds), hours(each.wasted_gpu_hours), _gives_back(use)]
        table.rows.append([*cells, *figures])
    return table


def _gives_back(use: UsedWorkload) -> str:
    return give_back(use.kind, use.namespace, use.name)
