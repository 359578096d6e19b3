"""GPUJobs whose pods mount a claim that is not there, or not bound: they hold nothing until it is.

kube-scheduler would not bind their pods, and their places would be held until that is given up. So
such a job is not let into the queue (``accepting``), and its claims are looked at again, each at
least every second, later by a hundredth of the time that it is waited for, and never more than a
few a second in all. A claim that waits for its first consumer is as it should be.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.jobs import prerequisites
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord

_CHECK_SECONDS = 0.5
_AT_ONCE = 4  # claims that are looked at in one check
_LEAST_SECONDS, _MOST_SECONDS = 0.9, 30.0  # between two looks at one
_PART = 0.01  # of the time that it is waited for


class ClaimMissingError(Exception):
    """A sentence for the user: which claim, and what to do about it."""


@dataclass(slots=True)
class _Missing:
    since: float  # monotonic seconds
    due: float
    jobs: dict[JobKey, None] = field(default_factory=dict)


class MissingClaims:
    """Which claims are waited for, and by whom."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        again: Callable[[str], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        """``again``: told of a namespace in which a claim can be used now."""
        self._state = state
        self._client = client
        self._again = again
        self._clock = clock
        self._of: dict[tuple[str, str], _Missing] = {}  # by namespace and name

    async def check_job(self, job: GPUJobRecord, unbound: Iterable[str]) -> None:
        """Nothing, where the claims of a job that were not found bound can be used.

        Raises:
            ClaimMissingError: one cannot; it is looked at again.
            ApiError: the API server could not be asked.
        """
        for name in dict.fromkeys(unbound):
            why = await prerequisites.unusable(self._client, job.namespace, name)
            if why:
                now, place = self._clock(), (job.namespace, name)
                known = self._of.setdefault(place, _Missing(now, now + _LEAST_SECONDS))
                known.jobs[job.key] = None
                raise ClaimMissingError(
                    f"{why}; its pods mount it: make it, or name another. Nothing is held for the "
                    "job until then, and it goes on by itself"
                )

    async def run(self) -> None:
        """Look for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="claims", about="claims that jobs wait for"
        )

    async def check(self) -> None:
        """Look at a few whose time has come, of all namespaces in turn."""
        now = self._clock()
        turns: Turns[str, tuple[str, str]] = Turns()
        for place, missing in sorted(self._of.items(), key=lambda each: each[1].due):
            if missing.due > now:
                break
            turns.add(place[0], place)
        taken = [place for _, place in filter(None, (turns.take() for _ in range(_AT_ONCE)))]
        async with asyncio.TaskGroup() as group:
            for place in taken:
                group.create_task(self._look(place))

    async def _look(self, place: tuple[str, str]) -> None:
        missing = self._of[place]
        if not any(map(self._waits, missing.jobs)):
            del self._of[place]
            return
        now = self._clock()
        delay = min(max(_PART * (now - missing.since), _LEAST_SECONDS), _MOST_SECONDS)
        missing.due = now + delay
        try:
            if await prerequisites.unusable(self._client, *place):
                return
        except errors.NotLeader:
            raise
        except errors.ApiError:
            return  # asked again
        self._of.pop(place, None)
        self._again(place[0])

    def _waits(self, key: JobKey) -> bool:
        job = self._state.gpujobs.get(key)
        waits = job is not None and bool(job.problem) and not job.deleting
        return waits and job is not None and job.problem_as is Reason.VOLUME_NOT_MOUNTED
