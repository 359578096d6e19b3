"""Reasons of the Events that the operator writes beside those of ``api.states``.

An Event that tells of a state has the state's word, and stands there. One row for each other word;
a test finds the words in the code.
"""

from typing import NamedTuple

from gpu_scheduler.api.states import EventKind


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


_JOB, _POD = "GPUJob", "a pod that asks by itself"
_BOTH = f"{_JOB}, {_POD}"

EVENT_REASONS = (
    EventReason("Succeeded", "Normal", _JOB, "every index is done"),
    EventReason("Failed", "Warning", _JOB, "the job has ended, and why"),
    EventReason("PodFailed", "Warning", _JOB, "the first of its pods that failed, with its words"),
    EventReason(
        "Preempting", "Normal", _BOTH, "pods are evicted for it; it starts once they are gone"
    ),
    EventReason(
        "PodRejected", "Warning", _BOTH, "a kubelet refused the pod; it is placed elsewhere"
    ),
    EventReason(
        "PodStuck",
        "Warning",
        _BOTH,
        "a placed pod did not get onto its node within scheduling.stuckSeconds; it is evicted",
    ),
    EventReason(
        "EvictionRefused",
        "Warning",
        _BOTH,
        "the API server or a policy in it refuses to let the pod go; it is asked ever more seldom",
    ),
    EventReason(
        "GangReleased",
        "Warning",
        _BOTH,
        "a member of the gang found no place or could not start; all give back what they had",
    ),
    EventReason(
        "Overbooked",
        "Warning",
        _BOTH,
        "a device holds more than it has; a pod of it is evicted",
    ),
    EventReason("OverCap", "Warning", _BOTH, "a container holds more device memory than its cap"),
    EventReason(
        "OverCapEvicted", "Warning", _BOTH, "the pod was evicted for it; no retry is charged"
    ),
    EventReason("Unprotected", "Warning", _BOTH, "nothing enforces the memory cap of a container"),
    EventReason(
        "DeviceUnhealthy",
        "Warning",
        f"{_BOTH}, GPUNode",
        "a device that it holds is not healthy; the device takes no new pods",
    ),
    EventReason(
        "ForeignProcesses",
        "Warning",
        f"{_BOTH}, GPUNode",
        "processes without a share of the device use it; it takes no new pods",
    ),
    EventReason(
        "BudgetOverruled",
        "Warning",
        _BOTH,
        "a PodDisruptionBudget forbade an eviction that was owed; the pod went all the same",
    ),
    EventReason(
        "StrangeJob",
        "Warning",
        _JOB,
        "a Job says that it belongs to the GPUJob and does not; whoever made it deletes it",
    ),
    EventReason(
        "ResultsNotStored",
        "Warning",
        _JOB,
        "the API server refuses to store the results of a sweep; they are kept in memory alone",
    ),
    EventReason(
        "ServiceChanged",
        "Warning",
        _JOB,
        "the Service by which its pods find each other was changed; delete it, and it is made anew",
    ),
    EventReason(
        "StartTimedOut",
        "Warning",
        _JOB,
        "a pod could not start for startTimeoutSeconds of the project; it gives its GPU back",
    ),
    EventReason(
        "TrialEnded", "Normal", _JOB, "a trial was told to stop, did not in time, and was ended"
    ),
    EventReason(
        "SetAside",
        "Warning",
        f"{_BOTH}, GPUProject, Node",
        "the planner could not work with the object and left it out: a defect of ours, report it",
    ),
    EventReason(
        "OwnerGone",
        "Warning",
        "a pod that has lost its GPUJob",
        "it runs on and holds what it holds, and nobody makes it again; delete it when it is done",
    ),
    EventReason("Scheduled", "Normal", _POD, "where the pod went, and what it got of which device"),
    EventReason(
        "NotEnforced",
        "Normal",
        _POD,
        "a key of another scheduler asks for something that nobody is held to here",
    ),
)
