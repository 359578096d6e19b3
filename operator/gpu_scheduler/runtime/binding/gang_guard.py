"""A gang that is placed in part gives back what it holds, so that no member waits on a GPU.

Three things make it so: a placement that failed, a member that could not start on its node, and a
leader that ended between its writes. In the first two all members are evicted at once. After the
third the planner places the rest if it fits; a gang that it cannot complete within
``patience_seconds`` is evicted as well. Eviction marks pods with DisruptionTarget: nothing is
charged, and every index is started again. Told by the binder and by those who watch placed pods.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.eviction.evictor import Eviction, Evictor
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.state.queue.gangs import holds

_CHECK_SECONDS = 1.0

CAUSES = ("incomplete", "placement", "member")  # no place in time, write failed, member lost


@dataclass(slots=True)
class GangWrite:
    """Placements of one gang."""

    unsettled: int = 0
    failure: str = ""
    placed: list[PodUID] = field(default_factory=list)


class GangWrites:
    """Those of all gangs, by job: the places of a gang are one decision.

    When one fails, those not written yet are dropped and those written are released.
    """

    def __init__(self) -> None:
        self._of: dict[JobKey, GangWrite] = {}

    def begin(self, job: JobKey) -> None:
        """One more placement of a gang is to be written."""
        self._of.setdefault(job, GangWrite()).unsettled += 1

    def settle(self, job: JobKey) -> None:
        """One of them has been written, or never will be."""
        gang = self._of.get(job)
        if gang is not None:
            gang.unsettled -= 1
            if not gang.unsettled:
                del self._of[job]

    def of(self, job: JobKey) -> GangWrite | None:
        """What is under way of a gang; None: nothing, or it is none."""
        return self._of.get(job)

    def abort(self, job: JobKey, why: str) -> None:
        """Place no more members of a gang, and say so of those whose write is under way."""
        gang = self._of.get(job)
        if gang is not None:
            gang.failure = gang.failure or why


class GangGuard:
    """Releases gangs."""

    def __init__(
        self,
        state: ClusterState,
        evictor: Evictor,
        plan: LastPlan,
        *,
        patience_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            evictor: evicts, and tells of each release.
            plan: jobs that wait, and those for which room is being made.
            patience_seconds: how long a gang may be placed in part.
            clock: monotonic seconds.
        """
        self._state = state
        self._evictor = evictor
        self._plan = plan
        self.writes = GangWrites()  # placements that are under way
        self._patience = patience_seconds
        self._clock = clock
        self._since: dict[JobKey, float] = {}  # placed in part, first seen so
        self.counts: Counter[str] = Counter()
        """Releases by cause, one of ``CAUSES``."""

    async def run(self) -> NoReturn:
        """Look for gangs that stay placed in part, for ever."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="gangs", about="gangs that are placed in part"
        )

    def check(self) -> None:
        """Release the gangs whose other members found no place in time."""
        now = self._clock()
        jobs = self._state.jobs.believed.values()
        there = {own.owner for own in jobs}  # only those can hold anything
        stuck = {key for key in there if key in self._plan.waits and self._is_stuck(key)}
        stuck -= self._plan.expecting()
        self._since = {key: self._since.get(key, now) for key in stuck}
        why = f"no place for all pods within {self._patience:g} s"
        for key, since in self._since.items():
            if now - since >= self._patience:
                try:
                    self._release(key, "incomplete", why)
                except Exception:
                    unexpected("gangs", key)

    def placement_failed(self, key: JobKey, why: str, bound: Iterable[PodUID] = ()) -> None:
        """A member was not placed; ``bound``: those that were, which the watch may not show yet."""
        job = self._gang(key)
        if job is not None and not self._has_its_least(job):
            self._release(key, "placement", why, frozenset(bound))

    def member_lost(self, pod: PodRecord, why: str) -> None:
        """A member could not start where it was placed and is on its way out."""
        key = self._state.workloads.key_of(pod)
        job = self._gang(key) if key is not None else None
        if job is not None and not self._has_its_least(job, pod.uid):
            self._release(job.key, "member", why)

    def _is_stuck(self, key: JobKey) -> bool:
        try:
            return self._half_placed(key)
        except Exception:
            unexpected("gangs", key)
            return False

    def _half_placed(self, key: JobKey) -> bool:
        """Whether members hold places while all others wait for theirs."""
        job = self._gang(key)
        if job is None:
            return False
        leaving = self._state.pods.leaving
        pods = [pod for pod in self._state.workloads.pods(key) if pod.uid not in leaving]
        waiting, gang = self._state.waiting_job(key), self._state.gang(job)
        if waiting is None or gang is None or self._has_its_least(job):
            return False
        return len(waiting.pods) >= gang.missing > 0 and any(map(holds, pods))

    def _has_its_least(self, job: GPUJobRecord, lost: PodUID | None = None) -> bool:
        """Whether a gang that may have more members has as many as it needs; ``lost``: without."""
        if not job.elastic or job.spec is None:
            return False
        leaving = {*self._state.pods.leaving, lost}
        there = (pod for pod in self._state.workloads.pods(job.key) if pod.uid not in leaving)
        return sum(holds(pod) or pod.phase == "Succeeded" for pod in there) >= job.spec.total_pods

    def _gang(self, key: JobKey) -> GPUJobRecord | None:
        job = self._state.workloads.get(key)
        return job if job is not None and job.spec is not None and is_gang(job.spec) else None

    def _release(
        self, key: JobKey, cause: str, why: str, bound: Collection[PodUID] = frozenset()
    ) -> None:
        job = self._gang(key)
        if job is None:
            return
        self.writes.abort(key, why)
        released: list[PodRecord] = []
        for pod in list(self._state.workloads.pods(key)):
            if pod.uid in self._state.decisions.assumed and pod.uid not in bound:
                self._state.set_leaving(pod.uid, True)  # until its write is settled
                continue
            if pod.deleting or not (holds(pod) or pod.uid in bound):
                continue
            stays = partial(self._stays, pod.uid)
            if self._evictor.evict(Eviction(pod, gave_up=stays)):
                self._state.set_leaving(pod.uid, True)
                released.append(pod)
        if not released:
            return
        self.counts[cause] += 1
        given = f"{len(released)} pods that were placed give back their GPUs, and all wait"
        self._evictor.tell(released[0], "GangReleased", f"{why}; {given}")

    def _stays(self, uid: PodUID) -> None:
        """A pod stays where it is: its gang is looked at again by the loop."""
        self._state.set_leaving(uid, False)
        self._state.changes.replan()
