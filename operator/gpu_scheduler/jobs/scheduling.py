"""Who schedules the pod: the fields of a pod spec in which the two write paths differ.

Bind: nobody but us looks at the pod. Gate: our scheduling gate holds it back, then kube-scheduler
takes it to the one node we pinned; it must not preempt others for CPU there, because it is blind to
GPU shares, hence a priority class that never preempts. Gates of others are kept on both paths.
"""

from typing import Any

from gpu_scheduler.api.names import GATE, PRIORITY_CLASS, SCHEDULER_NAME
from gpu_scheduler.jobs.write_path import WritePath

DEFAULT_SCHEDULER = "default-scheduler"


def schedule(pod_spec: dict[str, Any], path: WritePath, *, has_priority_class: bool) -> None:
    """Fill in the scheduling fields of ``pod_spec``, which is the caller's own copy."""
    theirs = pod_spec.pop("schedulingGates", None) or ()
    gates = [gate for gate in theirs if gate.get("name") != GATE]
    if path is WritePath.GATE:
        gates.append({"name": GATE})
        pod_spec["schedulerName"] = DEFAULT_SCHEDULER
        if has_priority_class and not pod_spec.get("priorityClassName"):
            pod_spec["priorityClassName"] = PRIORITY_CLASS
    else:
        pod_spec["schedulerName"] = SCHEDULER_NAME
    if gates:
        pod_spec["schedulingGates"] = gates
