"""Jobs become narrower where their pods wait for a place: who waits needs no pod.

A pod that ends is followed by the next one, which finds a place most times. Where it does not, or
where a whole Job lost its places, its width is brought down to the pods that have one, and the Job
controller deletes the others, those without a node first. While that is under way nothing of the
job is placed, so no pod that has just got its place is deleted. What waits goes on waiting in the
planner's queue. Called every half second.
"""

from collections.abc import Callable
from typing import NoReturn

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.runtime.poll import poll_for_ever
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import JobRecord
from gpu_scheduler.state.pods import PodRecord, Stage

WAIT_SECONDS = 5.0  # that a pod may wait before its Job becomes narrower
PATIENCE_SECONDS = 15.0  # that a Job controller is given to delete pods
_LOOK_SECONDS = 0.5


class Narrowing:
    """Looks at the pods that wait."""

    def __init__(
        self,
        state: ClusterState,
        again: Callable[[JobKey], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        """``again``: look at the Jobs of a GPUJob; ``clock``: monotonic seconds."""
        self._state, self._again, self._clock = state, again, clock
        self._since: dict[PodUID, float] = {}  # of pods that wait
        self._until: dict[str, float] = {}  # by uid of the Job that becomes narrower

    async def run(self) -> NoReturn:
        """Look for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=_LOOK_SECONDS, loop="narrowing", about="pods that wait for a place"
        )

    def check(self) -> None:
        """Begin with those whose pods have waited long enough, and end with those that are done."""
        now, waiting = self._clock(), dict[PodUID, float]()
        for key in self._state.waiting.with_pods():
            job = self._state.gpujobs.get(key)
            if job is None or job.templates is None:
                continue
            for own in job.own(self._state.jobs_of(key)):
                here = [pod for pod in self._state.pods_of(own.uid) if self._waits(pod)]
                waiting |= {pod.uid: self._since.get(pod.uid, now) for pod in here}
                oldest = min((waiting[pod.uid] for pod in here), default=now)
                if now - oldest >= WAIT_SECONDS and own.uid not in self._state.narrowed:
                    self._narrow(own, len(here))
        self._since = waiting
        self._let_go(now)

    def _narrow(self, own: JobRecord, waiting: int) -> None:
        """Bring a Job down to its pods that have a place."""
        live = [p for p in self._state.pods_of(own.uid) if p.stage is not Stage.ENDED]
        if own.parallelism > len(live) - waiting and not own.suspend:
            self._state.narrow(own, len(live) - waiting)
            self._again(own.owner)

    def _let_go(self, now: float) -> None:
        """Jobs whose pods are gone, or are not deleted, are planned again."""
        narrowed = self._state.narrowed
        self._until = {u: self._until.get(u, now + PATIENCE_SECONDS) for u in narrowed}
        for uid, until in self._until.items():
            own = self._state.jobs.get(uid)
            here = any(self._waits(pod) for pod in self._state.pods_of(uid))
            done = own is None or own.ended or (own.parallelism <= narrowed[uid] and not here)
            if done or now >= until:
                self._state.widen(uid)

    def _waits(self, pod: PodRecord) -> bool:
        return pod.stage is Stage.WAITING and pod.uid not in self._state.assumed
