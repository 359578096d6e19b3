"""What asks the agents, and what shows and sums up what they say."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.runtime.common.build import CommonParts, Loop
from gpu_scheduler.runtime.common.observations import Observations
from gpu_scheduler.runtime.informers.event_handlers import PodFollower
from gpu_scheduler.runtime.usage.agent_addresses import AgentAddresses
from gpu_scheduler.runtime.usage.asking import AgentAsker
from gpu_scheduler.runtime.usage.charting.chart_keeper import ChartKeeper
from gpu_scheduler.runtime.usage.charting.earlier_holders import EarlierHolders
from gpu_scheduler.runtime.usage.cluster_use import ClusterUses
from gpu_scheduler.runtime.usage.minute import Minute
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.sums import job_usage
from gpu_scheduler.runtime.usage.work_times import WorkTimes


@dataclass(frozen=True, slots=True)
class UsageParts:
    """Where agents are not asked, only what needs none of them runs.

    Attributes:
        addresses: of agents; follows the pods.
        seen: what they said.
        cluster: the figures for metrics.
        minute: what is looked at once a minute.
        charts: of the cluster and of projects.
        earlier: who held each GPU before.
        times: how long work waits and runs.
    """

    addresses: AgentAddresses
    seen: SeenUse
    cluster: ClusterUses
    asker: AgentAsker | None
    minute: Minute
    charts: ChartKeeper
    earlier: EarlierHolders
    times: WorkTimes

    @property
    def followers(self) -> Sequence[PodFollower]:
        """Those who are told of each pod."""
        return self.addresses, self.minute.gpu_seconds, self.earlier, self.times

    def of_job(self, uid: str) -> JobUsage | None:
        """What a GPUJob did with its GPUs; None: no agent has said."""
        return job_usage(*self.seen.totals(uid), self.seen.by_role(uid))

    @property
    def loops(self) -> Sequence[Loop]:
        """Those that run."""
        if self.asker is None:
            return (self.times.run,)
        return (self.times.run, self.asker.run, self.minute.run, self.charts.run)


def build(common: CommonParts, observations: Observations) -> UsageParts:
    """Make them."""
    settings, clock = common.settings, common.clock
    addresses = AgentAddresses(settings.lease_namespace)
    seen = SeenUse(common.state.pods.known)
    asker = None
    if settings.agent_port:
        asker = AgentAsker(addresses, common.usage_keys, settings.agent_port, seen, clock.monotonic)
    minute = Minute(common, seen)
    cluster = ClusterUses(common, seen, minute)
    return UsageParts(
        addresses,
        seen,
        cluster,
        asker,
        minute,
        ChartKeeper(common, cluster),
        EarlierHolders(common.state, clock),
        WorkTimes(common.state, observations),
    )
