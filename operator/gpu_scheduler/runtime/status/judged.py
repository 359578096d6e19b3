"""A sweep as the status of its GPUJob shows it, by whoever knows its trials."""

from dataclasses import dataclass

from gpu_scheduler.api.gpujob import Phase, PodCounts
from gpu_scheduler.api.sweep_status import SweepStatus


@dataclass(frozen=True, slots=True)
class Judged:
    """A sweep as its status shows it."""

    status: SweepStatus
    ended: Phase | None
    reason: str  # why no trial starts, while some run
    message: str

    @property
    def failure(self) -> str:
        """Why it failed; empty if it has not."""
        return self.message if self.ended is Phase.FAILED else ""

    def counts(self, pending: int, running: int) -> PodCounts:
        """Pods by state, as the trials are."""
        trials = self.status.counts
        return PodCounts(
            pending=pending,
            running=running,
            succeeded=trials.succeeded + trials.pruned,
            failed=trials.failed + trials.result_missing + trials.objective_not_finite,
        )
