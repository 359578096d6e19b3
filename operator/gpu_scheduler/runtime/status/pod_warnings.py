"""What is to be said of pods that have no GPUJob: a condition while it lasts, and one Event.

A GPUJob says it in its status. A pod that asks by itself, or has lost its owner, has nobody else,
so it bears ``gpu-scheduler.io/Protected`` (above its cap, or held by nothing), ``…/DevicesHealthy``
and ``…/Owned`` while they are False, and none of them when all is well or nobody knows: two writes
when trouble begins, one when it is over, none for all others. The sentence stays while the reason
does. ``Statuses`` of the writer.
"""

from collections.abc import Callable, Iterable, Mapping

from gpu_scheduler.api.condition import ConditionType, StatusBody
from gpu_scheduler.api.names import GROUP
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.wording import clip, gpus
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.status import protection
from gpu_scheduler.runtime.status.pod_statuses import MOST_CHARS, PodStatuses
from gpu_scheduler.runtime.status.protection import Watched
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage

OWNER_GONE = "OwnerGone"


class PodWarnings(PodStatuses):
    """``Statuses`` of pods; keys are their uids."""

    def __init__(self, state: ClusterState, events: Events, *, now: Callable[[], str]) -> None:
        """``now`` dates conditions."""
        super().__init__(state)
        self._events = events
        self._now = now
        self._watched = Watched(state.nodes.agents.reports, state.nodes.sick_devices)

    def touched(self) -> Iterable[str]:
        """See ``Statuses``: those that have something to say, or take back."""
        pods = map(self._ours, self._state.nodes.agents.take_news())
        return [pod.uid for pod in pods if pod and (pod.warnings or self._warnings(pod))]

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        return key if self._ours(PodUID(key)) is not None else None

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """See ``Statuses``."""
        pod = self._state.pods.known[PodUID(key)]
        since = {each.type: each.last_transition_time for each in pod.warnings}
        conditions = [
            {
                "type": kind,
                "status": "False",
                "lastTransitionTime": since.get(kind) or self._now(),
                **said,
            }
            if said is not None
            else {"$patch": "delete", "type": kind}
            for kind, said in patch.items()
        ]
        return self.write_of(key, uid, conditions)

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``: reason and message by type of condition."""
        pod = self._state.pods.known[PodUID(key)]
        before = {c.type: {"reason": c.reason, "message": c.message} for c in pod.warnings}
        after = self._warnings(pod)
        for kind, said in before.items():
            if kind in after and after[kind]["reason"] == said["reason"]:
                after[kind] = said
        return before, after

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """Tell what is new of it in an Event, too."""
        pod = self._state.pods.known.get(PodUID(key))
        if pod is None:  # it went meanwhile
            return
        for kind, said in after.items():
            if before.get(kind) != said:
                self._events.say(
                    InvolvedObject.of_pod(pod), "Warning", said["reason"], said["message"]
                )

    def _ours(self, uid: PodUID) -> PodRecord | None:
        """A pod that has its place and no GPUJob, or did not have one when something was said."""
        pod = self._state.pods.known.get(uid)
        if pod is None or pod.allocation is None or pod.stage is Stage.ENDED:
            return None
        return pod if pod.warnings or self._has_nobody(pod) else None

    def _has_nobody(self, pod: PodRecord) -> bool:
        return pod.share is not None or pod.uid in self._state.bereft.staying

    def _warnings(self, pod: PodRecord) -> dict[str, Mapping[str, str]]:
        if not self._has_nobody(pod):
            return {}
        found = protection.conditions([pod], self._watched, {})
        if pod.uid in self._state.bereft.staying:
            found.append((ConditionType.OWNED, False, OWNER_GONE, self._left(pod)))
        return {
            f"{GROUP}/{kind}": {"reason": reason, "message": clip(message, MOST_CHARS)}
            for kind, holds, reason, message in found
            if not holds
        }

    def _left(self, pod: PodRecord) -> str:
        """That a pod has lost its owner and holds what it holds."""
        devices = pod.allocation.devices if pod.allocation is not None else ()
        held, project = (
            sum(each.milli for each in devices),
            self._state.projects.owner(pod.namespace),
        )
        charged = f", charged to project {project}" if project is not None else ""
        return (
            f"no GPUJob owns this pod any more: it runs on and holds {gpus(held)} of {pod.node}"
            f"{charged}, and nobody makes it again; kubectl delete pod -n {pod.namespace} "
            f"{pod.name} gives them back"
        )
