"""What gives pods their places, and follows them until they run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gpu_scheduler.jobs.place import Pin
from gpu_scheduler.runtime.binding.arrivals import Arrivals
from gpu_scheduler.runtime.binding.binder import Binder, More, Writing
from gpu_scheduler.runtime.binding.failed_placements import STUCK, FailedPlacements, Patience
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm
from gpu_scheduler.runtime.binding.node_orders import NodeOrders, NodeVersions
from gpu_scheduler.runtime.binding.placeholder_pods import PlaceholderPods, holder_pods
from gpu_scheduler.runtime.binding.starting import NOT_STARTED, Starting
from gpu_scheduler.runtime.common.build import CommonParts, Loop
from gpu_scheduler.runtime.eviction.evictor import Evictor
from gpu_scheduler.runtime.informers.build import InformerParts
from gpu_scheduler.runtime.status.scheduled_events import ScheduledEvents

CAUSES = (STUCK, NOT_STARTED)
"""Why pods that have a place are evicted."""


@dataclass(frozen=True, slots=True)
class BindingParts:
    """The binder, and what looks after pods that have places."""

    term: LeaderTerm
    gangs: GangGuard
    failed_placements: FailedPlacements
    starting: Starting
    binder: Binder
    arrivals: Arrivals
    scheduled_events: ScheduledEvents
    holders: PlaceholderPods
    node_orders: NodeOrders

    @property
    def loops(self) -> Sequence[Loop]:
        """Those of placements; the term was begun before."""
        return (
            self.term.run,
            self.binder.run,
            self.failed_placements.run,
            self.gangs.run,
            self.starting.run,
            self.holders.run,
            self.node_orders.run,
            partial(self.scheduled_events.run, self.binder.idle),
        )


def build(
    common: CommonParts,
    evictor: Evictor,
    informers: InformerParts,
    term: LeaderTerm,
    more: More,
    observe_seconds: Callable[[float], None],
) -> BindingParts:
    """Make what places.

    Args:
        common: what is shared.
        evictor: of pods that cannot start where they are.
        informers: what is known of agents.
        term: of this leader; every placing write carries it.
        more: what placements set beside the allocation.
        observe_seconds: told how long each placing write took.
    """
    state, client, settings = common.state, common.client, common.settings
    clock, now = common.clock.monotonic, common.clock.now
    stuck_seconds = settings.stuck_seconds
    gangs = GangGuard(state, evictor, common.plan, patience_seconds=stuck_seconds, clock=clock)
    scheduled_events = ScheduledEvents(
        common.events, on=settings.scheduled_events, now=common.clock.stamp
    )
    how = Writing(
        settings.write_concurrency,
        Pin(settings.pin),
        more=more,
        observe_seconds=observe_seconds,
        placed=scheduled_events.placed,
        recheck_seconds=settings.recheck_seconds,
    )
    patience = Patience(stuck_seconds, settings.avoid_seconds)
    binder = Binder(state, client, term, gangs, how, clock=clock)
    return BindingParts(
        term,
        gangs,
        FailedPlacements(state, evictor, gangs, patience, clock=clock, now=now),
        Starting(state, client, evictor, gangs, clock=clock),
        binder,
        Arrivals(state, binder),
        scheduled_events,
        holder_pods(state, client, settings, clock),
        NodeOrders(
            state,
            client,
            settings.lease_namespace,
            informers.changed_nodes,
            lambda node: NodeVersions(
                informers.custom_resources.node_version(node), *informers.heartbeats.lease(node)
            ),
            usage_digest=common.usage_keys.digest if settings.agent_port else lambda uid: "",
            clock=clock,
        ),
    )
