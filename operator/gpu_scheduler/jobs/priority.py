"""Whether the pods of a Job could make kube-scheduler preempt others.

On the gate path it binds our pods, to the one node that they were pinned to, and takes that node's
room for CPU and memory from whoever has a lower priority: it knows nothing of GPU shares. A pod's
policy is that of its PriorityClass; the API server lets no pod say anything else.
"""

from collections.abc import Mapping
from typing import Any

from gpu_scheduler.jobs.write_path import WritePath


def class_to_check(path: WritePath, pod_spec: Mapping[str, Any]) -> str:
    """The PriorityClass on which it depends whether such a pod preempts; empty: it never does."""
    return str(pod_spec.get("priorityClassName") or "") if path is WritePath.GATE else ""


def preempts(priority_class: Mapping[str, Any]) -> bool:
    """Whether a PriorityClass, as JSON, lets its pods preempt; that is the default."""
    return priority_class.get("preemptionPolicy") != "Never"
