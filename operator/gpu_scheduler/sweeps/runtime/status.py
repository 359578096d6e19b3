"""What the status of a GPUJob says of its sweep: of constant size, however many trials there are.

All names of parameters of the best trial are there, since a merge patch would keep those of an
earlier one; long values are cut.
"""

import json

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.search import SweepReason, text_of
from gpu_scheduler.api.sweep_status import RankedTrial, SweepStatus, TrialCounts, TrialError
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.table import Summary
from gpu_scheduler.sweeps.core.verdict import SweepPhase as SweepPhase
from gpu_scheduler.sweeps.core.verdict import SweepVerdict
from gpu_scheduler.sweeps.runtime.record import Sweep

_VALUE_CHARS = 60  # of a parameter's value
_SHORT_BYTES = 400  # of all parameters of one that is not the best
_ERROR_CHARS = 300


def judged(sweep: Sweep, running: int, lost: str = "") -> Judged:
    """The sweep as it stands.

    Args:
        sweep: what is known of it.
        running: trials that hold GPUs.
        lost: what of its results is lost.
    """
    summary, verdict = sweep.table.summary(), sweep.verdict(running)
    status = SweepStatus(
        trials=sweep.completions,
        counts=_counts(summary, running),
        best=_best(sweep, summary),
        top=[_ranked(sweep, outcome, _SHORT_BYTES) for outcome in summary.top],
        errors=[_error(outcome) for outcome in summary.errors],
        lost_results=lost,
        target_reached=summary.target_reached,
    )
    ended = None if verdict.phase is SweepPhase.RUNNING else Phase(verdict.phase.value)
    return Judged(status, ended, _reason(verdict), verdict.message)


def _reason(verdict: SweepVerdict) -> str:
    return (
        ""
        if verdict.reason in (SweepReason.NONE, SweepReason.ALL_TRIALS_ENDED)
        else verdict.reason.value
    )


def _counts(summary: Summary, running: int) -> TrialCounts:
    of = summary.counts
    return TrialCounts(
        running=running,
        succeeded=of.get(TrialState.SUCCEEDED, 0),
        pruned=of.get(TrialState.PRUNED, 0),
        failed=of.get(TrialState.FAILED, 0),
        result_missing=of.get(TrialState.RESULT_MISSING, 0),
        objective_not_finite=of.get(TrialState.NOT_FINITE, 0),
    )


def _best(sweep: Sweep, summary: Summary) -> RankedTrial | None:
    return _ranked(sweep, summary.best, None) if summary.best is not None else None


def _ranked(sweep: Sweep, outcome: Outcome, most_bytes: int | None) -> RankedTrial:
    parameters = sweep.parameters(outcome.trial) or {}
    shown = {name: _cut(text_of(value)) for name, value in parameters.items()}
    if most_bytes is not None:
        size = 0
        for name in list(shown):
            size += len(json.dumps({name: shown[name]}))
            if size > most_bytes:
                del shown[name]
    assert outcome.value is not None, "only trials with a value are ranked"
    return RankedTrial(trial=outcome.trial, value=outcome.value, parameters=shown)


def _error(outcome: Outcome) -> TrialError:
    message = outcome.message
    if len(message) > _ERROR_CHARS:
        message = message[: _ERROR_CHARS - 1] + "…"
    return TrialError(trial=outcome.trial, state=outcome.state.value, message=message)


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"
