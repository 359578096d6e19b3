"""Where a pod reports, in the write that places it: addresses that name the pod and bear no secret.

Who reports under one is shown by its token (``report_tokens``), so whoever reads a pod may know
them. Pods of a GPUJob that has nothing to report get none, and nobody does where reports are
switched off. Stands between the binder and whoever else sets something in that write.
"""

from collections.abc import Callable, Mapping

from gpu_scheduler.api.names import CHECKPOINT_URL, REPORT_URL
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.jobs.report_token import stops_early
from gpu_scheduler.runtime.binding.binder import More
from gpu_scheduler.state.cluster_state import ClusterState


class ReportUrls:
    """Adds addresses to what ``more`` sets."""

    def __init__(self, state: ClusterState, more: More, report_url: str) -> None:
        """``report_url``: under which reports are taken; empty: nowhere."""
        self._state = state
        self._more = more
        self._base = report_url.rstrip("/")

    def prepare(self, decision: Assignment, then: Callable[[], None]) -> bool:
        """See ``More``."""
        return self._more.prepare(decision, then)

    def annotations(self, decision: Assignment) -> Mapping[str, str]:
        """See ``More``."""
        found = dict(self._more.annotations(decision))
        job = self._state.gpujobs.get(decision.job)
        if not self._base or job is None or job.spec is None:
            return found
        if job.spec.checkpoint is not None:
            found[CHECKPOINT_URL] = f"{self._base}/checkpoints/{decision.pod}"
        if stops_early(job.spec):
            found[REPORT_URL] = f"{self._base}/trials/{decision.pod}"
        return found
