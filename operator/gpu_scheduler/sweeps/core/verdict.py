"""Whether a sweep goes on, has succeeded or has failed, and whether more trials may start.

The verdict is ours, not that of the Jobs: a sweep may succeed although some of its trials failed.
It is a function of what is counted now, so a sweep that gets more trials goes on.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpu_scheduler.api.search import SweepReason
from gpu_scheduler.sweeps.core.outcome import FAILURES, TrialState
from gpu_scheduler.sweeps.core.table import Summary


class SweepPhase(StrEnum):
    """Where a sweep is in its life."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class FatalExit:
    """A trial that ended with one of ``failFastExitCodes``."""

    trial: int
    code: int


@dataclass(frozen=True, slots=True)
class SweepVerdict:
    """The judgement. Failed sweeps stop what runs; after a target, what runs may finish."""

    phase: SweepPhase
    reason: SweepReason = SweepReason.NONE
    message: str = ""

    @property
    def may_start(self) -> bool:
        """Whether waiting trials may start."""
        return self.phase is SweepPhase.RUNNING and self.reason is SweepReason.NONE


def judge(
    summary: Summary,
    *,
    completions: int,
    running: int,
    max_failed: int | None = None,
    fatal: FatalExit | None = None,
) -> SweepVerdict:
    """Judge a sweep.

    Args:
        summary: of the trials that have ended.
        completions: trials in all.
        running: trials that hold GPUs now.
        max_failed: how many trials may fail; None: any number, if another succeeds.
        fatal: a trial whose exit code says that no other can succeed.
    """
    failed, ended = summary.failed, summary.ended
    if fatal is not None:
        message = f"trial {fatal.trial} ended with exit code {fatal.code} (failFastExitCodes)"
        return SweepVerdict(SweepPhase.FAILED, SweepReason.FAIL_FAST, message)
    if max_failed is not None and failed > max_failed:
        message = f"{failed} trials failed, maxFailedTrials is {max_failed}{_most_often(summary)}"
        return SweepVerdict(SweepPhase.FAILED, SweepReason.TOO_MANY_FAILED, message)
    if summary.target_reached and summary.best is not None:
        phase = SweepPhase.RUNNING if running else SweepPhase.SUCCEEDED
        message = f"trial {summary.best.trial} reached the target with {summary.best.value!r}"
        return SweepVerdict(phase, SweepReason.TARGET_REACHED, message)
    if ended < completions:
        return SweepVerdict(SweepPhase.RUNNING)
    if not summary.counts.get(TrialState.SUCCEEDED):
        message = f"none of {ended} trials succeeded{_most_often(summary)}"
        return SweepVerdict(SweepPhase.FAILED, SweepReason.NONE_SUCCEEDED, message)
    message = f"{ended} trials ended, {failed} failed"
    return SweepVerdict(SweepPhase.SUCCEEDED, SweepReason.ALL_TRIALS_ENDED, message)


def _most_often(summary: Summary) -> str:
    """What most trials failed of, and what the last of these says."""
    counts = {state: n for state, n in summary.counts.items() if state in FAILURES}
    if not counts:
        return ""
    state = max(counts, key=lambda each: (counts[each], each))
    said = next((e.message for e in summary.errors if e.state is state and e.message), "")
    how = "most often" if [*counts.values()].count(counts[state]) == 1 else "such as"
    return f"; {how} {state} ({counts[state]})" + (f": {said}" if said else "")
