"""What a sweep's status still tells of results that are stored nowhere any more.

A leader reads results from ConfigMaps and pods. Where somebody deleted or changed the one and the
others are gone, the status is the last that knows: the best trials with their values, the latest
failures, and how many had ended. Those are taken over, so that the best trial stays the best, and
what is missing is counted. The end of a sweep that has ended stays what it was.
"""

from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.sweep_status import RankedTrial, SweepStatus, TrialCounts
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.runtime.record import LostResults, Sweep


def salvage(sweep: Sweep, job: GPUJobRecord, reading: Collection[int] = ()) -> list[int]:
    """Take over what only the status knows; the trials.

    ``reading``: trials whose log is being read, which will tell all of it.
    """
    status = _status(job)
    if status is None:
        return []
    told = LostResults(_ended(status.counts) - len(reading), status.counts.result_missing)
    if told.ended <= sweep.ended:
        return []
    sweep.told = told
    return [
        outcome.trial
        for outcome in _outcomes(sweep, status)
        if outcome.trial < sweep.completions and outcome.trial not in reading and sweep.put(outcome)
    ]


def lost(sweep: Sweep) -> str:
    """What of its results is lost, as a sentence; empty if nothing is known to be."""
    if sweep.told is None or not (missing := sweep.lost):
        return ""
    return (
        f"{missing:,} of {sweep.told.ended:,} results are lost: a ConfigMap {sweep.name}-results-N "
        "was deleted or changed by somebody, and the pods are gone that could tell; best, top and "
        "errors are as they were"
    )


def as_it_ended(job: GPUJobRecord, sweep: Sweep) -> Judged | None:
    """The end of a sweep as its status told it, with what is lost; None if nothing is."""
    status, sentence = _status(job), lost(sweep)
    if status is None or not sentence:
        return None
    kept = status.model_copy(update={"lost_results": sentence})
    return Judged(kept, Phase(job.status["phase"]), "", str(job.status.get("message", "")))


def _status(job: GPUJobRecord) -> SweepStatus | None:
    try:
        return SweepStatus.model_validate(job.status["sweep"])
    except (KeyError, TypeError, ValidationError):
        return None


def _ended(counts: TrialCounts) -> int:
    return sum(
        (
            counts.succeeded,
            counts.pruned,
            counts.failed,
            counts.result_missing,
            counts.objective_not_finite,
        )
    )


def _outcomes(sweep: Sweep, status: SweepStatus) -> Iterator[Outcome]:
    best = [status.best] if status.best is not None else []
    for ranked in (*best, *status.top):
        if ranked.trial >= 0 and isfinite(ranked.value):
            yield Outcome(
                ranked.trial,
                TrialState.SUCCEEDED,
                ranked.value,
                parameters=_parameters(sweep, ranked),
            )
    for error in status.errors:
        if error.trial >= 0 and error.state in (
            TrialState.FAILED,
            TrialState.RESULT_MISSING,
            TrialState.NOT_FINITE,
        ):
            yield Outcome(error.trial, TrialState(error.state), message=error.message)


def _parameters(sweep: Sweep, ranked: RankedTrial) -> tuple[Any, ...] | None:
    """What a trial of an adaptive search was given, as far as the status has it, as text."""
    names, known = sweep.search.names, ranked.parameters
    if not sweep.search.adaptive or not isinstance(known, Mapping):
        return None
    return tuple(known[name] for name in names) if set(names) <= known.keys() else None
