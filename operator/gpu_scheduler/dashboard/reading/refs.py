"""Workloads by the names that readers know."""

from gpu_scheduler.dashboard.rows import Ref
from gpu_scheduler.runtime.common.work_name import WorkName
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord


def of_name(namespace: str, name: WorkName) -> Ref:
    """Of a workload."""
    return Ref(namespace=namespace, kind=name.shown_kind, name=name.name)


def of_job(job: GPUJobRecord) -> Ref:
    """Of a GPUJob."""
    return Ref(namespace=job.namespace, kind="GPUJob", name=job.name)


def of_group(state: ClusterState, group: GPUJobRecord) -> Ref:
    """Of a group of pods that ask by themselves: who made them."""
    return of_name(group.namespace, WorkName.of_group(state, group))
