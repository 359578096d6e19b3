"""What conditions on pods have in common, for the writer of statuses; keys are the pods' uids."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH
from gpu_scheduler.runtime.status.status_writer import Statuses
from gpu_scheduler.state.cluster_state import ClusterState

MOST_CHARS = 1024  # of a message


class PodStatuses(Statuses):
    """The part of ``Statuses`` that does not depend on what is said."""

    kind = "pods"

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def namespace(self, key: str) -> str:
        """See ``Statuses``."""
        pod = self._state.pods.known.get(PodUID(key))
        return pod.namespace if pod is not None else ""

    def write_of(self, key: str, uid: str, conditions: Sequence[Mapping[str, Any]]) -> Write:
        """The write that puts these on a pod.

        Conditions merge by type in a strategic merge patch: all others stay as they are.
        """
        pod = self._state.pods.known[PodUID(key)]
        body = {"metadata": {"uid": uid}, "status": {"conditions": [*conditions]}}
        path = paths.pod(pod.namespace, pod.name, "status")
        return Write("PATCH", path, body, STRATEGIC_MERGE_PATCH)
