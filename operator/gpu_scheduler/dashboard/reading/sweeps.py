"""Searches as rows, and what their status says of single trials."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gpu_scheduler.api.sweep_status import RankedTrial, SweepStatus
from gpu_scheduler.dashboard.picture import SweepDetail
from gpu_scheduler.dashboard.rows import JobRow, Ranked, Step, SweepRow
from gpu_scheduler.state.jobs.job import GPUJobRecord


def sweep_row(row: JobRow, job: GPUJobRecord) -> SweepRow | None:
    """Of a GPUJob; None: it searches for nothing."""
    sweep = job.spec.sweep if job.spec is not None else None
    if sweep is None:
        return None
    status = _status(job.status)
    objective = sweep.objective
    trials = status.trials if status is not None else row.pods
    counts = _counts(status, trials)
    return SweepRow(
        ref=row.ref,
        project=row.project,
        phase=row.phase,
        objective=objective.metric if objective is not None else "",
        goal=str(objective.goal) if objective is not None else "",
        trials=trials,
        counts=counts,
        best=_ranked(status.best) if status is not None and status.best is not None else None,
        message=row.message,
        created=row.created,
    )


def sweep_detail(job: GPUJobRecord, at: float) -> SweepDetail | None:
    """What its status says of trials; None: nothing yet."""
    status = _status(job.status)
    if status is None:
        return SweepDetail(top=(), errors=())
    return SweepDetail(
        top=tuple(map(_ranked, status.top)),
        errors=tuple(
            Step(at=at, kind=each.state, words=f"trial {each.trial}", detail=each.message)
            for each in status.errors
        ),
    )


def _status(status: Mapping[str, Any]) -> SweepStatus | None:
    try:
        found = status.get("sweep")
        return SweepStatus.model_validate(found) if found else None
    except ValidationError:  # somebody else's words
        return None


def _counts(status: SweepStatus | None, trials: int) -> dict[str, int]:
    if status is None:
        return {"waiting": trials, "running": 0, "succeeded": 0, "pruned": 0, "failed": 0}
    known = status.counts
    failed = known.failed + known.result_missing + known.objective_not_finite
    over = known.running + known.succeeded + known.pruned + failed
    return {
        "waiting": max(trials - over, 0),
        "running": known.running,
        "succeeded": known.succeeded,
        "pruned": known.pruned,
        "failed": failed,
    }


def _ranked(trial: RankedTrial) -> Ranked:
    return Ranked(trial=trial.trial, value=trial.value, parameters=dict(trial.parameters))
