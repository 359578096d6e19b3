"""The planning loop: when something that matters changed, plan once and hand out the decisions.

A cycle is synchronous: snapshot, plan, charge, submit; nothing can change under it. After one that
placed pods the next is at least ``cycle_seconds`` away: most of a cycle's cost does not depend on
how many pods it places, so a burst is planned together, while the first pod of a burst never
waits. Each cycle begins by checking that no device is above its capacity; if one is, the newest
pods above it are evicted before anything else is placed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from gpu_scheduler.core.decision import Evict, Hold, Wait
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import RESERVE_AFTER_SECONDS, plan
from gpu_scheduler.core.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.session import Session
from gpu_scheduler.runtime.binder import Binder
from gpu_scheduler.state.world import World

log = logging.getLogger(__name__)

_LEAST_REST_SECONDS = 0.005
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
        evict: Callable[[Sequence[Evict]], None] = lambda evicts: None,
        may_start: Callable[[JobKey], bool] = lambda job: True,
        reserve_after_seconds: float = RESERVE_AFTER_SECONDS,
        packing: Packing = Packing.FRAGMENTATION,
        consolidate: bool = False,
        now: Callable[[], float] = time.time,
        observe_seconds: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Prepare.

        Args:
            world: what is known.
            binder: carries out placements.
            cycle_seconds: least time between cycles.
            clock: monotonic seconds.
            check_capacity: evicts from devices above capacity; True when that has just begun.
            evict: carries out evictions.
            may_start: whether waiting pods of a job are to be placed at all.
            reserve_after_seconds: see ``core.plan``.
            packing: how nodes and devices are chosen.
            consolidate: see ``core.plan``.
            now: epoch seconds.
            observe_seconds: told how long each cycle took.
        """
        self._world, self._binder = world, binder
        self._cycle_seconds, self._clock = cycle_seconds, clock
        self._check_capacity, self._observe = check_capacity, observe_seconds
        self._evict, self._now, self._may_start = evict, now, may_start
        self._reserve_after_seconds = reserve_after_seconds
        self._session = Session(packing)
        self._consolidate = consolidate
        self._holds: dict[PodUID, Hold] = {}
        self._again_at: float | None = None  # epoch seconds
        self._wake = asyncio.Event()
        self._planned_version = -1
        self.waits: dict[JobKey, Wait] = {}
        self.shares_milli: Mapping[ProjectName, int] = {}
        self.shares_by_model_milli: Mapping[str, Mapping[ProjectName, int]] = {}
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
            changed |= self._again_at is not None and self._again_at <= self._now()
            started = self._clock()
            placed = self.cycle() if changed and not self.paused else 0
            await asyncio.sleep(self._rest_seconds(self._clock() - started, placed))

    def cycle(self) -> int:
        """One planning cycle; answers how many pods it placed."""
        started = self._clock()
        world = self._world
        self._planned_version = world.version
        if self._check_capacity():
            self._planned_version = -1
            self._wake.set()
            return 0
        waiting = [job for job in world.waiting_jobs() if self._may_start(job.key)]
        result = plan(
            world.snapshot(),
            world.planner_projects(),
            waiting,
            occupants=world.occupants,
            holds=tuple(self._holds.values()),
            now=self._now(),
            reserve_after_seconds=self._reserve_after_seconds,
            session=self._session,
            consolidate=self._consolidate,
        )
        gangs = {job.key for job in waiting if job.gang is not None}
        for decision in result.places:
            pod = world.waiting.pod(decision.pod)
            if pod is None:
                raise RuntimeError(f"planned a pod that does not wait: {decision.pod}")
            world.assume(decision)
            self._binder.submit(decision, pod, gang=decision.job in gangs)
        self._evict(result.evicts)
        # Until a pod is bound its room stays promised: the write may still fail.
        self._holds = {uid: h for uid, h in self._holds.items() if uid in world.assumed}
        self._holds |= {hold.pod: hold for hold in result.holds}
        self.shares_milli, self._again_at = result.shares_milli, result.again_at
        self.shares_by_model_milli = result.shares_by_model_milli
        self._take_over({wait.job: wait for wait in result.waits})
        self.cycles += 1
        self._observe(self._clock() - started)
        return len(result.places)

    def expecting(self) -> set[JobKey]:
        """Jobs for which room is being made or kept."""
        return {hold.job for hold in self._holds.values()}

    def _rest_seconds(self, took_seconds: float, placed: int) -> float:
        """Time until the next cycle may begin: long cycles leave the loop to others, too."""
        least = self._cycle_seconds if placed else _LEAST_REST_SECONDS
        return max(least, min(_REST_FACTOR * took_seconds, _MAX_REST_SECONDS))

    def _take_over(self, waits: dict[JobKey, Wait]) -> None:
        for job in self.waits.keys() | waits.keys():
            if self.waits.get(job) != waits.get(job):
                self._world.touched.add(job)
        self.waits = waits

    async def _sleep(self) -> None:
        expiry = self._world.waiting.next_expiry()
        waits = [] if expiry is None else [expiry - self._clock()]
        if self._again_at is not None:
            waits.append(self._again_at - self._now())
        try:
            async with asyncio.timeout(max(0.0, min(waits)) + 0.01 if waits else None):
                await self._wake.wait()
        except TimeoutError:
            pass
