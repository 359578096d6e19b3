"""The cluster's figures for metrics: made when somebody asks, and shared by who asks meanwhile."""

from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.usage.minute import Minute
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.where_gpus_are import gpus_by_state
from gpu_scheduler.runtime.usage.works import LiveWork, gpus, live_works
from gpu_scheduler.usage.figures import ClusterUse, GpuState, WorkUse

_SECONDS = 0.5  # that a look may be old for who asks; the text of /metrics adds its own second


class ClusterUses:
    """``await look()`` is how it is now."""

    def __init__(self, common: CommonParts, seen: SeenUse, minute: Minute) -> None:
        """``minute`` knows what to change about work, and counts GPU-seconds."""
        self._common = common
        self._seen = seen
        self._minute = minute
        clock = common.clock.monotonic
        self.works = SharedLook(self._works, _SECONDS, clock)
        """What holds GPUs, by key."""
        self.gpus = SharedLook(self._gpus, _SECONDS, clock)
        """How many GPUs are in each state."""
        self.look = SharedLook(self._look, _SECONDS, clock)

    async def _works(self) -> dict[str, LiveWork]:
        now = self._common.clock.monotonic()
        return await live_works(self._common.state, self._seen, now)

    async def _gpus(self) -> dict[GpuState, float]:
        pending = await self._common.pending()
        return await gpus_by_state(
            self._common.state,
            self._seen,
            self._common.clock.monotonic(),
            idle_seconds=self._common.settings.idle_seconds,
            piece_milli=pending.piece_milli,
        )

    async def _look(self) -> ClusterUse:
        """In pieces."""
        works = await self.works()
        return ClusterUse(
            gpus=await self.gpus(),
            work=[self._work(work) async for work in in_pieces(works.values())],
            gpu_seconds=self._minute.gpu_seconds.held(),
            idle_gpu_seconds=self._minute.gpu_seconds.idle(),
            silent_agents=self._seen.silent_agents(),
            heard=self._heard(),
        )

    def _heard(self) -> dict[str, float]:
        """Our own clock says when: a node's may be wrong."""
        clock = self._common.clock
        ahead = clock.now() - clock.monotonic()
        return {node: ahead + at for node, at in self._seen.heard().items()}

    def _work(self, work: LiveWork) -> WorkUse:
        cpu = work.of_containers("cpu_milli")
        return WorkUse(
            namespace=work.namespace,
            name=work.shown,
            project=str(work.project),
            type=str(work.type),
            gpus=gpus(work.milli),
            used=work.used(),
            requested_gpus=work.requested_gpus(),
            busy=work.busy(),
            memory_mib=work.summed("memory_mib"),
            memory_limit_mib=work.summed("cap_mib"),
            cpu_cores=None if cpu is None else cpu / 1000,
            ram_mib=work.of_containers("ram_mib"),
            idle_seconds=work.idle_seconds(),
            advice=self._minute.headlines.get(work.name.key, ""),
        )
