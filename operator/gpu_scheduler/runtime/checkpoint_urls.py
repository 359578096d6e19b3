"""The address under which a pod says that it has saved its work, in the write that places it.

Pods of a GPUJob without ``spec.checkpoint`` get none, and nobody does where reports are switched
off. Stands between the binder and whoever else sets something in that write.
"""

from collections.abc import Callable, Mapping

from gpu_scheduler.api.names import CHECKPOINT_URL
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.tokens import address
from gpu_scheduler.runtime.binder import More
from gpu_scheduler.state.cluster_state import ClusterState


class CheckpointUrls:
    """Adds addresses to what ``more`` sets."""

    def __init__(self, state: ClusterState, more: More, report_url: str) -> None:
        """``report_url``: under which reports are taken; empty: nowhere."""
        self._state, self._more = state, more
        self._base = f"{report_url.rstrip('/')}/checkpoints" if report_url else ""

    def prepare(self, decision: Assignment, then: Callable[[], None]) -> bool:
        """See ``More``."""
        return self._more.prepare(decision, then)

    def annotations(self, decision: Assignment) -> Mapping[str, str]:
        """See ``More``."""
        others = self._more.annotations(decision)
        job = self._state.gpujobs.get(decision.job)
        if not self._base or job is None or job.spec is None or job.spec.checkpoint is None:
            return others
        return {**others, CHECKPOINT_URL: address(self._base, decision.pod)}
