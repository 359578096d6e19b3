"""What libgpucap's ledgers say of containers: the most memory at once, and what was refused.

Looks see only what is held at that moment. A ledger is its tenant's own file: a peak above the cap
is the cap.
"""

from collections.abc import Collection, Mapping

from gpu_scheduler.agent.history.rows import share_owner
from gpu_scheduler.agent.history.slot import RingOwner
from gpu_scheduler.agent.ledger import LedgerError, MemoryMarks, open_inside
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.usage import ContainerUse


class Marks:
    """Reads them."""

    def __init__(self, procfs: ProcFS) -> None:
        """``procfs``: of the node."""
        self._procfs = procfs

    def read(self, uses: Collection[ContainerUse]) -> dict[RingOwner, MemoryMarks]:
        """Of every share whose container has a process that can be looked into."""
        found: dict[RingOwner, MemoryMarks] = {}
        for use in uses:
            by_device = self._of(use) if use.container.own.promised else {}
            for each in use.uses:
                marks = by_device.get(each.uuid)
                if marks is not None:
                    peak = None if marks.peak_mib is None else min(marks.peak_mib, each.cap_mib)
                    found[share_owner(use, each.uuid)] = MemoryMarks(peak, marks.refused)
        return found

    def _of(self, use: ContainerUse) -> Mapping[str, MemoryMarks]:
        for process in use.processes:
            if process.process is None:
                continue
            try:
                with open_inside(self._procfs.inside(process.pid, "/")) as ledger:
                    if self._procfs.started(process.pid) == process.process.started:
                        return ledger.marks()
            except (LedgerError, OSError):
                continue  # said by ``trueup``
        return {}
