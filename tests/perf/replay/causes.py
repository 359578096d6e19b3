"""Why an arriving pod found no place, at that moment.

While everybody there, the lost ones too, asks for more GPUs than there are, somebody must be lost
whatever the policy does. Otherwise it is the planner's own verdict: a pod that waits would be told
the same words, see docs/states.md.
"""

from enum import StrEnum

from gpu_scheduler.core.explain.shortage import shortage
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot


class Cause(StrEnum):
    """What was missing; the values are keys of JSON."""

    FRAGMENTED = "fragmented"
    RESOURCES = "resources"
    MODEL = "model"
    NEVER = "never"
    OVERLOAD = "overload"


IN_WORDS = {
    Cause.FRAGMENTED: "enough GPU free in sum, nowhere in one piece",
    Cause.RESOURCES: "GPU free, no CPU or memory beside it",
    Cause.MODEL: "too few GPUs of the model free",
    Cause.NEVER: "no node could ever hold it",
    Cause.OVERLOAD: "more demand than GPUs, whatever the policy",
}


def cause_of(demand: PodRequest, snapshot: Snapshot, *, overload: bool) -> Cause:
    """Why a pod that fits nowhere now does not.

    Args:
        demand: of the pod.
        snapshot: the cluster without it.
        overload: everybody there, and this pod, asks for more GPUs than there are.
    """
    if not demand.could:
        return Cause.NEVER
    if overload and demand.pod_shape.devices:
        return Cause.OVERLOAD
    reason, _ = shortage(demand, frozenset(), snapshot)
    if reason is Reason.FRAGMENTED:
        return Cause.FRAGMENTED
    return Cause.RESOURCES if reason is Reason.WAITING_FOR_RESOURCES else Cause.MODEL
