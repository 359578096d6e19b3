"""Why a pod waits, on the pod: PodScheduled=False with the sentence of the plan, and one Event.

People look at ``kubectl describe pod`` first, and autoscalers at this condition. The reason is
Unschedulable only where another node would help, so that none is bought for who waits for a quota.
A pod that is placed at once is told nothing: only who has waited for some seconds costs a write,
and another one when the reason is another. ``Statuses`` of the writer.
"""

from collections.abc import Callable, Iterable, Mapping

from gpu_scheduler.api.condition import Told
from gpu_scheduler.api.states import Trait, event_kind, having
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.status.pod_statuses import MOST_CHARS, PodStatuses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.projects import no_project
from gpu_scheduler.state.pods.pod import PodRecord, Stage

WAITS_SECONDS = 2.0  # before anything is said
_NODE_HELPS = having(Trait.NODE_HELPS)
UNSCHEDULABLE = "Unschedulable"


class PodConditions(PodStatuses):
    """``Statuses`` of waiting pods; keys are their uids."""

    def __init__(
        self,
        state: ClusterState,
        events: Events,
        waits: Callable[[], Mapping[JobKey, Wait]],
        *,
        clock: Callable[[], float],
        now: Callable[[], str],
    ) -> None:
        """``waits``: why jobs wait; ``clock``: monotonic seconds; ``now`` dates conditions."""
        super().__init__(state)
        self._events = events
        self._waits = waits
        self._clock = clock
        self._now = now
        self._due: dict[PodUID, float] = {}  # who is not told yet, the first first

    def touched(self) -> Iterable[str]:
        """See ``Statuses``: those that still wait after a while."""
        now = self._clock()
        for key in self._state.changes.take_touched_pods():
            for waiting in self._state.waiting.uids(key):
                self._due.setdefault(waiting, now + WAITS_SECONDS)
        due: list[str] = []
        for uid, at in self._due.items():
            if at > now:
                break
            due.append(uid)
        for each in due:
            del self._due[PodUID(each)]
        return due

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        pod = self._state.pods.known.get(PodUID(key))
        waits = pod is not None and pod.stage is Stage.WAITING
        return key if waits and key not in self._state.decisions.assumed else None

    def write(self, key: str, uid: str, patch: Told, after: Told) -> Write:
        """See ``Statuses``."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": self._now(),
            **after,
        }
        return self.write_of(key, uid, [condition])

    def status(self, key: str) -> tuple[Told, Told]:
        """See ``Statuses``: reason and message of the condition."""
        pod = self._state.pods.known[PodUID(key)]
        there = pod.unscheduled
        before = {"reason": there.reason, "message": there.message} if there is not None else {}
        reason, message = self._why(pod)
        if not reason:
            return before, before
        told = UNSCHEDULABLE if reason in _NODE_HELPS else reason
        return before, {"reason": told, "message": clip(f"{reason}: {message}", MOST_CHARS)}

    def is_minor(self, patch: Told) -> bool:
        """See ``Statuses``: numbers alone."""
        return patch.keys() == {"message"}

    def written(self, key: str, before: Told, after: Told) -> None:
        """Tell it in an Event, too; a GPUJob's pods are told of on their job."""
        pod = self._state.pods.known.get(PodUID(key))
        if pod is None or pod.share is None or before.get("reason") == after["reason"]:
            return
        reason, _, message = str(after["message"]).partition(": ")
        self._events.say(
            InvolvedObject.of_pod(pod), event_kind(reason) or "Normal", reason, message
        )

    def _why(self, pod: PodRecord) -> tuple[str, str]:
        """Reason and sentence; empty where it is about to be planned."""
        job = self._state.workloads.of(pod)
        if job is None:
            return "", ""
        if job.complaint:
            return Reason.INVALID, job.complaint
        if self._state.projects.owner(pod.namespace) is None:
            return Reason.INVALID, no_project(job.namespace)
        wait, doubt = self._waits().get(job.key), self._state.waiting.doubts.of(job.key)
        if doubt is not None and not (doubt.quiet and wait is None):
            return doubt.said(wait)
        return (wait.reason, wait.message) if wait is not None else ("", "")
