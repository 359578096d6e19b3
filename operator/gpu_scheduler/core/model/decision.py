"""What the planner answers: values only; carrying them out happens elsewhere.

Reasons are API: users script against them and tests assert them. What each means stands in
``api.states``; which of several a job gets, in ``runtime.status.states``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import overload

from gpu_scheduler.core.model.preemption_policy import NOTHING, PlannerMemory
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName


class Reason(StrEnum):
    """Why a job does not run, or why it failed. The planner says those up to WAITING_FOR_GANG."""

    INVALID = "Invalid"  # the object can never be accepted as it is
    UNSATISFIABLE = "Unsatisfiable"  # no node of this cluster could hold it, even when empty
    EXCEEDS_QUOTA = "ExceedsQuota"  # can never fit its project
    WAITING_FOR_QUOTA = "WaitingForQuota"
    FRAGMENTED = "Fragmented"  # enough free GPU in sum, nowhere in one piece
    WAITING_FOR_GPU = "WaitingForGPU"
    WAITING_FOR_RESOURCES = "WaitingForResources"  # GPUs fit; CPU, memory or pod slots do not
    WAITING_FOR_TOPOLOGY = "WaitingForTopology"  # where other pods are forbids every node with room
    WAITING_FOR_GANG = "WaitingForGang"

    CREATING_JOB = "CreatingJob"
    CREATING_PODS = "CreatingPods"
    PODS_REFUSED = "PodsRefused"
    SCHEDULING_GATED = "SchedulingGated"
    WAITING_FOR_PLAN = "WaitingForPlan"
    PLACING = "Placing"
    STARTING = "Starting"
    IMAGE_NOT_PULLED = "ImageNotPulled"
    CONTAINER_NOT_STARTED = "ContainerNotStarted"
    VOLUME_NOT_MOUNTED = "VolumeNotMounted"
    SANDBOX_NOT_CREATED = "SandboxNotCreated"
    START_TIMED_OUT = "StartTimedOut"
    PLACEMENT_REFUSED = "PlacementRefused"
    RETRYING = "Retrying"
    ENDING_PODS = "EndingPods"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    SUSPENDED = "Suspended"
    RESUMING = "Resuming"
    FINISHING = "Finishing"
    DELETING = "Deleting"

    PROGRAM_FAILED = "ProgramFailed"
    PROGRAM_NOT_FOUND = "ProgramNotFound"
    OOM_KILLED = "OOMKilled"
    TIME_LIMIT_EXCEEDED = "TimeLimitExceeded"
    POD_FAILED = "PodFailed"
    JOB_FAILED = "JobFailed"


class EvictReason(StrEnum):
    """Why a pod has to give way."""

    RECLAIM = "reclaim"  # another project is below its fair share, its own above
    PRIORITY = "priority"  # a job of its project has a higher priority
    CONSOLIDATE = "consolidate"  # it fits elsewhere, what waits needs several GPUs here


class ReservationReason(StrEnum):
    """Why devices are kept for a pod."""

    FREED = "freed"  # pods were evicted for it, or leave anyway
    RESERVED = "reserved"  # it is first in order, inside quota, and has waited long


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """A share of one device for one container.

    ``by_memory``: asked for in MiB. It takes these of the device and nothing else; ``milli`` is
    then what a project is charged for it.
    """

    container: int
    device: str  # the device's id
    milli: int
    mib: int
    by_memory: bool = False

    @property
    def fraction_milli(self) -> int:
        """What it takes of the 1,000 milli that a device has for fractions."""
        return 0 if self.by_memory else self.milli


@dataclass(frozen=True, slots=True)
class Assignment:
    """Start this pod on this node with these devices."""

    job: JobKey
    pod: PodUID
    node: str
    devices: tuple[DeviceAllocation, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """The job's next pod does not start now. ``position`` is 1-based within the project."""

    job: JobKey
    reason: Reason
    message: str
    position: int


Verdict = tuple[Reason, str]  # and a sentence


class Waits(Sequence[Wait]):
    """Why jobs wait, project by project, each in its order; a ``Wait`` is made when asked for.

    With every start the positions of all that wait behind it change, so of thousands of jobs only
    what is said is kept, and those that are alike share one sentence.
    """

    __slots__ = ("_at", "_jobs", "_positions", "_verdicts")

    def __init__(
        self,
        jobs: Sequence[JobKey] = (),
        verdicts: Sequence[Verdict] = (),
        positions: Sequence[int] = (),
    ) -> None:
        """What is said of each job, and its position within its project."""
        self._jobs = jobs
        self._verdicts = verdicts
        self._positions = positions
        self._at: dict[JobKey, int] | None = None

    def of(self, job: JobKey) -> Wait | None:
        """That of a job; None where none of its pods waits."""
        if self._at is None:
            self._at = {key: at for at, key in enumerate(self._jobs)}
        at = self._at.get(job)
        return None if at is None else self[at]

    def verdicts(self) -> dict[JobKey, Verdict]:
        """Without the positions."""
        return dict(zip(self._jobs, self._verdicts, strict=True))

    def news(self, before: Mapping[JobKey, Verdict]) -> set[JobKey]:
        """Jobs of which another thing was said, or nothing, or is now; positions are no news.

        ``before``: the ``verdicts`` of another plan.
        """
        said = before.get
        found = {
            job
            for job, verdict in zip(self._jobs, self._verdicts, strict=True)
            if said(job) != verdict
        }
        return found | (before.keys() - set(self._jobs))

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    @overload
    def __getitem__(self, at: int) -> Wait: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Wait]: ...
    def __getitem__(self, at: int | slice) -> Wait | Sequence[Wait]:
        """By number."""
        if isinstance(at, slice):
            return Waits(self._jobs[at], self._verdicts[at], self._positions[at])
        return Wait(self._jobs[at], *self._verdicts[at], self._positions[at])

    def __eq__(self, other: object) -> bool:
        """Whether the same is said of the same jobs; also compares with a tuple of waits."""
        return isinstance(other, Waits | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """As that of a tuple of waits."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """The waits."""
        return f"Waits{tuple(self)}"


@dataclass(frozen=True, slots=True)
class Evict:
    """Take this pod off its node so that another one fits. A sentence says why.

    ``whole_job``: the pod is a member of a gang. All members that hold anything are evicted in the
    same plan, and the job is to be stopped as a whole.
    """

    pod: PodUID
    job: JobKey
    beneficiary: JobKey
    reason: EvictReason
    message: str
    whole_job: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """Keep room on this node for a waiting pod; to be handed to the next plan.

    ``start``: when it could start there, epoch seconds, as far as time limits tell. ``devices``: on
    which devices; the pod may get others in the end.
    """

    pod: PodUID
    job: JobKey
    node: str
    reason: ReservationReason
    start: float | None = None
    devices: tuple[DeviceAllocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """One cycle's decisions. A job is in ``waits`` at most once: for its first pod that waits.

    The places of a gang follow one another, and there is one for every member that was missing.

    ``shares_milli``: what each project should hold. ``again_at``: when the passing of time alone
    would change the plan, epoch seconds. ``memory``: to be handed to the next plan. ``looks``: jobs
    for which somebody would give way, were they not unseen (``WaitingJob.unseen``).
    """

    assignments: tuple[Assignment, ...]
    waits: Waits
    evicts: tuple[Evict, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    again_at: float | None = None
    shares_by_model_milli: Mapping[str, Mapping[ProjectName, int]] = field(default_factory=dict)
    memory: PlannerMemory = NOTHING
    looks: tuple[JobKey, ...] = ()
