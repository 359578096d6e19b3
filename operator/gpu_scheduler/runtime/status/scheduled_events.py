"""The Event ``Scheduled`` of pods that ask by themselves: where each went, and what it got there.

Every scheduler leaves one. It is the least important write of all: it waits while placements are on
their way, one after the other goes out, so many a second, and what is too much is dropped. Of a pod
behind our gate kube-scheduler says it, of a GPUJob's pods their job does.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from gpu_scheduler.api.names import ASK_MODELS
from gpu_scheduler.api.share_keys import NOT_READ
from gpu_scheduler.api.share_request import ShareRequest
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import Assignment, DeviceAllocation
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.jobs.gate import gated
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.state.pods.shares import share_of

REASON = "Scheduled"
NOT_ENFORCED = "NotEnforced"  # a key of another scheduler was taken, and does nothing
PAUSE_SECONDS = 0.05  # between two: 20 a second
MOST = 1000  # that wait to be written


class ScheduledEvents:
    """Writes them in the background."""

    def __init__(
        self,
        events: Events,
        *,
        on: bool = True,
        now: Callable[[], str],
    ) -> None:
        """``on``: False = nothing is written."""
        self._events = events
        self._on = on
        self._now = now
        self._todo: deque[tuple[InvolvedObject, str, str, str]] = deque()  # reason, message, when
        self._some = asyncio.Event()

    def placed(self, decision: Assignment, pod: Pod) -> None:
        """A pod was placed; ``pod``: as it was before."""
        share = share_of(pod)
        if not self._on or share is None or len(self._todo) >= MOST:
            return
        meta, at = pod.metadata, self._now()
        subject = InvolvedObject("Pod", meta.namespace, meta.name, meta.uid)
        if not gated(pod):
            said = f"Successfully assigned {subject.namespace}/{subject.name} to {decision.node}"
            self._todo.append((subject, REASON, f"{said}: {shares(decision.devices)}", at))
        if share.request is not None:
            for message in _without_effect(share.request):
                self._todo.append((subject, NOT_ENFORCED, message, at))
        if self._todo:
            self._some.set()

    async def run(self, idle: asyncio.Event) -> NoReturn:
        """Write for ever while ``idle`` is set: no placement is on its way.

        Raises:
            NotLeader: the fence has closed.
        """
        while True:
            await self._some.wait()
            await idle.wait()
            subject, reason, message, at = self._todo.popleft()
            if not self._todo:
                self._some.clear()
            await self._events.write(subject, "Normal", reason, message, at=at)
            await asyncio.sleep(PAUSE_SECONDS)


def _without_effect(request: ShareRequest) -> Iterator[str]:
    """What of a pod's words does nothing."""
    if request.unenforced:
        keys = wording.names(request.unenforced)
        yield f"{keys}: devices are shared in time, and nobody is held to this"
    if choices := [key for key in request.not_read if key in NOT_READ]:
        yield (
            f"{wording.names(choices)}: not read; models are chosen with the annotation "
            f"{ASK_MODELS}, nodes with a nodeSelector, and devices by the scheduler alone"
        )
    if limits := [key for key in request.not_read if key not in NOT_READ]:
        yield f"{wording.names(limits)}: not read; what is asked for is the cap"


def shares(devices: Iterable[DeviceAllocation]) -> str:
    """What of which device: '0.5 of device GPU-1 (20480 MiB)', one after the other."""
    milli: dict[str, int] = {}
    mib: dict[str, int] = {}
    for allocated in devices:
        milli[allocated.device] = milli.get(allocated.device, 0) + allocated.milli
        mib[allocated.device] = mib.get(allocated.device, 0) + allocated.mib
    return ", ".join(
        f"{gpu_from_milli(each)} of device {device} ({mib[device]} MiB)"
        for device, each in milli.items()
    )
