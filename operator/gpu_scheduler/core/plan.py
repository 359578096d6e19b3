"""One planning cycle: from a picture of the cluster to decisions.

A pure function: no clock, no randomness, the arguments stay as they are, equal arguments give
equal plans whatever the order of the jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from gpu_scheduler.core.actions.carried_reservations import CarriedReservations
from gpu_scheduler.core.actions.consolidation import Consolidation
from gpu_scheduler.core.actions.new_reservations import NewReservations
from gpu_scheduler.core.actions.preemption import Preemption
from gpu_scheduler.core.actions.rounds import Round
from gpu_scheduler.core.eviction.deadlines import Deadlines
from gpu_scheduler.core.eviction.fair_share_state import FairShareState, shares_now
from gpu_scheduler.core.eviction.solver import Solver
from gpu_scheduler.core.eviction.started import Started
from gpu_scheduler.core.eviction.victims import Victims
from gpu_scheduler.core.explain.reasons import Explainer
from gpu_scheduler.core.explain.waits import WaitMessages
from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fairness.flavors import FlavorUsage
from gpu_scheduler.core.fit.feasibility import Feasibility
from gpu_scheduler.core.fit.placement import Placer
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Reservation, ReservationReason
from gpu_scheduler.core.model.preemption_policy import (
    NOTHING,
    STRICT,
    PlannerMemory,
    PreemptionPolicy,
)
from gpu_scheduler.core.model.request import Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import Roll, RunningPods
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.queue.order import FairOrder
from gpu_scheduler.core.queue.pod_group import PodGroup, Position
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations
from gpu_scheduler.core.reservation.releasing import ReleasingResources
from gpu_scheduler.core.reservation.reserved_nodes import ReservedNodes

RESERVE_AFTER_SECONDS = 60.0
NOBODY = Roll()
MOST_ATTEMPTS = 8  # whole cycles, each of which found that some had their turn too early


class _PlanOptions(NamedTuple):
    """See ``plan``."""

    now: float
    reserve_after_seconds: float
    consolidate: bool
    preemption_policy: PreemptionPolicy
    memory: PlannerMemory


def plan(
    cluster: Cluster,
    projects: Mapping[ProjectName, Project],
    jobs: Sequence[WaitingJob],
    *,
    running_pods: RunningPods = NOBODY,
    reservations: Sequence[Reservation] = (),
    now: float = 0.0,
    reserve_after_seconds: float = RESERVE_AFTER_SECONDS,
    session: PlannerCache | None = None,
    consolidate: bool = False,
    preemption_policy: PreemptionPolicy = STRICT,
    memory: PlannerMemory = NOTHING,
) -> Plan:
    """Decide which waiting pods start now, where, who gives way, and why the others wait.

    Args:
        cluster: what is free now; not changed.
        projects: quotas by name; a job of a project that is not there is ``Invalid``.
        jobs: jobs with waiting pods, in any order.
        running_pods: the pods that hold what is not free; without them nobody is evicted.
        reservations: those of the plan before, so that room once promised stays kept.
        now: epoch seconds.
        reserve_after_seconds: a pod first in order that has waited so long gets room reserved.
        session: what is kept from cycle to cycle, and the packing policy; None = nothing is.
        consolidate: fractional pods may be moved together for who needs several GPUs.
        preemption_policy: when somebody may be evicted.
        memory: that of the plan before.
    """
    given = PlanInput(cluster, projects, jobs, running_pods, reservations)
    options = _PlanOptions(now, reserve_after_seconds, consolidate, preemption_policy, memory)
    attempt = partial(_attempt, given, session or PlannerCache(), options)
    turns: dict[ProjectName, Position] = {}
    for _ in range(MOST_ATTEMPTS - 1):
        found = attempt(turns, last=False)
        if isinstance(found, Plan):
            return found
        turns |= found
    found = attempt(turns, last=True)
    assert isinstance(found, Plan)
    return found


def _attempt(
    given: PlanInput,
    session: PlannerCache,
    options: _PlanOptions,
    turns: Mapping[ProjectName, Position],
    *,
    last: bool,
) -> Plan | dict[ProjectName, Position]:
    """The plan; or from where on groups of which projects are only in the way before step 6.

    ``turns``: those that are known already; ``last``: who starts before step 6 stays.
    """
    projects, running_pods, now = given.projects, given.running_pods, options.now
    # 1. Copy what will be consumed, and line up the groups of pods of each project.
    session.begin(given.cluster, given.jobs)
    snapshot, placer, flavors = (
        session.snapshot,
        Placer(session),
        FlavorUsage(session.snapshot, projects),
    )
    feasibility = Feasibility(placer, flavors)
    queues, orphans = session.queues_of(projects).line_up(given.jobs, feasibility)
    shares = shares_now(snapshot, projects, queues, flavors)
    order = FairOrder(snapshot, shares.of_all)
    nominal = Budget(snapshot, flavors, borrowing=False)
    borrowing = Budget(snapshot, flavors, borrowing=True)

    # 2. Use, or go on keeping, the room that was kept for groups.
    releasing = ReleasingResources(snapshot, running_pods if queues else NOBODY)
    active = ActiveReservations(snapshot, releasing, session.affinity, now)
    solver = Solver(placer, releasing)
    new_reservations = NewReservations(solver, active, nominal, now)
    held = CarriedReservations(solver, active, new_reservations)
    budgets = {ReservationReason.FREED: borrowing, ReservationReason.RESERVED: nominal}
    started = (
        held.resolve(given.reservations, session.queues, budgets) if given.reservations else []
    )
    promised = len(started)

    # 3. Start groups inside their project's quota, but those that would only be in the way.
    for queue in queues:
        if queue.project.name in turns:
            queue.until = turns[queue.project.name]
    nominal_round = Round(placer, active, order, nominal)
    started += nominal_round.run(queues)

    # 4. Keep borrowers away from the nodes for which such groups still wait.
    reserved_nodes = ReservedNodes(len(snapshot.node_shape))
    nominal_round.reserve_nodes(reserved_nodes)
    new_reservations.reserve_nodes(reserved_nodes)

    # 5. Let projects with a weight borrow what is left, up to their shares first: what goes
    # beyond a share while another project is below its own would be taken back.
    budgets_to_borrow = [borrowing]
    if not options.preemption_policy.strict and sum(queue.waits for queue in queues) > 1:
        budgets_to_borrow.insert(
            0, Budget(snapshot, flavors, borrowing=True, shares_milli=shares.of_all)
        )
    borrowing_rounds = [
        Round(placer, active, order, each, reserved_nodes) for each in budgets_to_borrow
    ]
    started += _run(borrowing_rounds, queues)

    # 6. Make room for those below their fair share, and for higher priorities.
    balance = FairShareState(snapshot, releasing, active, flavors, shares)
    mine = Started(running_pods, placer, started, len(started) if last else promised)
    victims = Victims(mine, snapshot, releasing, balance, options.preemption_policy, now)
    deadlines = Deadlines(options.preemption_policy, options.memory, now)
    preemption = Preemption(solver, victims, balance, active, reserved_nodes, deadlines)
    preemption.run(queues, order)
    if preemption.in_the_way:
        return preemption.in_the_way
    if turns:  # those have it now
        for queue in queues:
            queue.until = None
        started += _run([nominal_round, *borrowing_rounds], queues)

    # 7. Move fractional pods together, for those who need several GPUs.
    moves = Consolidation(solver, active, nominal, now)
    if options.consolidate:
        moves.run(projects.values(), queues)

    # 8. Reserve room for those who have waited too long.
    reserve_at = new_reservations.make(queues, options.reserve_after_seconds)
    soon = now if session.affinity is not None and session.affinity.unsettled else None
    memory = deadlines.memory(balance)
    deadline_at = None if deadlines.again_at == inf else deadlines.again_at
    times = (reserve_at, moves.again_at, soon, deadline_at)
    again_at = min((at for at in times if at is not None), default=None)

    # 9. Say why each other job waits.
    reservations = active.reservations()
    explainer = Explainer(placer, flavors, feasibility, running_pods, reservations, given.cluster)
    decided = (*started, *(block.group for block in active.by_pod.values()))
    waits = WaitMessages(session.queues, explainer, deadlines, decided).waits(queues, orphans)
    session.note(pod.pod_shape for group in started for pod, _ in group.members)
    return Plan(
        tuple([place for group in started for place in group.assignments]),
        waits,
        (*preemption.evicts, *moves.evicts),
        reservations,
        shares.of_all,
        again_at,
        shares.by_model,
        memory,
        (*preemption.looks, *moves.looks),
    )


def _run(rounds: Iterable[Round], queues: Sequence[Queue]) -> list[PodGroup]:
    """The groups that are started, round by round."""
    return [group for each in rounds for group in each.run(queues)]
