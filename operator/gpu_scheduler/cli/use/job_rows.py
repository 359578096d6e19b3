"""Who holds GPUs now, each with what is recorded of its use: for ``top jobs``. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpu_scheduler.cli.holders.held import gpus, naturally
from gpu_scheduler.cli.holders.holder import Holder
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.use.amounts import UNKNOWN, cores_pair, gib_pair
from gpu_scheduler.cli.use.read import UseView
from gpu_scheduler.cli.use.values import use_json
from gpu_scheduler.cli.use.workload import HostFigures, MemoryFigures, UsedWorkload

_COLUMNS = (
    *("NAMESPACE/NAME", "PROJECT", "GPU", "BUSY(now/mean)", "MEMORY(now/cap)"),
    *("CPU(used/limit)", "RAM(used/limit)", "IDLE", "ADVICE", "PODS|", "NODE|"),
)


@dataclass(frozen=True, slots=True)
class JobUse:
    """One of them.

    Attributes:
        holder: what pods say; None: they may not be read.
        use: what is recorded; None: nothing.
    """

    holder: Holder | None
    use: UsedWorkload | None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        if self.holder is not None:
            return self.holder.key
        return self.use.key if self.use is not None else ""

    @property
    def milli(self) -> int:
        """Milli-GPU that it holds."""
        if self.holder is not None:
            return self.holder.milli
        return self.use.milli if self.use is not None else 0

    @property
    def project(self) -> str:
        """That is charged; empty: not known."""
        of_use = "" if self.use is None else self.use.project
        return (self.holder.project if self.holder is not None else "") or of_use

    @property
    def memory(self) -> MemoryFigures:
        """Of all its GPUs together, the cap too."""
        found = MemoryFigures() if self.use is None else self.use.memory
        if self.holder is not None:
            return MemoryFigures(now=found.now, cap=self.holder.mib or None)
        alone = self.use is not None and self.use.pods == 1 and self.use.milli <= 1000
        return MemoryFigures(now=found.now, cap=found.cap if alone else None)

    def busy(self) -> str:
        """Percent now and as a mean, or the mean of five minutes that agents tell."""
        if self.use is None:
            percent = None if self.holder is None else self.holder.percent
            return UNKNOWN if percent is None else f"{percent} %"
        now, mean = self.use.busy.now, self.use.busy.mean
        if now is None and mean is None:
            return UNKNOWN
        return f"{_or_dash(now)}/{_or_dash(mean)} %"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        of_holder = {} if self.holder is None else self.holder.to_json()
        namespace, _, name = self.key.partition("/")
        return {
            "namespace": namespace,
            "name": name,
            **of_holder,
            "project": self.project or None,
            "milliGPU": self.milli,
            "utilizationPercent": None if self.holder is None else self.holder.percent,
            "use": None if self.use is None else use_json(self.use),
        }


def job_rows(holders: Iterable[Holder], use: UseView, only: str = "") -> list[JobUse]:
    """Who holds most first.

    Args:
        holders: of the pods that may be read.
        use: what is recorded.
        only: the namespace whose pods alone may be read; empty: all.
    """
    found = [JobUse(each, use.find(each.namespace, each.name, each.kind)) for each in holders]
    if only:  # others may be recorded, whose pods may not be read
        found += [JobUse(None, w) for w in use.workloads() if w.runs and w.namespace != only]
    return sorted(found, key=lambda row: (-row.milli, naturally(row.key)))


def job_table(rows: Sequence[JobUse], now: datetime) -> PrintedTable:
    """The table; ``now``: until when something is idle."""
    return PrintedTable(_COLUMNS, [[*_cells(row, now)] for row in rows])


def _cells(row: JobUse, now: datetime) -> Iterator[str]:
    from gpu_scheduler.cli.lists.job_table import age

    use, holder = row.use, row.holder
    host = HostFigures() if use is None else use.host
    since = None if use is None else use.idle_since
    yield row.key
    yield row.project or UNKNOWN
    yield gpus(row.milli)
    yield row.busy()
    yield gib_pair(row.memory.now, row.memory.cap)
    yield cores_pair(host.cpu_milli, host.cpu_limit_milli)
    yield gib_pair(host.ram_mib, host.ram_limit_mib)
    yield UNKNOWN if since is None else age(since.isoformat(), now)
    yield use.advice[0].rule if use is not None and use.advice else UNKNOWN
    pods = len(holder.pods) if holder is not None else use.pods if use is not None else 0
    yield str(pods)
    yield ", ".join(holder.nodes) if holder is not None else UNKNOWN


def _or_dash(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
