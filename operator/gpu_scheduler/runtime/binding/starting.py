"""Pods that are on their node and do not start: ADR 0039.

Why not, is read off their Events where the pod itself does not say; one that has not started for
the time that its project allows gives its GPUs back, uncharged, and its job is in doubt
(``state.jobs.doubts``): it is tried again after a back-off, so that others go first. Whose init
container runs is not late. A new leader counts from the pod's own start time, and tries a job again
at once.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import LastWords
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.binding.start_limit import start_limit_seconds
from gpu_scheduler.runtime.common.event_reason import JOB, EventReason
from gpu_scheduler.runtime.common.object_events import ObjectEvents
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.eviction.evictor import Eviction, EvictionCause, EvictionMessage, Evictor
from gpu_scheduler.runtime.jobs.doubting import doubt
from gpu_scheduler.runtime.status.states import on_its_node
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

NOT_STARTED = EvictionCause(
    "not_started",
    "Pods that did not start in time and were evicted.",
    EventReason(
        "StartTimedOut",
        "Warning",
        JOB,
        "a pod could not start for startTimeoutSeconds of the project; it gives its GPU back",
    ),
)
ASK_AFTER_SECONDS = 5.0
_ASK_AGAIN = Backoff(ASK_AFTER_SECONDS, 64 * ASK_AFTER_SECONDS)
_BACK_OFF = Backoff(60.0, 3600.0)
_CHECK_SECONDS = 1.0
_ASKED_AT_ONCE = 5  # pods a second whose Events are read


@dataclass(slots=True)
class _Slow:
    since: float  # monotonic seconds
    ask_at: float
    asked: int = 0
    trouble: Trouble | None = None
    unread: LastWords | None = None
    """Of why its Events could not be read."""


class Starting:
    """Watches pods from their binding to their first container."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        evictor: Evictor,
        gangs: GangGuard,
        *,
        clock: Callable[[], float],
    ) -> None:
        """``clock``: monotonic seconds."""
        self._state = state
        self._evictor = evictor
        self._gangs = gangs
        self._events = ObjectEvents(client)
        self._clock = clock
        self._slow: dict[PodUID, _Slow] = {}
        self.timed_out = 0
        """Pods that gave their GPUs back because they did not start."""

    async def run(self) -> NoReturn:
        """Check for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="starting", about="pods that do not start"
        )

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed."""
        if pod.share is not None and not pod.share.controlled:
            return  # an eviction would be its end: who made it decides how long it may take
        if pod.stage is Stage.PLACED and pod.bound and pod.allocation and not pod.deleting:
            if pod.uid not in self._slow:
                began = self._state.beginnings
                age = began.now() - began.of_pod(pod.uid, pod.started) if pod.started else 0.0
                since = self._clock() - max(0.0, age)
                self._slow[pod.uid] = _Slow(since, since + ASK_AFTER_SECONDS)
        else:
            self._slow.pop(pod.uid, None)

    def gone(self, uid: PodUID) -> None:
        """Forget a pod."""
        self._slow.pop(uid, None)

    def trouble(self, pod: PodRecord) -> Trouble | None:
        """Why a pod does not start, as its Events say."""
        slow = self._slow.get(pod.uid)
        return slow.trouble if slow is not None else None

    async def check(self) -> None:
        """Look once at all pods that have not started."""
        due: Turns[str, PodRecord] = Turns()
        jobs = set[str]()
        for uid, slow in list(self._slow.items()):
            pod = self._state.pods.known.get(uid)
            if pod is None:
                del self._slow[uid]
                continue
            try:
                if self._is_late(pod, slow):
                    self._give_back(pod, slow)
                elif self._to_be_asked(pod, slow) and pod.job_uid not in jobs:
                    jobs.add(pod.job_uid)  # one speaks for all of its Job
                    due.add(pod.namespace, pod)
            except Exception:
                unexpected("starting", f"{pod.namespace}/{pod.name}")
        for _ in range(_ASKED_AT_ONCE):
            taken = due.take()
            if taken is None:
                return
            await self._ask(taken[1])

    def _is_late(self, pod: PodRecord, slow: _Slow) -> bool:
        if pod.initializing and pod.trouble is None:
            slow.since = self._clock()  # it may take its time; what follows is timed anew
            return False
        limit = start_limit_seconds(self._state, pod)
        return bool(limit) and self._clock() - slow.since >= limit

    def _to_be_asked(self, pod: PodRecord, slow: _Slow) -> bool:
        return (
            self._events.allowed
            and pod.trouble is None
            and not pod.initializing
            and slow.ask_at <= self._clock()
        )

    async def _ask(self, pod: PodRecord) -> None:
        slow = self._slow.get(pod.uid)
        if slow is None:
            return
        slow.asked += 1
        slow.ask_at = self._clock() + _ASK_AGAIN.delay_seconds(slow.asked)
        try:
            found = await self._events.trouble(pod)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            slow.unread = slow.unread or LastWords(self._clock)
            if slow.unread.news(error):
                log.info("Events of %s/%s: %s", pod.namespace, pod.name, error)
            return
        key = self._state.workloads.key_of(pod)
        if found is not None and found != slow.trouble and key is not None:
            slow.trouble = found
            self._state.changes.touch(key)

    def _give_back(self, pod: PodRecord, slow: _Slow) -> None:
        job = self._state.workloads.of(pod)
        if job is None:
            return
        trouble = pod.trouble or slow.trouble
        why = trouble.message if trouble is not None else on_its_node(pod)[1]
        limit = start_limit_seconds(self._state, pod)
        message = f"pod {pod.name} gave its GPU back, for it did not start within {limit} s: {why}"
        told = EvictionMessage(NOT_STARTED, f"{message}; it is tried again later")
        if pod.deleting or not self._evictor.evict(Eviction(pod, told)):
            return
        self._gangs.member_lost(pod, message)
        self.timed_out += 1
        doubt(
            self._state,
            job.key,
            FailedStart(
                self._clock(),
                message,
                Reason.START_TIMED_OUT,
                _BACK_OFF.delay_seconds,
                explained=trouble is not None,
            ),
        )
