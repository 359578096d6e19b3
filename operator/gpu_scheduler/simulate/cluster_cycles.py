"""Plans again and again until nothing changes any more: what would start, and who gives way.

Between two cycles pods that were placed run on, and pods that were evicted are gone and wait anew:
the answer is where the cluster comes to rest if nothing else happens, not how long that takes.
Called by ``cluster_command``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.decision import (
    Assignment,
    Evict,
    EvictReason,
    Plan,
    Reservation,
    Wait,
)
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.session import Session
from gpu_scheduler.simulate.imagined import placed
from gpu_scheduler.simulate.simulated_cluster import SimulatedCluster
from gpu_scheduler.state.jobs import epoch_seconds
from gpu_scheduler.state.pods import PodRecord

MOST_CYCLES = 50


@dataclass(slots=True)
class Outcome:
    """Where a cluster comes to rest.

    ``starts``: names of pods that would start, where, and in which cycle, counted from 1;
    ``gives_way``: those that would be evicted, as they were, why, and in which cycle.
    ``settled`` False: it had not come to rest after ``MOST_CYCLES``.
    """

    starts: list[tuple[str, Assignment, int]] = field(default_factory=list)
    gives_way: list[tuple[PodRecord, Evict, int]] = field(default_factory=list)
    waits: tuple[Wait, ...] = ()
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    cycles: int = 0
    settled: bool = False


def plan_until_stable(
    simulated: SimulatedCluster, packing: Packing, now: str, *, consolidation: bool = False
) -> Outcome:
    """Plan until nothing more starts and nobody gives way.

    Args:
        simulated: the state; changed on the way.
        packing: how nodes and devices are chosen.
        now: RFC 3339, the time of every cycle.
        consolidation: pods may move, each at most once.
    """
    state, session, outcome = simulated.state, Session(packing), Outcome()
    holds: tuple[Reservation, ...] = ()
    for cycle in range(1, MOST_CYCLES + 1):
        result = plan(
            state.snapshot(),
            state.planner_projects(),
            state.waiting_jobs(),
            running_pods=state.running_pods,
            holds=holds,
            now=epoch_seconds(now),
            session=session,
            consolidate=consolidation,
        )
        outcome.cycles = cycle
        holds, outcome.shares_milli = result.holds, result.shares_milli
        outcome.waits = (*result.waits, *simulated.stopped)
        if not result.assignments and not result.evicts:
            outcome.settled = True
            break
        _carry_out(simulated, result, cycle, outcome, now)
    return outcome


def _carry_out(
    simulated: SimulatedCluster, result: Plan, cycle: int, outcome: Outcome, now: str
) -> None:
    state = simulated.state
    for place in result.assignments:
        pod = state.waiting.pod(place.pod)
        assert pod is not None, "only pods that wait are placed"
        outcome.starts.append((pod.metadata.name, place, cycle))
        state.pod_changed(placed(pod, place, now))
    gone = {decision.pod for decision in result.evicts}
    for decision in result.evicts:
        _evict(simulated, decision.pod, decision, cycle, outcome, now)
        # A gang goes as a whole, whichever of its pods the plan names.
        members = state.records(decision.job) if decision.whole_job else ()
        for uid in [p.uid for p in members if p.allocation is not None and p.uid not in gone]:
            gone.add(uid)
            _evict(simulated, uid, decision, cycle, outcome, now)


def _evict(
    simulated: SimulatedCluster,
    uid: PodUID,
    decision: Evict,
    cycle: int,
    outcome: Outcome,
    now: str,
) -> None:
    pod = simulated.state.pods[uid]
    if decision.reason is EvictReason.CONSOLIDATE:
        simulated.state.running_pods.moves.decided(pod, epoch_seconds(now))
    outcome.gives_way.append((pod, decision, cycle))
    simulated.restart(uid, now)
