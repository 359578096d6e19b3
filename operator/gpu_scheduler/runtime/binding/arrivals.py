"""Pods that come and for which a place is kept: they are bound at once, without another plan.

A pod takes the place of the nominated one of its index, or of any other of its role. Where it is
not what was planned, and does not fit there, it waits like any other. The members of a gang take
theirs together, once all have come.
"""

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.binder import Binder
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage


class Arrivals:
    """Hands pods to the binder."""

    def __init__(self, state: ClusterState, binder: Binder) -> None:
        """``binder`` carries the placements out."""
        self._state = state
        self._binder = binder

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed."""
        decisions = self._state.decisions
        if pod.stage not in (Stage.WAITING, Stage.BLOCKED) or pod.uid in decisions.assumed:
            return
        job = self._state.workloads.gpujob_of(pod)
        if job is None or pod.deleting or job.key not in decisions.nominated:
            return
        own = self._state.jobs.believed[pod.job_uid]
        if pod.stage is Stage.BLOCKED or self._state.shrinks(own):
            decisions.give_back(job.key)  # it is not to start now, and who knows for how long
        elif job.spec is not None and is_gang(job.spec):
            self._gang_comes(job.key)
        elif (placed := self._placed(job.key, pod)) is not None:
            self._binder.submit(placed, obj)

    def gone(self, uid: PodUID) -> None:
        """Nothing is remembered of pods."""

    def take_places(self) -> None:
        """Pods that were seen before their Job take their places, before anything is planned.

        They wait, and places of their Job are kept: a plan would give them others beside these.
        """
        for pod, obj in self._state.waiting.take_early():
            self.observe(obj, pod)

    def _placed(self, key: JobKey, pod: PodRecord) -> Assignment | None:
        decisions = self._state.decisions
        nominated = decisions.nominated.whose_place(key, self._role(pod), pod.index)
        return decisions.take_place(nominated, pod.uid) if nominated is not None else None

    def _gang_comes(self, key: JobKey) -> None:
        """Place the members of a gang, if all have come; none of them, if one does not fit."""
        state = self._state
        here = [pod for pod in state.workloads.pods(key) if pod.stage is Stage.WAITING]
        if len(here) < len(state.decisions.nominated.of(key)):
            return
        found: list[tuple[Assignment, Pod]] = []
        for pod in here:
            obj, place = state.waiting.pod(pod.uid), self._placed(key, pod)
            if place is None or obj is None:
                break
            found.append((place, obj))
        if len(found) == len(here):
            for place, obj in found:
                self._binder.submit(place, obj, gang=True)
            return
        for place, obj in found:
            state.forget(place.pod, obj)
        state.decisions.give_back(key)

    def _role(self, pod: PodRecord) -> str:
        return self._state.jobs.believed[pod.job_uid].role
