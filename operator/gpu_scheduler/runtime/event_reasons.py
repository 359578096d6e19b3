"""Reasons of the Events that the operator writes beside those of ``api.states``.

An Event that tells of a state has the state's word, and stands there. One row for each other word,
those of evictions where their policies are; a test finds the words in the code.
"""

from gpu_scheduler.runtime.binding import build as binding
from gpu_scheduler.runtime.common.event_reason import BOTH, JOB, POD, EventReason
from gpu_scheduler.runtime.eviction import build as eviction
from gpu_scheduler.runtime.usage.advice_told import REASON

EVICTION_CAUSES = (*eviction.CAUSES, *binding.CAUSES)
"""Of all policies."""

EVENT_REASONS = (
    EventReason("Succeeded", "Normal", JOB, "every index is done"),
    EventReason("Failed", "Warning", JOB, "the job has ended, and why"),
    EventReason("PodFailed", "Warning", JOB, "the first of its pods that failed, with its words"),
    EventReason(
        "Preempting", "Normal", BOTH, "pods are evicted for it; it starts once they are gone"
    ),
    EventReason(
        "PodRejected", "Warning", BOTH, "a kubelet refused the pod; it is placed elsewhere"
    ),
    EventReason(
        "EvictionRefused",
        "Warning",
        BOTH,
        "the API server or a policy in it refuses to let the pod go; it is asked ever more seldom",
    ),
    EventReason(
        "GangReleased",
        "Warning",
        BOTH,
        "a member of the gang found no place or could not start; all give back what they had",
    ),
    EventReason("OverCap", "Warning", BOTH, "a container holds more device memory than its cap"),
    EventReason("Unprotected", "Warning", BOTH, "nothing enforces the memory cap of a container"),
    EventReason(
        "DeviceUnhealthy",
        "Warning",
        f"{BOTH}, GPUNode",
        "a device that it holds is not healthy; the device takes no new pods",
    ),
    EventReason(
        "ForeignProcesses",
        "Warning",
        f"{BOTH}, GPUNode",
        "processes without a share of the device use it; it takes no new pods",
    ),
    EventReason(
        "BudgetOverruled",
        "Warning",
        BOTH,
        "a PodDisruptionBudget forbade an eviction that was owed; the pod went all the same",
    ),
    EventReason(
        "StrangeJob",
        "Warning",
        JOB,
        "a Job says that it belongs to the GPUJob and does not; whoever made it deletes it",
    ),
    EventReason(
        "ResultsNotStored",
        "Warning",
        JOB,
        "the API server refuses to store the results of a sweep; they are kept in memory alone",
    ),
    EventReason(
        "ServiceChanged",
        "Warning",
        JOB,
        "the Service by which its pods find each other was changed; delete it, and it is made anew",
    ),
    EventReason(
        "TrialEnded", "Normal", JOB, "a trial was told to stop, did not in time, and was ended"
    ),
    EventReason(
        "SetAside",
        "Warning",
        f"{BOTH}, GPUProject, Node",
        "the planner could not work with the object and left it out: a defect of ours, report it",
    ),
    EventReason(
        "OwnerGone",
        "Warning",
        "a pod that has lost its GPUJob",
        "it runs on and holds what it holds, and nobody makes it again; delete it when it is done",
    ),
    EventReason(
        REASON,
        "Normal",
        BOTH,
        "what to change about it, by what its GPUs were seen doing; each rule once a day",
    ),
    EventReason("Scheduled", "Normal", POD, "where the pod went, and what it got of which device"),
    EventReason(
        "NotEnforced",
        "Normal",
        POD,
        "a key of another scheduler asks for something that nobody is held to here",
    ),
    *(cause.event for cause in EVICTION_CAUSES),
)
