"""Why a job's pods had to leave their node, until it has pods again.

An eviction is over in a moment, and the Job makes the next pod ten seconds later: meanwhile nothing
that exists says what happened. Told by whoever evicts here; who was drained, or lost with its node,
says so itself (DisruptionTarget). Pods that make room for others are ``preemption``'s.
"""

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage


class Losses:
    """Remembers the last loss of each job."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._of: dict[JobKey, tuple[str, PodUID, str]] = {}  # GPUJob's uid, pod, sentence

    def lost(self, pod: PodRecord, why: str) -> None:
        """A pod has to leave its node; ``why``: a sentence that names it."""
        job = self._state.workloads.gpujob_of(pod)
        if job is not None:
            if len(self._of) > 2 * len(self._state.gpujobs):
                self._of = {k: v for k, v in self._of.items() if k in self._state.gpujobs}
            self._of[job.key] = (job.uid, pod.uid, why)
            self._state.changes.touch(job.key)

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed."""
        if not pod.job_uid:
            return
        if pod.disruption:
            if (pod.deleting or pod.stage is Stage.ENDED) and not self._explained(pod):
                self.lost(pod, f"pod {pod.name} had to leave {pod.node}: {pod.disruption}")
        elif self._of and pod.stage in (Stage.PLACED, Stage.RUNNING) and not pod.deleting:
            key = self._state.workloads.key_of(pod)
            if key is not None and key in self._of and self._of[key][1] != pod.uid:
                del self._of[key]

    def gone(self, uid: PodUID) -> None:
        """A pod is gone; why it had to go is still of interest."""

    def of(self, key: JobKey) -> str:
        """Why pods of a job had to leave; empty: they did not, or are back."""
        known = self._of.get(key)
        job = self._state.gpujobs.get(key)
        if known is None:
            return ""
        if job is None or job.uid != known[0]:
            del self._of[key]
            return ""
        return known[2]

    def _explained(self, pod: PodRecord) -> bool:
        """Whether somebody here said already why this pod goes."""
        key = self._state.workloads.key_of(pod)
        known = self._of.get(key) if key is not None else None
        return pod.uid in self._state.pods.leaving or (known is not None and known[1] == pod.uid)
