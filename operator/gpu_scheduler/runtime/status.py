"""What a GPUJob's status says: a pure function of what the operator knows.

Times come from the previous status while a condition has not changed, so equal knowledge gives an
equal status and nothing is written. Called by the status writer.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gpu_scheduler.api.condition import Condition, ConditionType
from gpu_scheduler.api.gpujob import GPUJobStatus, Phase, Placement, PodCounts
from gpu_scheduler.api.sweep_status import SweepStatus
from gpu_scheduler.core.decision import Place, Reason, Wait
from gpu_scheduler.core.request import PodUID, ProjectName
from gpu_scheduler.core.units import gpu_from_milli
from gpu_scheduler.runtime import protection
from gpu_scheduler.runtime.preemption import Preempted
from gpu_scheduler.runtime.protection import Watched
from gpu_scheduler.runtime.sweeps.status import Judged
from gpu_scheduler.state.agents import worst
from gpu_scheduler.state.jobs import GPUJobRecord, JobRecord
from gpu_scheduler.state.pods import PodRecord, Stage

_PLACEMENTS = 8


def gpujob_status(
    job: GPUJobRecord,
    jobs: Iterable[JobRecord],
    pods: Iterable[PodRecord],
    *,
    project: ProjectName | None,
    wait: Wait | None,
    now: str,
    watched: Watched | None = None,
    preempted: Preempted | None = None,
    sweep: Judged | None = None,
    aside: str = "",
    assumed: Mapping[PodUID, Place] = MappingProxyType({}),
) -> GPUJobStatus:
    """The status that a GPUJob should have.

    Args:
        job: the GPUJob, with the status that it has.
        jobs: its Jobs.
        pods: its pods.
        project: that is charged.
        wait: why its next pod does not start.
        now: RFC 3339.
        watched: what agents know.
        preempted: for whom pods of it had to go.
        sweep: what came of its trials, where it is a sweep and that is known.
        aside: why the planner has set it aside; empty = it has not.
        assumed: placements that were decided and that the watch does not show yet.
    """
    watched = watched or Watched()
    own = [j for j in jobs if j.owner_uid == job.uid]
    live = [p for p in pods if p.stage is not Stage.ENDED]
    held = [p for p in live if p.allocation is not None]
    roles = job.asks.keys() or {""}
    complete = {j.role for j in own if j.complete} >= roles
    failure = next((_failure(j) for j in own if j.failure), "")
    if sweep is not None:  # the verdict over trials, not that of the Jobs
        complete, failure = sweep.ended is Phase.SUCCEEDED, sweep.failure
    elif job.spec is not None and job.spec.sweep is not None:
        complete, failure = False, ""  # until its results have been read
    ended = _ended(job, complete, failure) if sweep is None else sweep.ended
    running = sum(1 for p in live if p.stage is Stage.RUNNING)
    succeeded = sum(j.succeeded for j in own)
    failed = sum(j.failed for j in own)
    placing = next((assumed[p.uid].node for p in live if p.uid in assumed), "")
    phase, reason, message = _phase(job, ended, running, held, wait, failure, placing)
    by = preempted_by(job, own, live, preempted) if not ended else None
    if by and not job.complaint and phase in (Phase.PENDING, Phase.RUNNING):
        going = any(pod.deleting or _victim(pod, preempted) for pod in live)
        reason, message = _gave_way(by, reason, message, wait, going=going)
    waiting = wait if phase in (Phase.PENDING, Phase.RUNNING) and not job.complaint else None
    total = job.spec.total_pods if job.spec else 0
    if not own and ended:  # the Job is gone, its numbers live on in the status
        counts = PodCounts.model_validate(job.status.get("pods") or {})
    else:
        stopped = ended or phase is Phase.SUSPENDED
        pending = 0 if stopped else len(live) - running + _unmade(job, own)
        counts = PodCounts(pending=pending, running=running, succeeded=succeeded, failed=failed)
    if sweep is not None:
        counts = sweep.counts(counts.pending, counts.running)
        if not ended and not reason and sweep.reason:
            reason, message = sweep.reason, sweep.message
    if ended is Phase.SUCCEEDED and job.spec is not None and job.spec.sweep is not None:
        message = sweep.message if sweep is not None else str(job.status.get("message", ""))
    milli = sum(g.milli for p in held if p.allocation for g in p.allocation.grants)
    nodes = list(dict.fromkeys(p.node for p in held))
    return GPUJobStatus(
        observed_generation=job.generation,
        phase=phase,
        reason=reason,
        message=message,
        preempted_by=by,
        queue_position=waiting.position if waiting else None,
        pods=counts,
        allocated_gpu=gpu_from_milli(milli),
        placements=[_placement(p, watched) for p in sorted(held, key=_newest)[:_PLACEMENTS]],
        sweep=sweep.status if sweep is not None else _sweep_before(job),
        conditions=_conditions(job, phase, complete, failure, held, watched, now, message, aside),
        project=project,
        gpu=f"{gpu_from_milli(milli)}/{_asked(job)}",
        pod_summary=f"{counts.running}/{counts.succeeded}/{total}",
        node=_nodes(nodes),
    )


def _unmade(job: GPUJobRecord, own: list[JobRecord]) -> int:
    """Pods that the job asks for and that its Jobs, narrower than it, do not make yet."""
    if job.spec is None or not own:
        return 0
    left = job.spec.total_pods - sum(j.succeeded + j.failed_indexes for j in own)
    wide = sum(j.parallelism for j in own if not (j.complete or j.failure))
    return max(0, min(job.spec.pods_at_once, left) - wide)


def _sweep_before(job: GPUJobRecord) -> SweepStatus | None:
    """What its status said of a sweep whose results have not been read yet."""
    before = job.status.get("sweep")
    return SweepStatus.model_validate(before) if before else None


def preempted_by(
    job: GPUJobRecord, jobs: list[JobRecord], live: list[PodRecord], preempted: Preempted | None
) -> str | None:
    """For whom pods had to go that do not hold devices again; after a restart by the status."""
    by = preempted.by if preempted else job.status.get("preemptedBy")
    if not by or job.spec is None or job.spec.suspend:
        return None
    if any(_victim(pod, preempted) for pod in live):
        return str(by)
    left = job.spec.total_pods - sum(j.succeeded + j.failed_indexes for j in jobs)
    holding = sum(1 for pod in live if pod.allocation is not None and not pod.deleting)
    return str(by) if holding < min(job.spec.pods_at_once, left) else None


def _victim(pod: PodRecord, preempted: Preempted | None) -> bool:
    return preempted is not None and pod.uid == preempted.pod


def _gave_way(
    by: str, reason: str, message: str, wait: Wait | None, *, going: bool
) -> tuple[str, str]:
    """Reason and message of a job that had to give way; what it can never get says more."""
    if wait is None and going:
        return Reason.PREEMPTED, f"gives way to {by}, then waits for its turn"
    if wait is None:
        return Reason.PREEMPTED, f"gave way to {by}; its pods are about to be made anew"
    if wait.reason in (Reason.INVALID, Reason.UNSATISFIABLE, Reason.EXCEEDS_QUOTA):
        return reason, message
    return Reason.PREEMPTED, f"gave way to {by}; {wait.message}"


def _ended(job: GPUJobRecord, complete: bool, failure: str) -> Phase | None:
    if complete:
        return Phase.SUCCEEDED
    if failure:
        return Phase.FAILED
    before = job.status.get("phase")
    return Phase(before) if before in (Phase.SUCCEEDED, Phase.FAILED) else None


def _phase(
    job: GPUJobRecord,
    ended: Phase | None,
    running: int,
    held: list[PodRecord],
    wait: Wait | None,
    failure: str,
    placing: str,
) -> tuple[Phase, str, str]:
    if ended is Phase.SUCCEEDED:
        return ended, "", ""
    if ended is Phase.FAILED:
        return ended, "", failure or str(job.status.get("message", ""))
    if job.complaint:
        return Phase.RUNNING if running else Phase.PENDING, Reason.INVALID, job.complaint
    if job.spec is not None and job.spec.suspend:
        return Phase.SUSPENDED, Reason.SUSPENDED, "spec.suspend is true: set it to false to go on"
    phase = Phase.RUNNING if running else Phase.PENDING
    if wait is not None:
        return phase, wait.reason, wait.message
    if not running and held:
        return phase, "", f"placed on {held[0].node}, containers are starting"
    if not running and placing:  # most are confirmed before anything is written of it
        return phase, Reason.PLACING, f"goes to {placing}: the API server has not confirmed it yet"
    return phase, "", ""


def _asked(job: GPUJobRecord) -> str:
    """GPUs that the pods at once ask for; memory is a share only once a device is known."""
    if job.spec is None:
        return "?"
    if any(r.mib for ask in job.asks.values() for r in ask.devices):
        return job.spec.gpu_memory or "memory"
    milli = (ask.at_once * sum(r.count * r.milli for r in ask.devices) for ask in job.asks.values())
    return gpu_from_milli(sum(milli))


def _failure(job: JobRecord) -> str:
    return f"role {job.role}: {job.failure}" if job.role else job.failure


def _newest(pod: PodRecord) -> tuple[int, str]:
    return (-pod.version, pod.name)


def _placement(pod: PodRecord, watched: Watched) -> Placement:
    grants = pod.allocation.grants if pod.allocation else ()
    per_device: dict[str, int] = {}
    for grant in grants:
        per_device[grant.device] = per_device.get(grant.device, 0) + grant.mib
    return Placement(
        pod=pod.name,
        node=pod.node,
        devices=list(per_device),
        memory_mib=max(per_device.values(), default=0),
        isolation=worst(watched.reports(pod)) or None,
    )


def _nodes(nodes: list[str]) -> str | None:
    if not nodes:
        return None
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} +{len(nodes) - 1} more"


def _conditions(
    job: GPUJobRecord,
    phase: Phase,
    complete: bool,
    failure: str,
    held: list[PodRecord],
    watched: Watched,
    now: str,
    message: str,
    aside: str,
) -> list[Condition]:
    before = {c["type"]: c for c in job.status.get("conditions") or () if "type" in c}
    placed = bool(held)
    wanted = [
        (
            "Accepted",
            not job.complaint,
            "Invalid" if job.complaint else "Accepted",
            job.complaint or _fewer_trials(job),
        ),
        ("Placed", placed, "Placed" if placed else "NotPlaced", ""),
        *protection.conditions(held, watched, before),
    ]
    if aside:
        wanted.append((ConditionType.SET_ASIDE, True, "UnexpectedError", aside))
    if complete or phase is Phase.SUCCEEDED:
        wanted.append(("Complete", True, "Succeeded", message or "every index succeeded"))
    if phase is Phase.FAILED:
        wanted.append(("Failed", True, "FailedIndexes", failure or _message(before, "Failed")))
    return [_condition(before.get(w[0]), *w, job.generation, now) for w in wanted]


def _fewer_trials(job: GPUJobRecord) -> str:
    """What becomes of a grid that was to have more trials than there are."""
    spec = job.spec
    if spec is None or spec.sweep is None or (spec.completions or 0) <= spec.total_pods:
        return ""
    return (
        f"spec.completions is {spec.completions:,}, but the grid has {spec.total_pods:,} trials: "
        "all of them run, and no more"
    )


def _message(before: Mapping[str, Mapping[str, Any]], kind: str) -> str:
    return str(before.get(kind, {}).get("message", ""))


def _condition(
    before: Mapping[str, Any] | None,
    kind: str,
    holds: bool,
    reason: str,
    message: str,
    generation: int,
    now: str,
) -> Condition:
    status = "True" if holds else "False"
    same = before is not None and before.get("status") == status
    since = str(before["lastTransitionTime"]) if before is not None and same else now
    return Condition.model_validate(
        {
            "type": kind,
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    )
