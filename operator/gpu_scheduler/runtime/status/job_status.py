"""What a GPUJob's status says: a pure function of what the operator knows.

Which state it is in is decided in ``states``; what is over is counted in ``counting``. Times come
from the previous status while a condition has not changed, so equal knowledge gives an equal status
and nothing is written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gpu_scheduler.api import states as words
from gpu_scheduler.api.advice import Advice
from gpu_scheduler.api.condition import ConditionType, condition
from gpu_scheduler.api.gpujob import GPUJobStatus, HeldRoom, Phase, PodCounts, PodPlacement
from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.api.sweep_status import SweepStatus
from gpu_scheduler.core.model.decision import DeviceAllocation, Reason, Wait
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB, gpu_from_milli
from gpu_scheduler.core.model.wording import memory
from gpu_scheduler.runtime.eviction.preemption import Preempted
from gpu_scheduler.runtime.status import counting, protection, states
from gpu_scheduler.runtime.status.counting import Counted, Failed
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.runtime.status.protection import Wanted, Watched
from gpu_scheduler.runtime.status.states import (
    NOTHING,
    JobContext,
    ReasonAndMessage,
    UnfinishedJob,
    is_victim,
)
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.nodes.agents import compute_percent, worst
from gpu_scheduler.state.pods.pod import PodRecord, Stage

_PLACEMENTS = 8
_HELD_ROOM = 16
_ABOUT = 100  # of so many places in a queue one is not told


def gpujob_status(
    job: GPUJobRecord,
    jobs: Iterable[JobRecord],
    pods: Iterable[PodRecord],
    *,
    project: ProjectName | None,
    now: str,
    known: JobContext = NOTHING,
) -> GPUJobStatus:
    """The status that a GPUJob should have.

    Args:
        job: the GPUJob, with the status that it has.
        jobs: its Jobs.
        pods: its pods.
        project: that is charged.
        now: RFC 3339.
        known: what parts of the operator know of it.
    """
    sweep = known.sweep
    own = [j for j in jobs if j.owner_uid == job.uid]
    known_pods = list(pods)
    live = [p for p in known_pods if p.stage is not Stage.ENDED]
    over = [p for p in known_pods if p.stage is Stage.ENDED]
    held = [p for p in live if p.allocation is not None]
    bad = counting.failures(over)
    counted = counting.count(own, over, bad)
    complete, failed_as = _verdict(job, own, bad, sweep)
    ended = _ended(job, complete, failed_as[1]) if sweep is None else sweep.ended
    running = sum(1 for p in live if p.stage is Stage.RUNNING)
    by = preempted_by(job, counted, live, known.preempted) if not ended else None
    if ended is None:
        told = (sweep.reason, sweep.message) if sweep is not None else ("", "")
        facts = UnfinishedJob(job, own, live, over, bad, counted, by, told, known)
        reason, message = states.say(facts)
        runs = any(p.stage is Stage.RUNNING and not _stops(job, p) for p in live)
        phase = _phase(job, runs, counted, reason)
    else:
        phase = ended
        reason, message = _last_words(job, phase, failed_as, sweep)
    waits = phase in (Phase.PENDING, Phase.RUNNING) and not job.complaint
    waiting = known.wait if waits else None
    total = job.spec.total_pods if job.spec else 0
    if not own and ended:  # the Job is gone, its numbers live on in the status
        counts = PodCounts.model_validate(job.status.get("pods") or {})
    else:
        stopped = ended or phase is Phase.SUSPENDED
        pending = 0 if stopped else len(live) - running + _prospective(job, own, counted)
        counts = PodCounts(
            pending=pending, running=running, succeeded=counted.succeeded, failed=counted.failed
        )
    if sweep is not None:
        counts = sweep.counts(counts.pending, counts.running)
    milli = sum(g.milli for p in held if p.allocation for g in p.allocation.devices)
    nodes = list(dict.fromkeys(p.node for p in held))
    before = str(job.status.get("firstFailure") or "")
    return GPUJobStatus(
        observed_generation=job.generation,
        phase=phase,
        reason=reason,
        message=message,
        first_failure=counting.first(bad, before) or None,
        preempted_by=by,
        evictions=known.cost.evictions or None,
        lost_gpu_seconds=round(known.cost.lost_gpu_seconds) if known.cost.evictions else None,
        queue_position=_position(job.status.get("queuePosition"), waiting) if waiting else None,
        pods=counts,
        allocated_gpu=gpu_from_milli(milli),
        placements=[_placement(p, known.watched) for p in sorted(held, key=_newest)[:_PLACEMENTS]],
        held_room=None if ended else _held_room(known),
        sweep=sweep.status if sweep is not None else _sweep_before(job),
        advice=_advice(job, known),
        usage=_usage_of(job, known) if ended else None,
        conditions=[
            condition(*each, judged=(job.generation, now), before=job.status)
            for each in _wanted(job, phase, complete, held, (reason, message), known)
        ],
        project=project,
        gpu=_usage(job, held),
        pod_summary=f"{counts.running}/{counts.succeeded}/{total}",
        node=_nodes(nodes),
    )


def _held_room(known: JobContext) -> list[HeldRoom] | None:
    """What is held for pods that have no place, or do not exist."""
    found: list[HeldRoom] = []
    nominated = [(each.place.node, each.place.devices) for each in known.nominated]
    found += _on_devices("nominated", nominated)
    found += _on_devices("reserved", [(each.node, each.devices) for each in known.reservations])
    return found[:_HELD_ROOM] or None


def _on_devices(
    held_as: Literal["nominated", "reserved"],
    places: Iterable[tuple[str, tuple[DeviceAllocation, ...]]],
) -> list[HeldRoom]:
    held: Counter[tuple[str, str]] = Counter()
    for node, devices in places:
        for allocated in devices:
            held[node, allocated.device] = min(
                DEVICE_MILLI, held[node, allocated.device] + allocated.milli
            )
    return [
        HeldRoom(node=node, device=device, milli_gpu=milli, held_as=held_as)
        for (node, device), milli in sorted(held.items())
    ]


def _advice(job: GPUJobRecord, known: JobContext) -> list[Advice] | None:
    """What was told last; that stays when it has ended, for the next one like it."""
    told = known.advice()
    if told is not None:
        return list(told) or None
    before = job.status.get("advice")
    return [Advice.model_validate(each) for each in before] if before else None


def _usage_of(job: GPUJobRecord, known: JobContext) -> JobUsage | None:
    """What it did with its GPUs: what was said, or more of it.

    After a change of leader the agents tell it one after the other, and of what ended long ago
    not at all.
    """
    told = job.status.get("usage")
    before = JobUsage.model_validate(told) if told else None
    now = known.usage()
    if before is None or now is None:
        return now or before
    return now if now.gpu_seconds >= before.gpu_seconds else before


def _position(told: object, waiting: Wait) -> int:
    """Its place in the queue, or the one that was told while that is less than a hundredth off.

    Each job that leaves a queue of thousands moves all that are behind it.
    """
    if isinstance(told, int) and _ABOUT * abs(told - waiting.position) < told:
        return told
    return waiting.position


def _verdict(
    job: GPUJobRecord, own: list[JobRecord], bad: list[Failed], sweep: Judged | None
) -> tuple[bool, ReasonAndMessage]:
    """Whether the job has succeeded, and why it has failed, with an empty sentence if not."""
    if sweep is not None:  # the verdict over trials, not that of the Jobs
        reason = sweep.reason if sweep.failure else ""
        return sweep.ended is Phase.SUCCEEDED, (reason, sweep.failure)
    if job.spec is not None and job.spec.sweep is not None:
        return False, ("", "")  # until its results have been read
    roles = job.requests.keys() or {""}
    return {j.role for j in own if j.complete} >= roles, counting.why_failed(own, bad)


def _last_words(
    job: GPUJobRecord, ended: Phase, failed_as: ReasonAndMessage, sweep: Judged | None
) -> tuple[str, str]:
    """Reason and message of a job that has ended; what was known before stays known."""
    before = str(job.status.get("reason", "")), str(job.status.get("message", ""))
    if ended is Phase.FAILED:
        knew_more = job.status.get("phase") == Phase.FAILED and before[1]
        return before if knew_more and failed_as[0] in ("", Reason.JOB_FAILED) else failed_as
    if job.spec is None or job.spec.sweep is None:
        return "", ""
    return "", sweep.message if sweep is not None else before[1]


def _prospective(job: GPUJobRecord, own: list[JobRecord], counted: Counted) -> int:
    """Pods that the job asks for and that its Jobs, narrower than it, do not make yet."""
    if job.spec is None or (not own and job.templates is None):
        return 0
    left = job.spec.total_pods - counted.over
    wide = sum(j.parallelism for j in own if not (j.complete or j.failure))
    return max(0, min(job.spec.pods_at_once, left) - wide)


def _sweep_before(job: GPUJobRecord) -> SweepStatus | None:
    """What its status said of a sweep whose results have not been read yet."""
    before = job.status.get("sweep")
    return SweepStatus.model_validate(before) if before else None


def preempted_by(
    job: GPUJobRecord, counted: Counted, live: list[PodRecord], preempted: Preempted | None
) -> str | None:
    """For whom pods had to go that do not hold devices again; after a restart by the status."""
    by = preempted.by if preempted else job.status.get("preemptedBy")
    if not by or job.spec is None or job.spec.suspend:
        return None
    if any(is_victim(pod, preempted) for pod in live):
        return str(by)
    left = job.spec.total_pods - counted.over
    holding = sum(1 for pod in live if pod.allocation is not None and not pod.deleting)
    return str(by) if holding < min(job.spec.pods_at_once, left) else None


def _ended(job: GPUJobRecord, complete: bool, failure: str) -> Phase | None:
    if complete:
        return Phase.SUCCEEDED
    if failure:
        return Phase.FAILED
    before = job.status.get("phase")
    return Phase(before) if before in (Phase.SUCCEEDED, Phase.FAILED) else None


def _stops(job: GPUJobRecord, pod: PodRecord) -> bool:
    """Whether a pod is left of a time that is over, as of before the job was suspended."""
    return pod.deleting and job.status.get("phase") in (Phase.PENDING, Phase.SUSPENDED)


def _phase(job: GPUJobRecord, runs: bool, counted: Counted, reason: str) -> Phase:
    """The phase of a job that has not ended; ``runs``: a pod of it does, that may go on.

    One that has begun and is between two pods, of which nothing was taken, reads Running.
    """
    if job.spec is not None and job.spec.suspend and not job.complaint:
        return Phase.SUSPENDED
    before = job.status.get("pods") or {}
    told = sum(n for n in (before.get("succeeded"), before.get("failed")) if isinstance(n, int))
    begun = job.status.get("phase") == Phase.RUNNING or counted.succeeded + counted.failed > told
    return Phase.RUNNING if runs or (begun and words.goes_on(reason)) else Phase.PENDING


def _usage(job: GPUJobRecord, held: list[PodRecord]) -> str:
    """What is held / what the pods at once ask for, both in GPUs or both in memory."""
    milli = sum(g.milli for pod in held if pod.allocation for g in pod.allocation.devices)
    if job.spec is None:
        return f"{gpu_from_milli(milli)}/?"
    asked = [(ask.at_once * r.count, r) for ask in job.requests.values() for r in ask.devices]
    asked_mib = sum(times * r.mib for times, r in asked)
    asked_milli = sum(times * r.milli for times, r in asked)
    if not asked_mib:
        return f"{gpu_from_milli(milli)}/{gpu_from_milli(asked_milli)}"
    if asked_milli:  # some pods ask for memory, others for shares
        return f"{gpu_from_milli(milli)}/{gpu_from_milli(asked_milli)}+{memory(asked_mib * MIB)}"
    mib = sum(g.mib for pod in held if pod.allocation for g in pod.allocation.devices)
    return f"{memory(mib * MIB)}/{memory(asked_mib * MIB)}"


def _accepted(job: GPUJobRecord, before: Mapping[str, Mapping[str, Any]]) -> list[Wanted]:
    """Nothing until its templates have been judged; another leader's word is kept until then."""
    kind, yes = ConditionType.ACCEPTED, "Accepted"
    if job.complaint and (not job.problem or job.problem_as is Reason.INVALID):
        return [(kind, False, "Invalid", job.complaint)]
    if job.templates is None:
        told = before.get(kind, {})
        return [(kind, True, yes, told.get("message", ""))] if told.get("reason") == yes else []
    return [(kind, True, yes, "; ".join(filter(None, (_fewer_trials(job), job.unhonoured))))]


