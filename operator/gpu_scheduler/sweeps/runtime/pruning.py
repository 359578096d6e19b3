"""Ending hopeless trials: told to stop first, ended when they do not.

That a trial was told is written on its pod before it is told. So whatever becomes of the pod and of
this process afterwards, the Job does not try that index again and the trial counts as Pruned: the
Job's podFailurePolicy looks at our mark before it looks for an eviction. A pod that still runs
``graceSeconds`` later is evicted, with two seconds to say goodbye.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NoReturn

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.evict import mark_pruned
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.eviction.evictor import Eviction, Evictor
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

GOODBYE_SECONDS = 2  # between SIGTERM and SIGKILL: it has had its grace already
_CHECK_SECONDS = 0.5
_MARK_SECONDS = 3.0  # longer than that no report waits for its answer


class Pruning:
    """Knows which running trials were told to stop."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        evictor: Evictor,
        events: Events,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """``clock`` measures the grace, ``now`` dates the mark."""
        self._state = state
        self._client = client
        self._evictor = evictor
        self._events = events
        self._clock = clock
        self._now = now
        self._failures: Failures[PodUID] = Failures(clock, at_once=1)
        self._told: dict[PodUID, float] = {}  # since when, on our clock
        self._marking: dict[PodUID, asyncio.Task[bool]] = {}
        self.ended = 0
        """Trials that did not stop by themselves and were evicted."""

    def told(self, pod: PodRecord) -> bool:
        """Whether the trial in this pod was told to stop."""
        return bool(pod.pruned) or pod.uid in self._told

    async def tell(self, pod: PodRecord, why: str) -> bool:
        """Write on the pod that its trial was told to stop; whether that is stored now."""
        if self.told(pod):
            return True
        if not self._failures.may_try(pod.uid):
            return False
        task = self._marking.get(pod.uid)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._mark(pod, why))
            self._marking[pod.uid] = task
            task.add_done_callback(lambda _: self._marking.pop(pod.uid, None))
        try:
            async with asyncio.timeout(_MARK_SECONDS):
                return await asyncio.shield(task)
        except TimeoutError:
            return False

    async def run(self) -> NoReturn:
        """End what does not stop, for ever; begins with what an earlier leader told."""
        for pod in self._state.pods.known.values():
            if pod.pruned and pod.stage is not Stage.ENDED:
                ago = self._now().timestamp() - epoch_seconds(pod.pruned)
                self._told[pod.uid] = self._clock() - max(0.0, ago)
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="pruning", about="trials told to stop"
        )

    def check(self) -> None:
        """End pods whose grace is over; forget those that have ended."""
        now = self._clock()
        for uid, since in list(self._told.items()):
            pod = self._state.pods.known.get(uid)
            if pod is None or pod.stage is Stage.ENDED:
                del self._told[uid]
            elif not pod.deleting:
                try:
                    grace = self._grace_seconds(pod)
                    if grace is not None and now - since >= grace:
                        self._end(pod, grace)
                except Exception:
                    unexpected("pruning", f"{pod.namespace}/{pod.name}")

    def _grace_seconds(self, pod: PodRecord) -> int | None:
        """None: its GPUJob is gone, and so will the pod be."""
        job = self._state.workloads.gpujob_of(pod)
        sweep = job.spec.sweep if job is not None and job.spec is not None else None
        if sweep is None or sweep.early_stopping is None:
            return None
        return sweep.early_stopping.grace_seconds

    def _end(self, pod: PodRecord, grace: int) -> None:
        why = f"{pod.name} was told to stop and still runs after {grace} s: ended"
        ended = partial(self._say, pod, why)
        self._evictor.evict(Eviction(pod, grace_seconds=GOODBYE_SECONDS, done=ended))

    def _say(self, pod: PodRecord, why: str) -> None:
        self.ended += 1
        log.info("%s/%s: %s", pod.namespace, pod.name, why)
        job = self._state.workloads.gpujob_of(pod)
        if job is not None:
            self._events.say(InvolvedObject.of_job(job), "Normal", "TrialEnded", why)

    async def _mark(self, pod: PodRecord, why: str) -> bool:
        try:
            await send(self._client, mark_pruned(pod.meta, why, self._now()))
        except errors.NotFound:
            return False  # the watch brings the news
        except errors.ApiError as error:
            # Also when we lead no more: then nobody is told, and nothing is lost.
            if self._failures.note(pod.uid, error):
                log.info("not told to stop: %s/%s: %s", pod.namespace, pod.name, error)
            return False
        self._failures.over(pod.uid)
        self._told[pod.uid] = self._clock()
        return True
