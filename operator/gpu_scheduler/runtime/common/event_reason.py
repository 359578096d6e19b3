"""A word of the Events that the operator writes, and what is said of it in docs/reference."""

from typing import NamedTuple

from gpu_scheduler.api.states import EventKind

JOB, POD = "GPUJob", "a pod that asks by itself"
BOTH = f"{JOB}, {POD}"


class EventReason(NamedTuple):
    """One word.

    Attributes:
        about: kinds of objects that it is written on; "a pod that asks by itself" has no GPUJob.
        means: what has happened, and what follows.
    """

    reason: str
    kind: EventKind
    about: str
    means: str
