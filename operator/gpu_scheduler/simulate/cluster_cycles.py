"""Plans again and again until nothing changes any more: what would start, and who gives way.

Between two cycles pods that were placed run on, and pods that were evicted are gone and wait anew.
Where nothing changes time goes on until all that is promised is due: the answer is where the
cluster comes to rest if nothing else happens. Why somebody waits is said as of the last change.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from gpu_scheduler.core.eviction.deadlines import longest_seconds
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import (
    Assignment,
    Evict,
    EvictReason,
    Plan,
    Reservation,
    Wait,
)
from gpu_scheduler.core.model.preemption_policy import NOTHING
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.simulate.imagined import placed
from gpu_scheduler.simulate.operator_rules import OperatorRules
from gpu_scheduler.simulate.simulated_cluster import SimulatedCluster
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord

MOST_CYCLES = 50  # that change something
MOST_LOOKS = 500  # others
LOOK_SECONDS = 10.0  # between them at least


class Moment(NamedTuple):
    """``cycle``: counted from 1, of those that change something; ``seconds`` from now."""

    cycle: int
    seconds: float


@dataclass(slots=True)
class SettledCluster:
    """Where a cluster comes to rest.

    ``starts``: names of pods that would start, where, and when; ``gives_way``: those that would be
    evicted, as they were, why, and when. ``cycles``: that changed something; ``seconds``: from now
    to the last of them. ``settled`` False: it had not come to rest when the planning was ended.
    """

    starts: list[tuple[str, Assignment, Moment]] = field(default_factory=list)
    gives_way: list[tuple[PodRecord, Evict, Moment]] = field(default_factory=list)
    waits: tuple[Wait, ...] = ()
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    cycles: int = 0
    seconds: float = 0.0
    settled: bool = False


def plan_until_stable(
    simulated: SimulatedCluster,
    rules: OperatorRules,
    now: str,
    *,
    enough: Callable[[SettledCluster], bool] = lambda outcome: False,
) -> SettledCluster:
    """Plan until nothing more starts and nobody gives way.

    Args:
        simulated: the state; changed on the way.
        rules: by which it is planned; pods move at most once each.
        now: RFC 3339, the time of the first cycle.
        enough: asked after each cycle that changes something; True: the rest does not matter.
    """
    state, session, outcome = simulated.state, PlannerCache(), SettledCluster()
    reservations: tuple[Reservation, ...] = ()
    all_due_seconds = longest_seconds(rules.preemption_policy)
    begin = time = changed = epoch_seconds(now)
    memory, looks = NOTHING, 0
    while outcome.cycles < MOST_CYCLES and looks < MOST_LOOKS:
        given = PlanInput(
            state.snapshot(),
            state.planner_projects(),
            state.waiting_jobs(),
            state.running_pods,
            reservations,
            time,
            consolidate=rules.consolidation,
            preemption_policy=rules.preemption_policy,
            memory=memory,
            packing=rules.packing,
        )
        result = plan(given, session)
        reservations, outcome.shares_milli, memory = (
            result.reservations,
            result.shares_milli,
            result.memory,
        )
        if time == changed:
            outcome.waits = (*result.waits, *simulated.stopped)
        if result.assignments or result.evicts:
            outcome.cycles, outcome.seconds, changed = outcome.cycles + 1, time - begin, time
            _carry_out(simulated, result, outcome, timestamp(datetime.fromtimestamp(time, UTC)))
            if enough(outcome):
                break
        elif result.again_at is None or not time < result.again_at <= changed + all_due_seconds:
            outcome.settled = True
            break
        else:
            looks += 1
            time = max(result.again_at, time + LOOK_SECONDS)
    return outcome


def _carry_out(
    simulated: SimulatedCluster, result: Plan, outcome: SettledCluster, now: str
) -> None:
    state, moment = simulated.state, Moment(outcome.cycles, outcome.seconds)
    for place in result.assignments:
        pod = state.waiting.pod(place.pod)
        assert pod is not None, "only pods that wait are placed"
        outcome.starts.append((pod.metadata.name, place, moment))
        state.pod_changed(placed(pod, place, now))
    gone = {decision.pod for decision in result.evicts}
    for decision in result.evicts:
        _evict(simulated, decision.pod, decision, moment, outcome, now)
        # A gang goes as a whole, whichever of its pods the plan names.
        members = state.workloads.pods(decision.job) if decision.whole_job else ()
        for uid in [p.uid for p in members if p.allocation is not None and p.uid not in gone]:
            gone.add(uid)
            _evict(simulated, uid, decision, moment, outcome, now)


def _evict(
    simulated: SimulatedCluster,
    uid: PodUID,
    decision: Evict,
    moment: Moment,
    outcome: SettledCluster,
    now: str,
) -> None:
    pod = simulated.state.pods.known[uid]
    if decision.reason is EvictReason.CONSOLIDATE:
        simulated.state.running_pods.moves.decided(pod, epoch_seconds(now))
    outcome.gives_way.append((pod, decision, moment))
    simulated.restart(uid, now)
