"""By what the use of a pod is summed up: its GPUJob, or else who made it."""

from dataclasses import dataclass

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord

GPUJOB = "GPUJob"


@dataclass(frozen=True, slots=True)
class WorkName:
    """A workload.

    Attributes:
        key: UID of the GPUJob, or namespace/kind name in lower case.
        kind: GPUJob, or the kind in lower case.
        name: Its name.
    """

    key: str
    kind: str
    name: str


def work_of(state: ClusterState, pod: PodRecord) -> tuple[WorkName, GPUJobRecord] | None:
    """Whose a pod is; None: nobody's as far as known."""
    job = state.workloads.of(pod)
    if job is None:
        return None
    if pod.share is None:
        return WorkName(job.uid, GPUJOB, job.name), job
    text = state.groups.names.get(job.key, str(job.key))
    kind, _, name = text.partition("/")[2].partition(" ")
    return WorkName(text, kind, name), job
