"""What a sweep needs of this operator beyond GPUs: said before any trial runs in vain."""

from gpu_scheduler.sweeps.core.results import FILE
from gpu_scheduler.sweeps.runtime.record import Sweep
from gpu_scheduler.sweeps.search.studies import Studies

_NO_LOGS = (
    "spec.sweep.resultFrom: this operator reads no logs: let the program write its result to "
    f"{FILE}, or let an administrator set the chart value sweeps.readLogs"
)


class Prerequisites:
    """Adaptive searches need a library, and results from logs the right to read them."""

    def __init__(self, studies: Studies, *, reads_logs: bool) -> None:
        """``studies`` knows whether adaptive searches can be."""
        self._studies = studies
        self._reads_logs = reads_logs

    async def unmet(self, sweep: Sweep, *, begun: bool) -> str:
        """What a sweep lacks here; empty: nothing.

        ``begun``: trials have run, or do: a sweep of before logs were not read any more goes on.
        """
        if sweep.adaptive.unsearchable:
            return sweep.adaptive.unsearchable
        if sweep.spec.result_from is not None and not self._reads_logs and not begun:
            return _NO_LOGS
        missing = await self._studies.missing() if sweep.search.adaptive else ""
        return f"spec.sweep.algorithm: {missing}" if missing else ""
