"""Workloads by the names that readers know."""

from gpu_scheduler.dashboard.rows import WorkRef
from gpu_scheduler.runtime.common.work_name import WorkName
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord


def of_name(namespace: str, name: WorkName) -> WorkRef:
    """Of a workload."""
    return WorkRef(namespace=namespace, kind=name.shown_kind, name=name.name)


def of_job(job: GPUJobRecord) -> WorkRef:
    """Of a GPUJob."""
    return WorkRef(namespace=job.namespace, kind="GPUJob", name=job.name)


def of_group(state: ClusterState, group: GPUJobRecord) -> WorkRef:
    """Of a group of pods that ask by themselves: who made them."""
    return of_name(group.namespace, WorkName.of_group(state, group))
