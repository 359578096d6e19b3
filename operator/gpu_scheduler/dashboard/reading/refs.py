"""Workloads by the names that readers know."""

from gpu_scheduler.dashboard.rows import Ref
from gpu_scheduler.runtime.common.work_name import WorkName, work_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord


def ref_of(name: WorkName, job: GPUJobRecord) -> Ref:
    """Of a workload."""
    return Ref(namespace=job.namespace, kind=name.shown_kind, name=name.name)


def of_job(job: GPUJobRecord) -> Ref:
    """Of a GPUJob."""
    return Ref(namespace=job.namespace, kind="GPUJob", name=job.name)


def of_group(state: ClusterState, job: GPUJobRecord) -> Ref:
    """Of a group of pods that ask by themselves: who made them."""
    return ref_of(WorkName.of_group(state, job), job)


def of_pod(state: ClusterState, pod: PodRecord) -> Ref | None:
    """Of whose pod it is; None: nobody's as far as known."""
    named = work_of(state, pod)
    return ref_of(*named) if named is not None else None
