"""What agents warn of, on pods that ask by themselves: a condition while it lasts, and one Event.

A GPUJob says it in its status. Such a pod has nobody else, so it bears
``gpu-scheduler.io/Protected`` (above its cap, or held by nothing) and ``…/DevicesHealthy`` while
they are False, and neither when all is well or nobody knows: two writes when trouble begins, one
when it is over, none for all others. The sentence stays while the reason does. ``Statuses`` of the
writer.
"""

from collections.abc import Callable, Iterable, Mapping

from gpu_scheduler.api.condition import Told
from gpu_scheduler.api.names import GROUP
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.wording import clip
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.runtime import protection
from gpu_scheduler.runtime.events import Events, Subject
from gpu_scheduler.runtime.protection import Watched
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods import PodRecord, Stage

_MOST_CHARS = 1024  # of a message


class PodWarnings:
    """``Statuses`` of pods; keys are their uids."""

    kind = "pods"

    def __init__(
        self, state: ClusterState, events: Events, *, now: Callable[[], str] = utc_now
    ) -> None:
        """``now`` dates conditions."""
        self._state, self._events, self._now = state, events, now
        self._watched = Watched(state.agents.reports, state.nodes.sick_devices)

    def touched(self) -> Iterable[str]:
        """See ``Statuses``: those that have something to say, or take back."""
        pods = map(self._ours, self._state.agents.take_news())
        return [pod.uid for pod in pods if pod and (pod.warnings or self._warnings(pod))]

    def trifles(self, most: int) -> Iterable[str]:
        """See ``Statuses``: none is."""
        return ()

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        return key if self._ours(PodUID(key)) is not None else None

    def namespace(self, key: str) -> str:
        """See ``Statuses``."""
        pod = self._state.pods.get(PodUID(key))
        return pod.namespace if pod is not None else ""

    def is_dear(self, key: str) -> bool:
        """See ``Statuses``: no pod is."""
        return False

    def is_silent(self, key: str) -> bool:
        """See ``Statuses``: none goes before others."""
        return False

    def write(self, key: str, uid: str, patch: Told, after: Told) -> Write:
        """See ``Statuses``."""
        pod = self._state.pods[PodUID(key)]
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
        # Conditions merge by type in a strategic merge patch: all others stay as they are.
        body = {"metadata": {"uid": uid}, "status": {"conditions": conditions}}
        path = paths.pod(pod.namespace, pod.name, "status")
        return Write("PATCH", path, body, STRATEGIC_MERGE_PATCH)

    def prepare(self) -> None:
        """Nothing: each is worked out by itself."""

    def status(self, key: str) -> tuple[Told, Told]:
        """See ``Statuses``: reason and message by type of condition."""
        pod = self._state.pods[PodUID(key)]
        before = {c.type: {"reason": c.reason, "message": c.message} for c in pod.warnings}
        after = self._warnings(pod)
        for kind, said in before.items():
            if kind in after and after[kind]["reason"] == said["reason"]:
                after[kind] = said
        return before, after

    def is_trifle(self, patch: Told) -> bool:
        """See ``Statuses``."""
        return False

    def is_passing(self, key: str, after: Told) -> bool:
        """See ``Statuses``."""
        return False

    def written(self, key: str, before: Told, after: Told) -> None:
        """Tell what is new of it in an Event, too."""
        pod = self._state.pods.get(PodUID(key))
        if pod is None:  # it went meanwhile
            return
        for kind, said in after.items():
            if before.get(kind) != said:
                self._events.say(Subject.of_pod(pod), "Warning", said["reason"], said["message"])

    def _ours(self, uid: PodUID) -> PodRecord | None:
        """A pod that asks by itself and has its place; of others we may take nothing away."""
        pod = self._state.pods.get(uid)
        if pod is None or pod.share is None or pod.allocation is None:
            return None
        return pod if pod.stage is not Stage.ENDED else None

    def _warnings(self, pod: PodRecord) -> dict[str, Mapping[str, str]]:
        return {
            f"{GROUP}/{kind}": {"reason": reason, "message": clip(message, _MOST_CHARS)}
            for kind, holds, reason, message in protection.conditions([pod], self._watched, {})
            if not holds
        }
