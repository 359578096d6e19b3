"""What the planner answers: values only; carrying them out happens elsewhere.

Reasons are API: users script against them and tests assert them. They are listed from the most
to the least specific; a job that could be given several gets the first that applies.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpu_scheduler.core.request import JobKey, PodUID


class Reason(StrEnum):
    """Why a job does not run."""

    INVALID = "Invalid"  # the object can never be accepted as it is
    UNSATISFIABLE = "Unsatisfiable"  # no node of this cluster could hold it, even when empty
    EXCEEDS_QUOTA = "ExceedsQuota"  # can never fit its project
    WAITING_FOR_QUOTA = "WaitingForQuota"
    FRAGMENTED = "Fragmented"  # enough free GPU in sum, nowhere in one piece
    WAITING_FOR_GPU = "WaitingForGPU"
    WAITING_FOR_RESOURCES = "WaitingForResources"  # GPUs fit; CPU, memory or pod slots do not
    WAITING_FOR_GANG = "WaitingForGang"
    SUSPENDED = "Suspended"
    PREEMPTED = "Preempted"


@dataclass(frozen=True, slots=True)
class Grant:
    """A share of one device for one container."""

    container: int
    device: str  # the device's id
    milli: int
    mib: int


@dataclass(frozen=True, slots=True)
class Place:
    """Start this pod on this node with these devices."""

    job: JobKey
    pod: PodUID
    node: str
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """The job's next pod does not start now. ``position`` is 1-based within the project."""

    job: JobKey
    reason: Reason
    message: str
    position: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One cycle's decisions. A job is in ``waits`` at most once: for its first pod that waits."""

    places: tuple[Place, ...]
    waits: tuple[Wait, ...]
