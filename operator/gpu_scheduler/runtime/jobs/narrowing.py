"""Jobs become narrower where their pods wait for a place: who waits needs no pod.

A pod that ends is followed by the next one, which finds a place most times. Where it does not, or
where a whole Job lost its places, its parallelism is brought down to the pods that have one, and
the Job controller deletes the others, those without a node first. From then on until they are gone
nothing of the job is placed (``state.pods.counting``), so no pod that has just got its place is
deleted, however slow the controller is and whoever leads. What waits goes on waiting in the
planner's queue.
"""

from collections.abc import Callable
from typing import NoReturn

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.counting import knows_what_runs
from gpu_scheduler.state.pods.pod import PodRecord, Stage

WAIT_SECONDS = 5.0  # that a pod may wait before its Job becomes narrower
_LOOK_SECONDS = 0.5


class Narrowing:
    """Looks at the pods that wait."""

    def __init__(
        self,
        state: ClusterState,
        again: Callable[[JobKey], None],
        *,
        stays: Callable[[str], bool] = lambda uid: False,
        clock: Callable[[], float],
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            again: look at the Jobs of a GPUJob.
            stays: whether a Job, by its uid, cannot be changed now.
            clock: monotonic seconds.
        """
        self._state = state
        self._again = again
        self._clock = clock
        self._stays = stays
        self._since: dict[PodUID, float] = {}  # of pods that wait

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
            for own in job.own(self._state.workloads.jobs(key)):
                here = [pod for pod in self._state.pods.of_job(own.uid) if self._waits(pod)]
                waiting |= {pod.uid: self._since.get(pod.uid, now) for pod in here}
                oldest = min((waiting[pod.uid] for pod in here), default=now)
                if here and (now - oldest >= WAIT_SECONDS or self._state.shrinks(own)):
                    self._narrow(own)
        self._since = waiting
        self._let_be()

    def _narrow(self, own: JobRecord) -> None:
        """Bring a Job down to its pods that have a place."""
        placed = self._state.count(own.uid).placed
        if own.parallelism > placed and not (own.suspend or own.ended or self._stays(own.uid)):
            if self._state.decisions.narrowed.get(own.uid) != placed:
                self._state.decisions.narrow(own, placed)

    def _let_be(self) -> None:
        """Have those written whose controller knows what runs; those that are done are let be."""
        for uid, wanted in tuple(self._state.decisions.narrowed.items()):
            own, count = self._state.jobs.believed.get(uid), self._state.count(uid)
            if own is None or own.ended or own.suspend or own.parallelism <= wanted:
                self._state.decisions.let_be(uid)
            elif knows_what_runs(own, count) and own.parallelism > count.placed:
                self._again(own.owner)

    def _waits(self, pod: PodRecord) -> bool:
        return pod.stage is Stage.WAITING and pod.uid not in self._state.decisions.assumed
