"""How long a pod may take to start: what the GPUProject of its namespace says."""

from gpu_scheduler.api.gpuproject import START_TIMEOUT_SECONDS
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord


def start_limit_seconds(state: ClusterState, pod: PodRecord) -> int:
    """Seconds from its placement to its first container; 0 = as long as it takes."""
    owner = state.projects.owner(pod.namespace)
    if owner is None:
        return START_TIMEOUT_SECONDS
    return state.projects.records[owner].start_timeout_seconds
