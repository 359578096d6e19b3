"""Why a pod waits, on the pod: PodScheduled=False with the sentence of the plan, and one Event.

People look at ``kubectl describe pod`` first, and autoscalers at this condition. The reason is
Unschedulable only where another node would help, so that none is bought for who waits for a quota.
A pod that is placed at once is told nothing: only who has waited for some seconds costs a write,
and another one when the reason is another. ``Statuses`` of the writer.
"""

from collections.abc import Callable, Iterable, Mapping

from gpu_scheduler.api import names
from gpu_scheduler.api.condition import StatusBody
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
JOB_UNKNOWN_SECONDS = 15.0  # the same of a Job's pod; of a GPUJob's Job one hears with its pods
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
        self._due_of_jobs: dict[PodUID, float] = {}  # the same, where a Job has made them

    def touched(self) -> Iterable[str]:
        """See ``Statuses``: those that still wait after a while."""
        now, changes = self._clock(), self._state.changes
        for key in changes.take_touched_pods():
            for waiting in self._state.waiting.uids(key):
                self._due.setdefault(waiting, now + WAITS_SECONDS)
        for lone in changes.take_ownerless():
            pod = self._state.pods.known.get(lone)
            if pod is not None and pod.job_uid:
                self._due_of_jobs.setdefault(lone, now + JOB_UNKNOWN_SECONDS)
            else:
                self._due.setdefault(lone, now + WAITS_SECONDS)
        return [*_taken(self._due, now), *_taken(self._due_of_jobs, now)]

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        pod = self._state.pods.known.get(PodUID(key))
        if pod is None or key in self._state.decisions.assumed:
            return None
        return key if pod.stage is Stage.WAITING or self._is_nobodys(pod) else None

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """See ``Statuses``."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": self._now(),
            **after,
        }
        return self.write_of(key, uid, [condition])

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``: reason and message of the condition."""
        pod = self._state.pods.known[PodUID(key)]
        there = pod.unscheduled
        before = {"reason": there.reason, "message": there.message} if there is not None else {}
        reason, message = self._why(pod)
        if not reason:
            return before, before
        told = UNSCHEDULABLE if reason in _NODE_HELPS else reason
        return before, {"reason": told, "message": clip(f"{reason}: {message}", MOST_CHARS)}

    def is_minor(self, key: str, patch: StatusBody) -> bool:
        """See ``Statuses``: numbers alone."""
        return patch.keys() == {"message"}

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """Tell it in an Event, too; a GPUJob's pods are told of on their job."""
        pod = self._state.pods.known.get(PodUID(key))
        if pod is None or before.get("reason") == after["reason"]:
            return
        if pod.share is None and not self._is_nobodys(pod):
            return
        reason, _, message = str(after["message"]).partition(": ")
        self._events.say(
            InvolvedObject.of_pod(pod), event_kind(reason) or "Normal", reason, message
        )

    def _is_nobodys(self, pod: PodRecord) -> bool:
        """Whether it waits for us, and nothing says how much of a GPU it wants."""
        ours = bool(pod.names_us) and not (pod.deleting or pod.holds)
        return ours and pod.share is None and self._state.workloads.key_of(pod) is None

    def _why(self, pod: PodRecord) -> tuple[str, str]:
        """Reason and sentence; empty where it is about to be planned."""
        job = self._state.workloads.of(pod)
        if job is None:
            return (Reason.INVALID, _nobodys(pod)) if self._is_nobodys(pod) else ("", "")
        if job.complaint:
            return (job.problem_as if job.problem else Reason.INVALID), job.complaint
        if self._state.projects.owner(pod.namespace) is None:
            return Reason.INVALID, no_project(job.namespace)
        wait, doubt = self._waits().get(job.key), self._state.waiting.doubts.of(job.key)
        if doubt is not None and not (doubt.quiet and wait is None):
            return doubt.said(wait)
        return (wait.reason, wait.message) if wait is not None else ("", "")


def _taken(due: dict[PodUID, float], now: float) -> list[PodUID]:
    """Those whose time has come."""
    found = []
    for uid, at in due.items():
        if at > now:
            break
        found.append(uid)
    for uid in found:
        del due[uid]
    return found


def _nobodys(pod: PodRecord) -> str:
    """What is said of a pod that waits for us and asks for nothing."""
    return (
        f"it waits for the GPU scheduler by {pod.names_us}, and asks for no share of a GPU: make "
        f'it anew with the label {names.ASK_GPU}: "0.5" in a namespace of a project, or without '
        f"{pod.names_us}"
    )
