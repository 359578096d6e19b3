"""The cluster's figures for metrics: made when somebody asks, and shared by who asks meanwhile.

What has not changed since somebody asked last is not made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.runtime.common.build import CommonParts
from gpu_scheduler.runtime.usage.held import HeldGpus, NodeHeld
from gpu_scheduler.runtime.usage.minute import Minute
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.where_gpus_are import GpuStates, WhereGpusAre
from gpu_scheduler.runtime.usage.works import LiveWork, LiveWorks, busy_of, gpus, sum_of
from gpu_scheduler.usage.answer import ShareUse
from gpu_scheduler.usage.figures import ClusterUse, ContainerFigures, WorkUse

_SECONDS = 0.5  # that a look may be old for who asks; the text of /metrics adds its own second
_A_TURN = 100  # workloads


@dataclass(frozen=True, slots=True)
class Holders:
    """Of one moment: nodes with GPUs by name, and the work that holds some by key."""

    nodes: Mapping[str, NodeHeld]
    works: Mapping[str, LiveWork]


class ClusterUses:
    """``await look()`` is how it is now."""

    def __init__(self, common: CommonParts, seen: SeenUse, minute: Minute) -> None:
        """``minute`` knows what to change about work, and counts GPU-seconds."""
        self._common = common
        self._seen = seen
        self._minute = minute
        clock = common.clock.monotonic
        self._nodes = HeldGpus(common.state, seen)
        self._works = LiveWorks(common.state)
        self._states = GpuStates(common.settings.idle_seconds)
        self._known: dict[LiveWork, tuple[object, str, WorkUse]] = {}
        self.holders = SharedLook(self._holders, _SECONDS, clock)
        """What holds GPUs."""
        self.gpus = SharedLook(self._gpus, _SECONDS, clock)
        """How many GPUs are in each state."""
        self.look = SharedLook(self._look, _SECONDS, clock)

    async def _holders(self) -> Holders:
        nodes = await self._nodes.read(self._common.clock.monotonic())
        return Holders(nodes, await self._works.of(nodes.values()))

    async def _gpus(self) -> WhereGpusAre:
        pending, holders = await self._common.pending(), await self.holders()
        return await self._states.of(holders.nodes.values(), pending.piece_milli)

    async def _look(self) -> ClusterUse:
        holders, where = await self.holders(), await self.gpus()
        return ClusterUse(
            gpus=where.by_state,
            work=await self._figures(holders.works),
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

    async def _figures(self, works: Mapping[str, LiveWork]) -> list[WorkUse]:
        """In pieces."""
        known: dict[LiveWork, tuple[object, str, WorkUse]] = {}
        headlines = self._minute.headlines
        async for part in in_parts(works.items(), _A_TURN):
            for key, work in part:
                before, spec, advice = self._known.get(work), work.job.spec, headlines.get(key, "")
                if before is None or before[0] is not spec or before[1] != advice:
                    before = spec, advice, self._figures_of(work, advice)
                known[work] = before
        self._known = known
        return [figures for _, _, figures in known.values()]

    def _figures_of(self, work: LiveWork, advice: str) -> WorkUse:
        cpu = work.of_containers("cpu_milli")
        return WorkUse(
            namespace=work.namespace,
            name=work.shown,
            project=work.project,
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
            advice=advice,
            containers=[_of_container(*each) for each in sorted(work.by_container().items())],
        )


def _of_container(name: str, shares: Sequence[ShareUse]) -> ContainerFigures:
    return ContainerFigures(
        name=name,
        gpus=round(sum(share.share for share in shares), 3),
        busy=busy_of(shares),
        memory_mib=sum_of(shares, "memory_mib"),
        memory_limit_mib=sum_of(shares, "cap_mib"),
    )
