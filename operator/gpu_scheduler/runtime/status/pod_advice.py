"""What to change about work that asks by itself, on its pods: ``gpu-scheduler.io/Advice``.

A GPUJob says it in its status; a Deployment is not ours to write to. So the oldest pods of such
work bear the headline as a condition, True while there is one and gone with it, and the sentence
stays while the rule does. At most one write an hour for a pod: a headline stands for an hour, and
what somebody else does to the condition is not put right sooner. ``Statuses`` of the writer.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.api.condition import StatusBody
from gpu_scheduler.api.names import CONDITION_ADVICE
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.runtime.status.pod_statuses import MOST_CHARS, PodStatuses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage

MOST_PODS = 10  # of one workload: the others say nothing else
AGAIN_SECONDS = 3600.0


class PodAdvice(PodStatuses):
    """``Statuses`` of pods; keys are their uids."""

    def __init__(self, state: ClusterState, *, clock: Callable[[], float]) -> None:
        """``clock``: monotonic seconds."""
        super().__init__(state)
        self._clock = clock
        self._said: dict[PodUID, Advice] = {}
        self._written: dict[PodUID, float] = {}
        self._due: dict[PodUID, None] = {}

    def take(self, pods: Sequence[PodRecord], headline: Advice | None) -> None:
        """What is said of a workload with these pods now."""
        oldest = sorted(pods, key=lambda pod: (pod.created, pod.name))[:MOST_PODS]
        chosen = {pod.uid for pod in oldest} if headline is not None else set()
        for pod in pods:
            self._said.pop(pod.uid, None)
            if headline is not None and pod.uid in chosen:
                self._said[pod.uid] = headline
            if self._differs(pod):
                self._due[pod.uid] = None

    def keep(self, pods: Collection[PodUID]) -> None:
        """Forget all others."""
        self._said = {uid: each for uid, each in self._said.items() if uid in pods}
        self._written = {uid: at for uid, at in self._written.items() if uid in pods}

    def touched(self) -> Iterable[str]:
        """See ``Statuses``."""
        due, self._due = list(self._due), {}
        return due

    def uid(self, key: str) -> str | None:
        """See ``Statuses``: of those that we have given a place and nobody else speaks for."""
        pod = self._state.pods.known.get(PodUID(key))
        if pod is None or pod.share is None or pod.allocation is None or pod.stage is Stage.ENDED:
            return None
        return key

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """See ``Statuses``."""
        condition = (
            {"type": CONDITION_ADVICE, "status": "True", **after}
            if after
            else {"$patch": "delete", "type": CONDITION_ADVICE}
        )
        return self.write_of(key, uid, [condition])

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``: the condition without its type."""
        pod = self._state.pods.known[PodUID(key)]
        there, said = pod.advised, self._said.get(pod.uid)
        before = (
            {}
            if there is None
            else {
                "reason": there.reason,
                "message": there.message,
                "lastTransitionTime": there.last_transition_time,
            }
        )
        if not self._differs(pod):
            return before, before
        if said is None:
            return before, {}
        return before, {
            "reason": said.rule,
            "message": _sentence(said),
            "lastTransitionTime": said.since,
        }

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """Nothing more is, for an hour; the Event of the day is said of the workload."""
        self._written[PodUID(key)] = self._clock()

    def _differs(self, pod: PodRecord) -> bool:
        """Whether another rule stands on it, and none was written for an hour."""
        said = self._said.get(pod.uid)
        there = pod.advised.reason if pod.advised is not None else ""
        if (said.rule if said is not None else "") == there:
            return False
        return self._clock() - self._written.get(pod.uid, -AGAIN_SECONDS) >= AGAIN_SECONDS


def _sentence(advice: Advice) -> str:
    text = f"{advice.message} ({advice.command})" if advice.command else advice.message
    return clip(text, MOST_CHARS)
