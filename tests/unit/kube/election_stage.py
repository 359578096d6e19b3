"""Candidates for one Lease, as tasks in virtual time."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from tests.unit.kube.fake_leases import LeaseClient, LeaseStore, Trip
from tests.unit.kube.virtual_time import VirtualTime

from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.lease import Elector, LeaseTimes


class Stage:
    """A store, virtual time, and candidates as tasks."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.store = LeaseStore()
        self.tasks: list[asyncio.Task[Any]] = []

    def candidate(self, identity: str, trip: Callable[[], Trip] = Trip, **settings: Any) -> Elector:
        return Elector(
            LeaseClient(self.store, self.time, trip),
            "gpu-system",
            "leader",
            identity,
            LeaseTimes(**settings),
            Timing(self.time.clock, self.time.sleep, lambda: 0.5),
        )

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def stop(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks or self.tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def lead(elector: Elector) -> None:
    await elector.acquire()
    await elector.hold()
