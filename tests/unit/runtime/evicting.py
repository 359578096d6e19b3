"""All that evicts and marks pods, on a client and events that a test gives."""

from typing import Any

from tests.unit.runtime.virtual_loop import Running, clock

from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.binding.failed_placements import FailedPlacements, Patience
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.common.quarantine import Quarantine
from gpu_scheduler.runtime.eviction.evictor import Evictor
from gpu_scheduler.runtime.eviction.losses import Losses
from gpu_scheduler.state.cluster_state import ClusterState


def last_plan(state: ClusterState, say: Any = lambda *what: None) -> LastPlan:
    return LastPlan(state, Quarantine(state, say, clock=clock))


class Evicting:
    """Evictor, gang guard and the watch over placed pods."""

    def __init__(
        self,
        state: ClusterState,
        client: Any,
        events: Any,
        *,
        stuck_seconds: float = 30.0,
        avoid_seconds: float = 60.0,
    ) -> None:
        self.losses = Losses(state)
        self.blind = False
        self.evictor = Evictor(state, client, events, self.losses, blind=lambda: self.blind)
        self.plan = last_plan(state)
        self.gangs = GangGuard(state, self.evictor, self.plan, patience_seconds=30.0, clock=clock)
        patience = Patience(stuck_seconds, avoid_seconds)
        self.placements = FailedPlacements(
            state, self.evictor, self.gangs, patience, clock=clock, now=Clock().now
        )

    def running(self, *more: Any) -> Running:
        return Running(self.evictor.run(), self.placements.run(), *more)


class FakePreemption:
    """Carries out nothing."""

    def relieve(self) -> bool:
        return False

    def carry_out(self, evicts: Any) -> None:
        assert not evicts
