"""A gang that is placed in part gives back what it holds, so that no member waits on a GPU.

Three things make it so: a placement that failed, a member that could not start on its node, and a
leader that ended between its writes. In the first two all members are evicted at once. After the
third the planner places the rest if it fits; a gang that it cannot complete within
``patience_seconds`` is evicted as well. Eviction marks pods with DisruptionTarget: nothing is
charged, and every index is started again. Called by the binder, by recovery and by its own loop.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NoReturn

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.events import Events, Subject
from gpu_scheduler.runtime.recovery import Recovery
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.gangs import holds
from gpu_scheduler.state.jobs import GPUJobRecord
from gpu_scheduler.state.pods import PodRecord, Stage

log = logging.getLogger(__name__)

_SWEEP_SECONDS = 1.0

CAUSES = ("incomplete", "placement", "member")  # no place in time, write failed, member lost


class GangGuard:
    """Releases gangs."""

    def __init__(
        self,
        state: ClusterState,
        recovery: Recovery,
        events: Events,
        *,
        waiting: Callable[[], Collection[JobKey]],
        expecting: Callable[[], Collection[JobKey]],
        abort: Callable[[JobKey, str], None],
        wake: Callable[[], None],
        patience_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            recovery: evicts.
            events: told of each release.
            waiting: jobs for which the last plan had no place.
            expecting: jobs for which room is being made.
            abort: ends what is under way of a job's placements.
            wake: an eviction was given up, plan again.
            patience_seconds: how long a gang may be placed in part.
            clock: monotonic seconds.
        """
        self._state, self._recovery, self._events = state, recovery, events
        self._waiting, self._expecting, self._wake = waiting, expecting, wake
        self._abort = abort
        self._patience, self._clock = patience_seconds, clock
        self._since: dict[JobKey, float] = {}  # placed in part, first seen so
        self.counts: Counter[str] = Counter()
        """Releases by cause, one of ``CAUSES``."""

    async def run(self) -> NoReturn:
        """Look for gangs that stay placed in part, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Release the gangs whose other members found no place in time."""
        now = self._clock()
        stuck = {key for key in self._waiting() if self._is_stuck(key)}
        stuck -= set(self._expecting())
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
        self._release(key, "placement", why, frozenset(bound))

    def member_lost(self, pod: PodRecord, why: str) -> None:
        """A member could not start where it was placed and is on its way out."""
        key = self._state.job_of(pod)
        if key is not None:
            self._release(key, "member", why)

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
        pods = [pod for pod in self._state.records(key) if pod.uid not in self._state.leaving]
        waiting = sum(1 for pod in pods if pod.stage is Stage.WAITING)
        gang = self._state.gang(job)
        return gang is not None and waiting >= gang.missing > 0 and any(map(holds, pods))

    def _gang(self, key: JobKey) -> GPUJobRecord | None:
        job = self._state.gpujobs.get(key)
        return job if job is not None and job.spec is not None and is_gang(job.spec) else None

    def _release(
        self, key: JobKey, cause: str, why: str, bound: Collection[PodUID] = frozenset()
    ) -> None:
        job = self._gang(key)
        if job is None:
            return
        self._abort(key, why)
        released: list[PodRecord] = []
        for pod in list(self._state.records(key)):
            if pod.uid in self._state.assumed and pod.uid not in bound:
                self._state.set_leaving(pod.uid, True)  # until its write is settled
                continue
            if pod.deleting or not (holds(pod) or pod.uid in bound):
                continue
            if self._recovery.make_way(pod, lambda uid=pod.uid: self._gave_up(uid)):  # type: ignore[misc]
                self._state.set_leaving(pod.uid, True)
                released.append(pod)
        if not released:
            return
        self.counts[cause] += 1
        message = f"{why}; {len(released)} pods that were placed give back their GPUs, and all wait"
        self._recovery.lost(released[0], message)
        log.warning("%s: %s", key, message)
        subject = Subject("GPUJob", job.namespace, job.name, job.uid)
        self._events.say(subject, "Warning", "GangReleased", message)

    def _gave_up(self, uid: PodUID) -> None:
        """A pod stays where it is: its gang is looked at again by the loop."""
        self._state.set_leaving(uid, False)
        self._wake()
