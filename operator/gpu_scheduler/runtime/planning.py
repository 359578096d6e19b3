"""The planning loop: when something that matters changed, plan once and hand out the decisions.

A cycle is synchronous: snapshot, plan, charge, submit; nothing can change under it. Cycles are at
least ``cycle_seconds`` apart so that a burst of pods is planned together. Each cycle begins by
checking that no device is above its capacity; if one is, the newest pods above it are evicted
before anything else is placed.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from gpu_scheduler.core.decision import Wait
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.request import JobKey
from gpu_scheduler.runtime.binder import Binder
from gpu_scheduler.state.world import World

log = logging.getLogger(__name__)

_REST_FACTOR = 9.0  # planning takes at most a tenth of the time of a core …
_MAX_REST_SECONDS = 0.25  # … unless single cycles are long


class Planning:
    """Plans whenever woken and something changed."""

    def __init__(
        self,
        world: World,
        binder: Binder,
        *,
        cycle_seconds: float,
        clock: Callable[[], float],
        check_capacity: Callable[[], bool],
        observe_seconds: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """``check_capacity`` evicts from devices above capacity; True when that has just begun."""
        self._world, self._binder = world, binder
        self._cycle_seconds, self._clock = cycle_seconds, clock
        self._check_capacity, self._observe = check_capacity, observe_seconds
        self._wake = asyncio.Event()
        self._planned_version = -1
        self.waits: dict[JobKey, Wait] = {}
        self.cycles = 0
        self.paused = False  # no more cycles: the replica is about to end

    def wake(self) -> None:
        """Something may have changed."""
        self._wake.set()

    async def run(self) -> NoReturn:
        """Plan for ever."""
        while True:
            await self._sleep()
            self._wake.clear()
            changed = self._world.waiting.expire(self._clock())
            changed |= self._world.version != self._planned_version
            started = self._clock()
            if changed and not self.paused:
                self.cycle()
            await asyncio.sleep(self._rest_seconds(self._clock() - started))

    def cycle(self) -> None:
        """One planning cycle."""
        started = self._clock()
        world = self._world
        self._planned_version = world.version
        if self._check_capacity():
            self._planned_version = -1
            self._wake.set()
            return
        result = plan(world.snapshot(), world.planner_projects(), world.waiting_jobs())
        for decision in result.places:
            pod = world.waiting.pod(decision.pod)
            if pod is None:
                raise RuntimeError(f"planned a pod that does not wait: {decision.pod}")
            world.assume(decision)
            self._binder.submit(decision, pod)
        self._take_over({wait.job: wait for wait in result.waits})
        self.cycles += 1
        self._observe(self._clock() - started)

    def _rest_seconds(self, cycle_seconds: float) -> float:
        """Time until the next cycle may begin: long cycles leave the loop to others, too."""
        return max(self._cycle_seconds, min(_REST_FACTOR * cycle_seconds, _MAX_REST_SECONDS))

    def _take_over(self, waits: dict[JobKey, Wait]) -> None:
        for job in self.waits.keys() | waits.keys():
            if self.waits.get(job) != waits.get(job):
                self._world.touched.add(job)
        self.waits = waits

    async def _sleep(self) -> None:
        expiry = self._world.waiting.next_expiry()
        try:
            async with asyncio.timeout(
                None if expiry is None else max(0.0, expiry - self._clock()) + 0.01
            ):
                await self._wake.wait()
        except TimeoutError:
            pass