def _newest(pod: PodRecord) -> tuple[int, str]:
    return (-pod.version, pod.name)


def _placement(pod: PodRecord, watched: Watched) -> PodPlacement:
    devices = pod.allocation.devices if pod.allocation else ()
    per_device: dict[str, int] = {}
    for allocated in devices:
        per_device[allocated.device] = per_device.get(allocated.device, 0) + allocated.mib
    reports = watched.reports(pod) if pod.stage is Stage.RUNNING else ()
    return PodPlacement(
        pod=pod.name,
        node=pod.node,
        devices=list(per_device),
        memory_mib=max(per_device.values(), default=0),
        isolation=worst(reports) or None,
        compute_percent=compute_percent(reports),
    )


def _nodes(nodes: list[str]) -> str | None:
    if not nodes:
        return None
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} +{len(nodes) - 1} more"


def _wanted(
    job: GPUJobRecord,
    phase: Phase,
    complete: bool,
    held: list[PodRecord],
    said: ReasonAndMessage,
    known: JobContext,
) -> list[Wanted]:
    before = {c["type"]: c for c in job.status.get("conditions") or () if "type" in c}
    placed, (reason, message) = bool(held), said
    wanted: list[Wanted] = [
        *_accepted(job, before),
        ("Placed", placed, "Placed" if placed else "NotPlaced", ""),
        *protection.conditions(held, known.watched, before),
    ]
    if placed and words.cannot_start(reason):
        wanted.append((ConditionType.CANNOT_START, True, reason, message))
    if known.doubt is not None and phase in (Phase.PENDING, Phase.RUNNING):
        wanted.append((ConditionType.IN_DOUBT, True, known.doubt.reason, known.doubt.why))
    if known.quarantine:
        wanted.append((ConditionType.SET_ASIDE, True, "UnexpectedError", known.quarantine))
    if complete or phase is Phase.SUCCEEDED:
        wanted.append(("Complete", True, "Succeeded", message or "every index succeeded"))
    if phase is Phase.FAILED:
        wanted.append(("Failed", True, reason or "FailedIndexes", message))
    return wanted


def _fewer_trials(job: GPUJobRecord) -> str:
    """What becomes of a grid that was to have more trials than there are."""
    spec = job.spec
    if spec is None or spec.sweep is None or (spec.completions or 0) <= spec.total_pods:
        return ""
    return (
        f"spec.completions is {spec.completions:,}, but the grid has {spec.total_pods:,} trials: "
        "all of them run, and no more"
    )
