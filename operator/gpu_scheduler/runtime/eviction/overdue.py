"""Pods that are to go and take too long: ADR 0032.

A pod that was told to end holds its devices until it is gone, and the planner counts on their room.
Whose grace period is longer than any job may ask for is told to hurry; who has not gone a minute
after its end, because its node does not answer or a process hangs, is no longer counted on, so
that others give way. Nothing is ever forced: devices of a pod that may still run are not given
away. By when a pod has to have gone is counted from when it was told to end, by our own clock: a
deletionTimestamp is the API server's.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.conflicts import MAX_GRACE_SECONDS
from gpu_scheduler.jobs.evict import remove
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

LATE_SECONDS = 60.0  # for the kubelet to end what did not end, and to say so
_CHECK_SECONDS = 5.0
_CLOCKS_SECONDS = 60.0  # by which those of the API server and ours may differ


class _End(NamedTuple):
    """By when a pod has to have gone: as the API server says, and by our clock."""

    said: str
    at: float


class Overdue:
    """Looks after pods that are leaving."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        *,
        now: Callable[[], float],
    ) -> None:
        """``now``: epoch seconds."""
        self._state = state
        self._client = client
        self._now = now
        self._ends: dict[PodUID, _End] = {}
        self._failures: Failures[PodUID] = Failures(now, first_seconds=_CHECK_SECONDS)

    async def run(self) -> NoReturn:
        """Check for ever; ends with NotLeader when the fence closes."""
        about = "pods that take too long to go"
        await poll_for_ever(self.check, seconds=_CHECK_SECONDS, loop="overdue", about=about)

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed."""
        if not pod.deletion or pod.stage is Stage.ENDED:
            self._ends.pop(pod.uid, None)
        elif pod.uid not in self._ends or self._ends[pod.uid].said != pod.deletion:
            at, grace = epoch_seconds(pod.deletion), obj.metadata.deletion_grace_period_seconds
            allowed = max(0.0, at - self._now() if grace is None else grace)
            told = self._state.beginnings.of(at - allowed)
            self._ends[pod.uid] = _End(pod.deletion, told + allowed)

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._ends.pop(uid, None)

    async def check(self) -> None:
        """Look once; a pod that cannot be told to hurry is told again later."""
        now = self._now()
        for uid in [each.uid for each in self._state.running_pods.leaving()]:
            pod = self._state.pods.known.get(uid)
            end = self._ends.get(uid)
            if pod is None or end is None:
                continue  # its eviction is asked for
            left = end.at - now
            if left > MAX_GRACE_SECONDS + _CLOCKS_SECONDS:
                if self._failures.may_try(uid):
                    await self._hurry(pod, left)
            elif left < -LATE_SECONDS:
                self._give_up_on(uid, pod)

    def _give_up_on(self, uid: PodUID, pod: PodRecord) -> None:
        log.warning("%s/%s should have gone at %s", pod.namespace, pod.name, pod.deletion)
        self._state.give_up_on(uid)

    async def _hurry(self, pod: PodRecord, left: float) -> None:
        write = remove(pod.meta, grace_seconds=MAX_GRACE_SECONDS)
        try:
            await send(self._client, write)
        except (errors.NotFound, errors.Conflict) as error:
            self._failures.note(pod.uid, error)
            return  # it is gone, or another one has its name: the watch tells it
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if self._failures.note(pod.uid, error):
                log.warning("%s/%s goes too late: %s", pod.namespace, pod.name, error)
            return
        log.info("%s/%s would go in %d s, and is told to hurry", pod.namespace, pod.name, left)
