"""Pods that are to go and take too long: ADR 0032.

A pod that was told to end holds its devices until it is gone, and the planner counts on their room.
Whose grace period is longer than any job may ask for is told to hurry; who has not gone a minute
after its end, because its node does not answer or a process hangs, is no longer counted on, so
that others give way. Nothing is ever forced: devices of a pod that may still run are not given
away.
"""

import logging
import time
from collections.abc import Callable
from typing import NoReturn

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.conflicts import MAX_GRACE_SECONDS
from gpu_scheduler.jobs.evict import remove
from gpu_scheduler.jobs.write import send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.runtime.poll import poll_for_ever
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import epoch_seconds
from gpu_scheduler.state.pods import PodRecord

log = logging.getLogger(__name__)

LATE_SECONDS = 60.0  # for the kubelet to end what did not end, and to say so
_CHECK_SECONDS = 5.0
_CLOCKS_SECONDS = 60.0  # by which those of the API server and ours may differ


class Overdue:
    """Looks after pods that are leaving."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``now``: epoch seconds."""
        self._state, self._client, self._now = state, client, now
        self._failures: Failures[PodUID] = Failures(now, first_seconds=_CHECK_SECONDS)

    async def run(self) -> NoReturn:
        """Check for ever; ends with NotLeader when the fence closes."""
        about = "pods that take too long to go"
        await poll_for_ever(self.check, seconds=_CHECK_SECONDS, loop="overdue", about=about)

    async def check(self) -> None:
        """Look once; a pod that cannot be told to hurry is told again later."""
        now = self._now()
        for uid in [each.uid for each in self._state.running_pods.leaving()]:
            pod = self._state.pods.get(uid)
            if pod is None or not pod.deletion:
                continue  # its eviction is asked for
            left = epoch_seconds(pod.deletion) - now
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
