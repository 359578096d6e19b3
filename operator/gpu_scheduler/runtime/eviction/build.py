"""What evicts, and the policies that say whom."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_scheduler.runtime.common.build import CommonParts, Loop
from gpu_scheduler.runtime.eviction.evictor import Evictor
from gpu_scheduler.runtime.eviction.left_behind import LeftBehind
from gpu_scheduler.runtime.eviction.losses import Losses
from gpu_scheduler.runtime.eviction.overbooked import OVERBOOKED
from gpu_scheduler.runtime.eviction.overcap import OVER_CAP, OverCapEvictions
from gpu_scheduler.runtime.eviction.overdue import Overdue
from gpu_scheduler.runtime.eviction.preemption import Preemptor

CAUSES = (OVER_CAP, OVERBOOKED)
"""Of the policies here."""


@dataclass(frozen=True, slots=True)
class EvictionParts:
    """The evictor and its policies."""

    losses: Losses
    evictor: Evictor
    preemption: Preemptor
    overcap: OverCapEvictions
    overdue: Overdue
    left_behind: LeftBehind

    @property
    def loops(self) -> Sequence[Loop]:
        """Those of evictions."""
        return (self.evictor.run, self.overcap.run, self.overdue.run, self.left_behind.run)


def build(common: CommonParts) -> EvictionParts:
    """Make what evicts."""
    state, clock = common.state, common.clock
    losses = Losses(state)
    evictor = Evictor(
        state,
        common.client,
        common.events,
        losses,
        pause_seconds=common.settings.eviction_pause_seconds,
        blind=common.client.watches.blind,
    )
    return EvictionParts(
        losses,
        evictor,
        Preemptor(state, evictor, common.events, clock=clock.monotonic, now=clock.now),
        OverCapEvictions(state, evictor, clock=clock.monotonic),
        Overdue(state, common.client, now=clock.now),
        LeftBehind(state, clock=clock.monotonic),
    )
