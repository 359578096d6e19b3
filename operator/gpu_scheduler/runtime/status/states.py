"""Which state a GPUJob is in that has not ended: its reason, and a sentence with numbers.

One decision: ``_STEPS`` are asked in turn, and the first that has something to say is heard, so
what its owner has to mend comes before what only takes time. What the words mean stands in
``api.states``. Invariant: the last step always answers; only a job that runs has an empty reason.
Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.api.states import NEVER
from gpu_scheduler.core.model.decision import Assignment, Reason, Reservation, Wait
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.wording import names, pods
from gpu_scheduler.runtime.eviction.eviction_costs import EvictionCost
from gpu_scheduler.runtime.eviction.preemption import Preempted
from gpu_scheduler.runtime.status.counting import Counted, Failed, tried_again
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.runtime.status.protection import Watched
from gpu_scheduler.state.jobs.doubts import Doubt
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.queue.nominated import NominatedPod


@dataclass(frozen=True, slots=True)
class JobContext:
    """What parts of the operator know of a job, beside its objects.

    Attributes:
        wait: Why its next pod finds no place.
        preempted: For whom pods of it had to go.
        cost: What evictions for others have cost it.
        refused: What the API server says to its next pod, if it refuses it.
        doubt: Why its last pods could not start, where that is for a reason of its own.
        evicted: Why its pods had to leave their node, if they are not back.
        assumed: Placements that were decided and that the watch does not show yet.
        nominated: Pods that have a place and do not exist yet.
        reservations: Room that the last plan keeps for pods of it.
        trouble: Why a placed pod does not start, where only its Events tell.
        sweep: What came of its trials, where it is a sweep and that is known.
        quarantine: Why the planner has quarantined it; empty = it has not.
        watched: What agents know of its pods.
        usage: What it did with its GPUs so far, as far as agents have said.
        advice: What its user was told to change; None: nobody has looked yet.
    """

    wait: Wait | None = None
    preempted: Preempted | None = None
    cost: EvictionCost = field(default_factory=EvictionCost)
    refused: str = ""
    doubt: Doubt | None = None
    evicted: str = ""
    assumed: Mapping[PodUID, Assignment] = field(default_factory=dict)
    nominated: Sequence[NominatedPod] = ()
    reservations: Sequence[Reservation] = ()
    trouble: Callable[[PodRecord], Trouble | None] = lambda pod: None
    sweep: Judged | None = None
    quarantine: str = ""
    watched: Watched = field(default_factory=Watched)
    usage: Callable[[], JobUsage | None] = lambda: None
    advice: Callable[[], Sequence[Advice] | None] = lambda: None


NOTHING = JobContext()


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """A GPUJob that has not ended.

    Attributes:
        job: The GPUJob.
        own: Its Jobs.
        live: Its pods that have not ended.
        ended: Its pods that have.
        bad: Those that failed by themselves, the first first.
        counted: Its indexes that are over.
        by: For whom pods of it had to go that have no place again.
        sweep: Why a sweep starts no more trials, with its sentence.
        known: What else is known.
    """

    job: GPUJobRecord
    own: Sequence[JobRecord]
    live: Sequence[PodRecord]
    ended: Sequence[PodRecord]
    bad: Sequence[Failed]
    counted: Counted
    by: str | None = None
    sweep: tuple[str, str] = ("", "")
    known: JobContext = NOTHING

    @property
    def placed(self) -> list[PodRecord]:
        """Pods that are to start on their node and have not, in the order of their indexes."""
        found = [p for p in self.live if p.stage is Stage.PLACED and not _ends(p)]
        return sorted(found, key=lambda pod: (pod.index, pod.name))


# The Job controller's own, of each index; failures that are not charged count there as well.
_BACK_OFF = (
    "its Job makes the next pod after a back-off of 10 s, doubled each time up to 10 minutes"
)

ReasonAndMessage = tuple[str, str]
"""Reason and message."""


def say(facts: UnfinishedJob) -> ReasonAndMessage:
    """Reason and message of a job that has not ended."""
    return next(said for step in _STEPS if (said := step(facts)) is not None)


def on_its_node(pod: PodRecord) -> ReasonAndMessage:
    """What is said of a pod that has a place and has not started, where nothing is wrong.

    On the gate path kube-scheduler has the next word; until it has bound the pod this is its.
    """
    if not pod.bound:
        said = f": {pod.unschedulable.message}" if pod.unschedulable else " has not bound it yet"
        return Reason.PLACING, f"pod {pod.name} has its place on {pod.node}; kube-scheduler{said}"
    doing = f"init container {pod.initializing} runs" if pod.initializing else ""
    return Reason.STARTING, f"placed on {pod.node}, {doing or 'containers are starting'}"


def _deleting(facts: UnfinishedJob) -> ReasonAndMessage | None:
    if not facts.job.deleting:
        return None
    going, kept = [pod.name for pod in facts.live], facts.job.kept_by
    ends = f"{names(going)} {_are(going)} ending" if going else "nothing of it runs any more"
    keeps = ""
    if kept:
        keeps = (
            f"; metadata.finalizers has {names(kept)}: the object stays until whoever set that "
            "removes it"
        )
    return Reason.DELETING, f"it is being deleted: {ends}{keeps}"


def _invalid(facts: UnfinishedJob) -> ReasonAndMessage | None:
    job = facts.job
    reason = job.problem_as if job.problem else Reason.INVALID
    return (reason, job.complaint) if job.complaint else None


def _suspended(facts: UnfinishedJob) -> ReasonAndMessage | None:
    if facts.job.spec is None or not facts.job.spec.suspend:
        return None
    return Reason.SUSPENDED, "spec.suspend is true: set it to false to go on"


def _never(facts: UnfinishedJob) -> ReasonAndMessage | None:
    wait = facts.known.wait
    return (wait.reason, wait.message) if wait is not None and wait.reason in NEVER else None


def _gave_way(facts: UnfinishedJob) -> ReasonAndMessage | None:
    by, wait, preempted = facts.by, facts.known.wait, facts.known.preempted
    if not by:
        return None
    if wait is not None:
        return Reason.PREEMPTED, f"gave way to {by}; {wait.message}"
    if any(pod.deleting or is_victim(pod, preempted) for pod in facts.live):
        return Reason.PREEMPTED, f"gives way to {by}, then waits for its turn"
    return Reason.PREEMPTED, f"gave way to {by}; its pods are about to be made anew"


def _stuck(facts: UnfinishedJob) -> ReasonAndMessage | None:
    found = [t for pod in facts.placed if (t := pod.trouble or facts.known.trouble(pod))]
    if not found:
        return None
    more = f"; {pods(len(found) - 1)} more cannot start either" if len(found) > 1 else ""
    return found[0].reason, found[0].message + more


def _doubtful(facts: UnfinishedJob) -> ReasonAndMessage | None:
    """Of one that is tried again just now the next steps have better news."""
    doubt, known = facts.known.doubt, facts.known
    tried = facts.placed or known.nominated or any(p.uid in known.assumed for p in facts.live)
    if doubt is None or (tried and doubt.until is None) or (doubt.quiet and known.wait is None):
        return None
    return doubt.said(known.wait)


def _waits(facts: UnfinishedJob) -> ReasonAndMessage | None:
    wait = facts.known.wait
    return (wait.reason, wait.message) if wait is not None else None


def _refused(facts: UnfinishedJob) -> ReasonAndMessage | None:
    return (Reason.PODS_REFUSED, facts.known.refused) if facts.known.refused else None


def _no_more_trials(facts: UnfinishedJob) -> ReasonAndMessage | None:
    return facts.sweep if facts.sweep[0] else None


def _taken(facts: UnfinishedJob) -> ReasonAndMessage | None:
    """Pods that another scheduler has put somewhere, or is to."""
    found = [pod.blocked for pod in facts.live if pod.blocked and pod.stage is not Stage.BLOCKED]
    return (Reason.SCHEDULING_GATED, names(found, "; ")) if found else None


def _runs(facts: UnfinishedJob) -> ReasonAndMessage | None:
    runs = any(pod.stage is Stage.RUNNING and not _ends(pod) for pod in facts.live)
    return ("", "") if runs else None


def _placed(facts: UnfinishedJob) -> ReasonAndMessage | None:
    if facts.placed:
        return on_its_node(facts.placed[0])
    placing = next((p.node for pod in facts.live if (p := facts.known.assumed.get(pod.uid))), "")
    if placing:
        return Reason.PLACING, f"goes to {placing}: the API server has not confirmed it yet"
    return None


def _unplanned(facts: UnfinishedJob) -> ReasonAndMessage | None:
    waiting = sum(1 for pod in facts.live if pod.stage is Stage.WAITING)
    if waiting:
        return Reason.WAITING_FOR_PLAN, f"{pods(waiting)} to be planned next"
    blocked = [pod.blocked for pod in facts.live if pod.blocked]
    return (Reason.SCHEDULING_GATED, names(blocked, "; ")) if blocked else None


def _no_job(facts: UnfinishedJob) -> ReasonAndMessage | None:
    own = {job.role: job for job in facts.own}
    going = [job.name for job in facts.own if job.deleting]
    if going:
        return Reason.CREATING_JOB, f"Job {going[0]} is being deleted, and then made anew"
    if not own or facts.job.requests.keys() - own.keys():
        return _next_job(facts)
    if all(job.suspend for job in facts.own if not (job.complete or job.failure)):
        return Reason.RESUMING, "spec.suspend is false again, its Job is about to be told"
    return None


def _next_job(facts: UnfinishedJob) -> ReasonAndMessage:
    """What is said of a GPUJob whose Jobs are not all there."""
    if facts.job.templates is None:
        return Reason.CREATING_JOB, "it is being checked, then its Job is made"
    if facts.known.nominated:
        node = facts.known.nominated[0].place.node
        return Reason.CREATING_JOB, f"has its place on {node}; its Job is being made"
    return Reason.WAITING_FOR_PLAN, "it is planned next"


def _over(facts: UnfinishedJob) -> ReasonAndMessage | None:
    """All indexes are over, and nobody has said so yet."""
    spec, counted = facts.job.spec, facts.counted
    total = spec.total_pods if spec is not None else 0
    if counted.over < total:
        return None
    lost = f", {counted.failed_indexes} failed" if counted.failed_indexes else ""
    return (
        Reason.FINISHING,
        f"{counted.succeeded} of {total} indexes succeeded{lost}; the verdict is outstanding",
    )


def _evicted(facts: UnfinishedJob) -> ReasonAndMessage | None:
    if facts.known.evicted:
        return Reason.EVICTED, f"{facts.known.evicted}; {_BACK_OFF}"
    before = facts.job.status  # of an earlier leader, which knew why
    if before.get("reason") != Reason.EVICTED or any(p.allocation for p in facts.live):
        return None
    return Reason.EVICTED, str(before.get("message", ""))


def _ending(facts: UnfinishedJob) -> ReasonAndMessage | None:
    failing = next((p for p in facts.live if p.failing and not p.deleting), None)
    if failing is not None:
        ends = f"is being ended by the kubelet of {failing.node}"
        if failing.time_limit:
            ends = f"has reached {failing.time_limit} and is ending"
        return Reason.ENDING_PODS, f"{failing.name} {ends}"
    going = [pod.name for pod in facts.live if pod.deleting]
    if not going:
        return None
    ending = f"{names(going)} {_are(going)} ending"
    return Reason.ENDING_PODS, f"{ending}, then the Job makes what follows"


def _ends(pod: PodRecord) -> bool:
    """Whether a pod is on its way out, though its containers may still run."""
    return pod.deleting or pod.failing


def _are(those: Sequence[str]) -> str:
    return "is" if len(those) == 1 else "are"


def _retries(facts: UnfinishedJob) -> ReasonAndMessage | None:
    failed = tried_again(facts.own, facts.ended, facts.bad)
    if not failed:
        return None
    pod, failure = failed[-1]
    tries = sum(
        1 for other, _ in failed if (other.job_uid, other.index) == (pod.job_uid, pod.index)
    )
    allowed = facts.job.spec.retries if facts.job.spec is not None else 0
    return (
        Reason.RETRYING,
        f"index {pod.index} failed ({failure.message}); retry {tries} of {allowed}: {_BACK_OFF}",
    )


def _no_pods(facts: UnfinishedJob) -> ReasonAndMessage:
    if not facts.known.nominated and not any(j.parallelism for j in facts.own if not j.complete):
        return Reason.WAITING_FOR_PLAN, "its next pods are planned next"
    told = f"{facts.counted.succeeded} indexes succeeded; " if facts.counted.succeeded else ""
    jobs = names([job.name for job in facts.own if not job.complete])
    return Reason.CREATING_PODS, f"{told}Job {jobs} exists, its next pods are being made"


_STEPS: tuple[Callable[[UnfinishedJob], ReasonAndMessage | None], ...] = (
    _deleting,
    _invalid,
    _suspended,
    _never,
    _gave_way,
    _stuck,
    _doubtful,
    _waits,
    _refused,
    _no_more_trials,
    _taken,
    _runs,
    _placed,
    _unplanned,
    _no_job,
    _over,
    _evicted,
    _ending,
    _retries,
    _no_pods,
)


def is_victim(pod: PodRecord, preempted: Preempted | None) -> bool:
    """Whether this pod has to go."""
    return preempted is not None and pod.uid == preempted.pod
