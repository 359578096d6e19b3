"""One planning cycle: from a picture of the cluster to decisions.

A pure function: no clock, no randomness, the input stays as it is, equal inputs give equal plans
whatever the order of the jobs.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf

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
from gpu_scheduler.core.model.decision import Plan, ReservationReason
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.plan_input import NOBODY, PlanInput
from gpu_scheduler.core.queue.order import FairOrder
from gpu_scheduler.core.queue.pod_group import PodGroup, Position
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations
from gpu_scheduler.core.reservation.releasing import ReleasingResources
from gpu_scheduler.core.reservation.reserved_nodes import ReservedNodes

MOST_ATTEMPTS = 8  # whole cycles, each of which found that some had their turn too early


def plan(given: PlanInput, session: PlannerCache | None = None) -> Plan:
    """Decide which waiting pods start now, where, who gives way, and why the others wait.

    Args:
        given: all that the plan depends on.
        session: what is kept from cycle to cycle; None = nothing is.
    """
    session = session or PlannerCache()
    session.readings = [session.clock()]
    attempt = partial(_attempt, given, session)
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
    turns: Mapping[ProjectName, Position],
    *,
    last: bool,
) -> Plan | dict[ProjectName, Position]:
    """The plan; or from where on groups of which projects are only in the way before step 6.

    ``turns``: those that are known already; ``last``: who starts before step 6 stays.
    """
    projects, running_pods, now = given.projects, given.running_pods, given.now
    clock, note = session.clock, session.readings.append
    # 1. Copy what will be consumed, and line up the groups of pods of each project.
    session.begin(given)
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
    note(clock())

    # 2. Use, or go on keeping, the room that was kept for groups.
    releasing = ReleasingResources(snapshot, running_pods if queues else NOBODY)
    active = ActiveReservations(snapshot, releasing, session.affinity, now)
    solver = Solver(placer, releasing)
    new_reservations = NewReservations(solver, active, nominal, session.searches, now)
    held = CarriedReservations(solver, active, new_reservations)
    budgets = {ReservationReason.FREED: borrowing, ReservationReason.RESERVED: nominal}
    started = (
        held.resolve(given.reservations, session.queues, budgets) if given.reservations else []
    )
    promised = len(started)
    note(clock())

    # 3. Start groups inside their project's quota, but those that would only be in the way.
    for queue in queues:
        if queue.project.name in turns:
            queue.until = turns[queue.project.name]
    nominal_round = Round(placer, active, order, nominal)
    started += nominal_round.run(queues)
    note(clock())

    # 4. Keep borrowers away from the nodes for which such groups still wait.
    reserved_nodes = ReservedNodes(len(snapshot.node_shape))
    nominal_round.reserve_nodes(reserved_nodes)
    new_reservations.reserve_nodes(reserved_nodes)
    note(clock())

    # 5. Let projects with a weight borrow what is left, up to their shares first: what goes
    # beyond a share while another project is below its own would be taken back.
    budgets_to_borrow = [borrowing]
    if not given.preemption_policy.strict and sum(queue.waits for queue in queues) > 1:
        budgets_to_borrow.insert(
            0, Budget(snapshot, flavors, borrowing=True, shares_milli=shares.of_all)
        )
    borrowing_rounds = [
        Round(placer, active, order, each, reserved_nodes) for each in budgets_to_borrow
    ]
    started += _run(borrowing_rounds, queues)
    note(clock())

    # 6. Make room for those below their fair share, and for higher priorities.
    balance = FairShareState(snapshot, releasing, active, flavors, shares)
    mine = Started(running_pods, placer, started, len(started) if last else promised)
    victims = Victims(mine, snapshot, releasing, balance, given.preemption_policy, now)
    deadlines = Deadlines(given.preemption_policy, given.memory, now)
    preemption = Preemption(solver, victims, balance, active, reserved_nodes, deadlines)
    preemption.run(queues, order)
    note(clock())
    if preemption.in_the_way:
        return preemption.in_the_way
    if turns:  # those have it now
        for queue in queues:
            queue.until = None
        started += _run([nominal_round, *borrowing_rounds], queues)

    # 7. Move fractional pods together, for those who need several GPUs.
    moves = Consolidation(solver, active, nominal, now)
    if given.consolidate:
        moves.run(projects.values(), queues)
    note(clock())

    # 8. Reserve room for those who have waited too long.
    reserve_at = new_reservations.make(queues, given.reserve_after_seconds)
    soon = now if session.affinity is not None and session.affinity.unsettled else None
    memory = deadlines.memory(balance)
    deadline_at = None if deadlines.again_at == inf else deadlines.again_at
    times = (reserve_at, moves.again_at, soon, deadline_at)
    again_at = min((at for at in times if at is not None), default=None)
    note(clock())

    # 9. Say why each other job waits.
    explainer = Explainer(placer, flavors, feasibility, running_pods, active, given.cluster)
    decided = (*started, *(block.group for block in active.by_pod.values()))
    waits = WaitMessages(session.queues, explainer, deadlines, decided).waits(queues, orphans)
    session.note(pod.pod_shape for group in started for pod, _ in group.members)
    note(clock())
    return Plan(
        tuple([place for group in started for place in group.assignments]),
        waits,
        (*preemption.evicts, *moves.evicts),
        active.reservations(),
        shares.of_all,
        again_at,
        shares.by_model,
        memory,
        (*preemption.looks, *moves.looks),
    )


def _run(rounds: Iterable[Round], queues: Sequence[Queue]) -> list[PodGroup]:
    """The groups that are started, round by round."""
    return [group for each in rounds for group in each.run(queues)]
