"""The cluster's figures for metrics: made every ten seconds, kept in between."""

import asyncio
from collections import Counter
from typing import NoReturn

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.usage.in_pieces import in_pieces
from gpu_scheduler.runtime.usage.minute import Minute
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.where_gpus_are import LEAST_MILLI, gpus_by_state
from gpu_scheduler.runtime.usage.works import LiveWork, gpus, live_works
from gpu_scheduler.usage.figures import ClusterUse, WorkUse

PERIOD_SECONDS = 10.0
_Of = tuple[str, str]  # project and type


class ClusterUses:
    """Looks for ever."""

    def __init__(self, common: CommonParts, seen: SeenUse, minute: Minute) -> None:
        """Nothing is known yet; ``minute`` knows what to change about work."""
        self._common = common
        self._seen = seen
        self._minute = minute
        self._held: Counter[_Of] = Counter()  # milli-GPU × seconds
        self._idle: Counter[_Of] = Counter()
        self._at = 0.0
        self._known = ClusterUse()

    def known(self) -> ClusterUse:
        """As it was seen last."""
        return self._known

    async def run(self) -> NoReturn:
        """Look every ten seconds."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            try:
                await self.look()
            except Exception:
                unexpected("usage", "the cluster's figures")

    async def look(self) -> None:
        """Look now, in pieces."""
        state, settings = self._common.state, self._common.settings
        now = self._common.clock.monotonic()
        passed = min(now - self._at, 2 * PERIOD_SECONDS) if self._at else 0.0
        self._at = now
        works = await live_works(state, self._seen, now)
        shown = [self._work(work, passed) async for work in in_pieces(works.values())]
        self._known = ClusterUse(
            gpus=await gpus_by_state(
                state,
                self._seen,
                now,
                idle_seconds=settings.idle_seconds,
                least_milli=LEAST_MILLI,
            ),
            work=shown,
            gpu_seconds={of: gpus(round(milli)) for of, milli in self._held.items()},
            idle_gpu_seconds={of: gpus(round(milli)) for of, milli in self._idle.items()},
            silent_agents=self._seen.silent_agents(),
        )

    def _work(self, work: LiveWork, passed: float) -> WorkUse:
        of, idle = (str(work.project), str(work.type)), work.idle_seconds()
        self._held[of] += round(work.milli * passed)
        if idle is not None and idle >= self._common.settings.idle_seconds:
            self._idle[of] += round(work.milli * passed)
        cpu = work.of_containers("cpu_milli")
        return WorkUse(
            namespace=work.namespace,
            name=work.shown,
            project=str(work.project),
            type=str(work.type),
            gpus=gpus(work.milli),
            busy=work.busy(),
            memory_mib=work.summed("memory_mib"),
            memory_limit_mib=work.summed("cap_mib"),
            cpu_cores=None if cpu is None else cpu / 1000,
            ram_mib=work.of_containers("ram_mib"),
            idle_seconds=idle,
            advice=self._minute.headlines.get(work.name.key, ""),
        )
