"""The states of a GPUJob: what ``status.reason`` may say, what it means and who moves the job on.

One table, as data. ``kubectl explain gpujob.status.reason`` and docs/states.md come from it, and so
do the kinds of Events and whether a job between two pods still reads Running. Which state a job is
in is decided in ``runtime.status.states``. Invariant: every reason has exactly one row; only a job
that runs, or has succeeded, has none.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from gpu_scheduler.api.search import SweepReason as Sweep
from gpu_scheduler.core.model.decision import Reason

EventKind = Literal["Normal", "Warning"]


class Group(StrEnum):
    """Reasons that lead to and from the same states; a box of docs/states.svg."""

    OWNER = "to be mended"
    MAKING = "on its way"
    WAITS = "waits for a place"
    PLACED = "placed"
    STUCK = "cannot start"
    GAVE_BACK = "lost its place"
    BETWEEN = "between two pods"
    SUSPENDED = "suspended"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Trait(StrEnum):
    """What is done otherwise for some reasons."""

    NEVER = "it cannot start as it is, however long it waits"
    GOES_ON = "nothing is lost: without a running pod a job that has begun still reads Running"
    NODE_HELPS = "another node would help, which is what autoscalers look for"
    ALL_NODES = "it is a verdict about all nodes there are, and none while some are not counted"


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """One reason.

    Attributes:
        reason: The word; empty: the job runs or has succeeded.
        group: Where it stands in the picture.
        means: What is so.
        mover: Who or what moves the job on.
        event: Kind of the Event that tells of it; None: none is sent.
        traits: What is done otherwise for it.
    """

    reason: str
    group: Group
    means: str
    mover: str
    event: EventKind | None = None
    traits: tuple[Trait, ...] = ()


_OPERATOR, _PLANNER, _JOBS = "the operator", "the planner", "the Job controller"
_NODE = "the node's kubelet"
_END = "nobody: this is an end"
_GIVES_BACK = "its owner mends the cause; after startTimeoutSeconds of the project, the operator"

STATES = (
    ReasonEntry(
        Reason.INVALID,
        Group.OWNER,
        "it cannot be accepted as it is: the message names the field, and what would be right",
        "its owner, or an administrator where the message says so",
        "Warning",
        traits=(Trait.NEVER,),
    ),
    ReasonEntry(
        Reason.DELETING,
        Group.OWNER,
        "it is being deleted: its pods end, and a finalizer keeps the object until then, or longer",
        "its pods, and whoever set the finalizer that the message names",
        "Normal",
    ),
    ReasonEntry(
        Reason.UNSATISFIABLE,
        Group.WAITS,
        "no node of the cluster could ever hold a pod of it, even when empty",
        "its owner asks for less, or a node is added",
        "Warning",
        traits=(Trait.NEVER, Trait.NODE_HELPS, Trait.ALL_NODES),
    ),
    ReasonEntry(
        Reason.EXCEEDS_QUOTA,
        Group.WAITS,
        "it can never fit what its project may hold",
        "its owner asks for less, or an administrator gives the project more",
        "Warning",
        traits=(Trait.NEVER,),
    ),
    ReasonEntry(
        Reason.WAITING_FOR_QUOTA,
        Group.WAITS,
        "the project uses all that it may",
        "pods of the project that end",
        "Normal",
    ),
    ReasonEntry(
        Reason.FRAGMENTED,
        Group.WAITS,
        "enough GPU is free in sum, nowhere in one piece",
        "pods that end",
        "Normal",
        traits=(Trait.NODE_HELPS,),
    ),
    ReasonEntry(
        Reason.WAITING_FOR_GPU,
        Group.WAITS,
        "nothing that fits is free",
        "pods that end",
        "Normal",
        traits=(Trait.NODE_HELPS,),
    ),
    ReasonEntry(
        Reason.WAITING_FOR_RESOURCES,
        Group.WAITS,
        "GPUs would fit; CPU, memory, pod slots or an open node are missing",
        "pods that end, or nodes that open",
        "Normal",
        traits=(Trait.NODE_HELPS,),
    ),
    ReasonEntry(
        Reason.WAITING_FOR_TOPOLOGY,
        Group.WAITS,
        "GPUs would fit; a rule about other pods (affinity, spread) forbids it there",
        "pods that come or end, or nodes that are added",
        "Normal",
    ),
    ReasonEntry(
        Reason.WAITING_FOR_GANG,
        Group.WAITS,
        "its pods would fit one by one, but not all at once",
        "pods that end",
        "Normal",
    ),
    ReasonEntry(
        Reason.CREATING_JOB, Group.MAKING, "its batch/v1 Job is about to be made", _OPERATOR
    ),
    ReasonEntry(
        Reason.CREATING_PODS,
        Group.MAKING,
        "its Job exists, and its next pods do not yet",
        _JOBS,
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(Reason.RESUMING, Group.MAKING, "spec.suspend is false again", _OPERATOR),
    ReasonEntry(
        Reason.PODS_REFUSED,
        Group.MAKING,
        "the API server refuses its pods: a ResourceQuota, LimitRange, PodSecurity or a policy",
        "whoever changes that, or pods of the namespace that end; the operator tries again",
        "Warning",
    ),
    ReasonEntry(
        Reason.SCHEDULING_GATED,
        Group.MAKING,
        "somebody else keeps its pods from being scheduled, by a gate or a scheduler of their own",
        "whoever put the gate there",
        "Warning",
    ),
    ReasonEntry(
        Reason.WAITING_FOR_PLAN,
        Group.MAKING,
        "its pods wait for the next plan",
        _PLANNER,
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.PLACING,
        Group.PLACED,
        "its pod has a node and GPUs, and is about to be bound there",
        "the operator, or kube-scheduler where the pod needs it",
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.STARTING,
        Group.PLACED,
        "its pod is on its node, containers are starting",
        _NODE,
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.IMAGE_NOT_PULLED,
        Group.STUCK,
        "the image of a container cannot be had: ErrImagePull, ImagePullBackOff, InvalidImageName",
        _GIVES_BACK,
        "Warning",
    ),
    ReasonEntry(
        Reason.CONTAINER_NOT_STARTED,
        Group.STUCK,
        "a container cannot be made or started: CreateContainerConfigError (a Secret or ConfigMap "
        "is missing), CreateContainerError, RunContainerError, CrashLoopBackOff",
        _GIVES_BACK,
        "Warning",
    ),
    ReasonEntry(
        Reason.VOLUME_NOT_MOUNTED,
        Group.STUCK,
        "a volume of the pod is not there or cannot be mounted; a GPUJob whose claim is missing or "
        "not bound holds nothing",
        "its owner mends the cause; of a pod that has its place, after startTimeoutSeconds of the "
        "project, the operator",
        "Warning",
    ),
    ReasonEntry(
        Reason.SANDBOX_NOT_CREATED,
        Group.STUCK,
        "the pod's sandbox or network cannot be made on its node",
        _GIVES_BACK,
        "Warning",
    ),
    ReasonEntry(
        Reason.START_TIMED_OUT,
        Group.GAVE_BACK,
        "its pod could not start for startTimeoutSeconds of the project and gave its GPU back",
        "the operator, at the time that the message names",
    ),
    ReasonEntry(
        Reason.PLACEMENT_REFUSED,
        Group.GAVE_BACK,
        "its pod was refused where it had a place, by a policy of the cluster, kube-scheduler or "
        "kubelets: the message has the words; nobody gives way to it until it has started",
        "whoever changes what refuses it; the operator tries again, ever more seldom",
        "Warning",
    ),
    ReasonEntry(
        Reason.PREEMPTED,
        Group.GAVE_BACK,
        "its pods made room for somebody who comes before it; the message says for whom",
        _PLANNER,
        "Normal",
    ),
    ReasonEntry(
        Reason.EVICTED,
        Group.GAVE_BACK,
        "its pods had to leave their node: drained, lost, rejected there, or above their memory "
        "cap; no retry is charged",
        _JOBS,
        "Warning",
    ),
    ReasonEntry(
        Reason.RETRYING,
        Group.BETWEEN,
        "a pod has failed, and its index is tried again after a back-off",
        _JOBS,
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.ENDING_PODS,
        Group.BETWEEN,
        "its pods are ending, their successors follow",
        _NODE,
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.FINISHING,
        Group.BETWEEN,
        "its pods have ended, and the verdict or the results are outstanding",
        "the Job controller; of a sweep the operator, which reads results",
        traits=(Trait.GOES_ON,),
    ),
    ReasonEntry(
        Reason.SUSPENDED,
        Group.SUSPENDED,
        "spec.suspend is true",
        "its owner sets it to false",
        "Normal",
    ),
    ReasonEntry(
        Sweep.TARGET_REACHED,
        Group.RUNNING,
        "a trial has reached the target: no more trials start, those that run may finish",
        _NODE,
        "Normal",
    ),
    ReasonEntry("", Group.RUNNING, "pods run, and none waits", _NODE),
    ReasonEntry("", Group.SUCCEEDED, "every index has succeeded", _END),
    *(
        ReasonEntry(reason, Group.FAILED, means, _END)
        for reason, means in (
            (
                Reason.PROGRAM_FAILED,
                "a program ended with an exit code other than 0, or by a signal, and no retry was "
                "left",
            ),
            (Reason.PROGRAM_NOT_FOUND, "the image has no such program, or it cannot be executed"),
            (Reason.OOM_KILLED, "a container used more main memory than its limit"),
            (Reason.TIME_LIMIT_EXCEEDED, "a pod ran longer than spec.timeLimitSeconds"),
            (Reason.POD_FAILED, "a pod failed as a whole, for example because its node evicted it"),
            (Reason.JOB_FAILED, "the Job failed, and none of its pods says why"),
            (Sweep.FAIL_FAST, "a trial ended with one of spec.sweep.failFastExitCodes"),
            (Sweep.TOO_MANY_FAILED, "more trials failed than spec.sweep.maxFailedTrials"),
            (Sweep.NONE_SUCCEEDED, "all trials have ended, and none succeeded"),
        )
    ),
)

EDGES = (
    (Group.MAKING, Group.OWNER),
    (Group.OWNER, Group.MAKING),
    (Group.MAKING, Group.WAITS),
    (Group.MAKING, Group.PLACED),
    (Group.WAITS, Group.PLACED),
    (Group.PLACED, Group.RUNNING),
    (Group.PLACED, Group.STUCK),
    (Group.STUCK, Group.RUNNING),
    (Group.STUCK, Group.GAVE_BACK),
    (Group.PLACED, Group.GAVE_BACK),
    (Group.RUNNING, Group.GAVE_BACK),
    (Group.GAVE_BACK, Group.PLACED),
    (Group.GAVE_BACK, Group.WAITS),
    (Group.RUNNING, Group.BETWEEN),
    (Group.BETWEEN, Group.PLACED),
    (Group.BETWEEN, Group.WAITS),
    (Group.BETWEEN, Group.RUNNING),
    (Group.RUNNING, Group.SUSPENDED),
    (Group.SUSPENDED, Group.MAKING),
    (Group.BETWEEN, Group.SUCCEEDED),
    (Group.RUNNING, Group.SUCCEEDED),
    (Group.BETWEEN, Group.FAILED),
    (Group.RUNNING, Group.FAILED),
)
"""The usual ways from one group to another, as they are drawn; a job may be suspended anywhere."""

_BY_REASON = {state.reason: state for state in STATES if state.reason}


def having(trait: Trait) -> frozenset[str]:
    """The reasons with a trait."""
    return frozenset(state.reason for state in STATES if trait in state.traits)


NEVER = having(Trait.NEVER)
_GOES_ON = having(Trait.GOES_ON)


def goes_on(reason: str) -> bool:
    """Whether a job that has begun and has no running pod still reads Running: nothing is lost."""
    return reason in _GOES_ON


def of(reason: str) -> ReasonEntry | None:
    """The row of a reason; None where there is no such word."""
    return _BY_REASON.get(reason)


def cannot_start(reason: str) -> bool:
    """Whether it says that a pod has a place and cannot start there."""
    state = _BY_REASON.get(reason)
    return state is not None and state.group is Group.STUCK


def event_kind(reason: str) -> EventKind | None:
    """Kind of the Event that tells of a reason; None: this is no news to a user."""
    state = _BY_REASON.get(reason)
    return state.event if state is not None else None


def phases(state: ReasonEntry) -> str:
    """Phases in which a job may give that reason."""
    return "Pending, Running" if state.reason in _GOES_ON else _PHASES[state.group]


def described() -> str:
    """What ``kubectl explain`` says of ``status.reason``."""
    words = "; ".join(f"{s.reason}: {s.means}" for s in _BY_REASON.values())
    return f"Why it does not run, or why it failed; empty while it runs. {words}."


_PHASES = {
    Group.OWNER: "Pending, Running",
    Group.MAKING: "Pending",
    Group.WAITS: "Pending, Running",
    Group.PLACED: "Pending",
    Group.STUCK: "Pending, Running",
    Group.GAVE_BACK: "Pending",
    Group.BETWEEN: "Running",
    Group.SUSPENDED: "Suspended",
    Group.RUNNING: "Running",
    Group.SUCCEEDED: "Succeeded",
    Group.FAILED: "Failed",
}
