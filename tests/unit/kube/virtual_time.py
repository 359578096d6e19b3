"""Time that passes only when every task waits: no test sleeps, every run is the same."""

import asyncio
import heapq
import itertools
from collections.abc import Callable


class VirtualTime:
    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self.after_each: Callable[[], None] = lambda: None
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + max(0.0, seconds), next(self._order), future))
        await future

    async def run_for(self, seconds: float) -> None:
        end = self.now + seconds
        await self._settle()
        while self._waiting and self._waiting[0][0] <= end:
            at, _, future = heapq.heappop(self._waiting)
            if future.done():  # its task was cancelled
                continue
            self.now = max(self.now, at)
            future.set_result(None)
            await self._settle()
        self.now = end
        self.after_each()

    async def _settle(self) -> None:
        # Each await of ours is one turn of the loop; the deepest chain here takes fewer.
        for _ in range(10):
            await asyncio.sleep(0)
        self.after_each()
