"""By what the use of a pod is summed up: its GPUJob, or else who made it."""

from dataclasses import dataclass

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord

GPUJOB = "GPUJob"
_SHOWN = {
    "deployment": "Deployment",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "replicaset": "ReplicaSet",
    "job": "Job",
    "pod": "Pod",
    "gang": "Gang",
}


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

    @property
    def shown_kind(self) -> str:
        """As Kubernetes writes it, where it is one that is known."""
        return _SHOWN.get(self.kind, self.kind)

    @classmethod
    def of_group(cls, state: ClusterState, group: GPUJobRecord) -> "WorkName":
        """Of pods that ask by themselves: who made them."""
        text = state.groups.names.get(group.key, str(group.key))
        kind, _, name = text.partition("/")[2].partition(" ")
        return cls(text, kind, name)


_ROLE = "#"  # in no name of Kubernetes, and in no UID


def of_role(key: str, role: str) -> str:
    """By what the use of one role of a workload is summed up; without roles: of all of it."""
    return f"{key}{_ROLE}{role}" if role else key


def key_and_role(work: str) -> tuple[str, str]:
    """Of what ``of_role`` made, as an agent tells it."""
    key, _, role = work.partition(_ROLE)
    return key, role


def work_of(state: ClusterState, pod: PodRecord) -> tuple[WorkName, GPUJobRecord] | None:
    """Whose a pod is; None: nobody's as far as known."""
    job = state.workloads.of(pod)
    if job is None:
        return None
    if pod.share is None:
        return WorkName(job.uid, GPUJOB, job.name), job
    return WorkName.of_group(state, job), job
