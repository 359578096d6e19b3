"""The state of a small cluster, and what a planner sees of it."""

from typing import Any

from tests.unit.state.builders import make_gpujob, make_job, make_node, make_project

from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState


def make_cluster_state(*pods: Pod) -> ClusterState:
    """Node a with two GPUs, project team-a, GPUJob job with its Job, and these pods."""
    state = ClusterState()
    state.nodes.changed(make_node("a"))
    state.project_changed(make_project())
    state.gpujob_changed(make_gpujob())
    state.job_changed(make_job(parallelism=4))
    for pod in pods:
        state.pod_changed(pod)
    return state


def free(state: ClusterState) -> list[int]:
    return list(state.snapshot().free_milli)


def waiting(state: ClusterState) -> dict[str, list[str]]:
    return {str(job.key): [pod.name for pod in job.pods] for job in state.waiting_jobs()}


def facts(state: ClusterState) -> dict[str, Any]:
    """All that a plan depends on."""
    cluster = state.snapshot()
    return {
        "nodes": cluster.nodes,
        "devices": (cluster.dev_id, cluster.free_milli, cluster.free_mib),
        "rest": (cluster.free_cpu_milli, cluster.free_memory_bytes, cluster.free_pods),
        "held": cluster.allocated_milli,
        "projects": state.planner_projects(),
        "jobs": sorted(state.waiting_jobs(), key=lambda job: job.key),
    }
