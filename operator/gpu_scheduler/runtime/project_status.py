"""What a GPUProject's status says: a pure function of what the operator knows.

Called by the status writer for every project whenever a plan may have changed, hence cheap: sums
that the state keeps, and one pass over the project's waiting jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpu_scheduler.api.condition import Condition, ConditionType
from gpu_scheduler.api.gpuproject import GPUProjectStatus, JobCounts, ModelHoldings
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.state.owners import Claim
from gpu_scheduler.state.projects import ProjectRecord


def project_status(
    record: ProjectRecord,
    *,
    allocated_milli: int,
    fair_share_milli: int = 0,
    waiting: Iterable[WaitingJob],
    running_jobs: int,
    conflicts: tuple[Claim, ...],
    broken: str = "",
    aside: str = "",
    by_model: Sequence[ModelHoldings] = (),
    before: Mapping[str, Any],
    now: str,
) -> GPUProjectStatus:
    """The status that a project should have (``before``: the one it has, as JSON).

    ``broken``: why it may not get its quota although it asks for it. ``by_model``: what it holds of
    models that its quota names. ``aside``: why the planner has set it aside.
    """
    jobs = list(waiting)
    pending = sum(pod.shape.nominal_milli for job in jobs for pod in job.pods)
    return GPUProjectStatus(
        observed_generation=record.generation,
        allocated_gpu=gpu_from_milli(allocated_milli),
        borrowed_gpu=gpu_from_milli(max(0, allocated_milli - record.project.quota_milli)),
        fair_share_gpu=gpu_from_milli(fair_share_milli),
        by_model=list(by_model),
        pending_gpu=gpu_from_milli(pending),
        jobs=JobCounts(running=running_jobs, pending=len(jobs)),
        conditions=[
            _accepted(record, conflicts, before, now),
            _condition("QuotaCovered", "" if record.problem else broken, record, before, now),
            *([_set_aside(aside, record, before, now)] if aside else []),
        ],
    )


def _accepted(
    record: ProjectRecord, conflicts: tuple[Claim, ...], before: Mapping[str, Any], now: str
) -> Condition:
    problem = record.problem or "; ".join(
        f"spec.namespaces: {c.name} belongs to GPUProject {c.owner} already; remove it here "
        "or there"
        for c in conflicts[:5]
    )
    return _condition("Accepted", problem, record, before, now)


def _set_aside(why: str, record: ProjectRecord, before: Mapping[str, Any], now: str) -> Condition:
    kind = ConditionType.SET_ASIDE
    return _dated(kind, "True", "UnexpectedError", why, record, before, now)


def _condition(
    kind: str, problem: str, record: ProjectRecord, before: Mapping[str, Any], now: str
) -> Condition:
    good, bad = {"Accepted": ("Accepted", "Invalid"), "QuotaCovered": ("Covered", "Overcommitted")}[
        kind
    ]
    status = "False" if problem else "True"
    reason = bad if problem else good
    return _dated(kind, status, reason, problem, record, before, now)


def _dated(
    kind: str,
    status: str,
    reason: str,
    message: str,
    record: ProjectRecord,
    before: Mapping[str, Any],
    now: str,
) -> Condition:
    known = next((c for c in before.get("conditions") or () if c.get("type") == kind), None)
    since = known["lastTransitionTime"] if known and known.get("status") == status else now
    return Condition.model_validate(
        {
            "type": kind,
            "status": status,
            "observedGeneration": record.generation,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    )
