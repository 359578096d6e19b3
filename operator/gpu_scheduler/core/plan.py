"""One planning cycle: from a picture of the cluster to decisions.

A pure function: no clock, no randomness, the arguments stay as they are, equal arguments give
equal plans whatever the order of the jobs. Called by the planner loop each cycle and by the
simulator.
"""

from collections.abc import Iterator, Mapping, Sequence

from gpu_scheduler.core.balance import Balance, model_shares_now, shares_now
from gpu_scheduler.core.blocks import Blocks
from gpu_scheduler.core.cluster import Cluster
from gpu_scheduler.core.consolidation import Consolidation
from gpu_scheduler.core.decision import Hold, Place, Plan, Reason, Wait
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.holds import Holds
from gpu_scheduler.core.occupants import Occupants, Roll
from gpu_scheduler.core.pools import Allowance, Pools
from gpu_scheduler.core.queues import Queue, queue_up
from gpu_scheduler.core.quota import room_above_milli, room_inside_milli
from gpu_scheduler.core.reasons import Explainer
from gpu_scheduler.core.reclaim import Reclaim
from gpu_scheduler.core.request import JobKey, Project, ProjectName, Shape, WaitingJob
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.rounds import Round, Tables
from gpu_scheduler.core.session import Session
from gpu_scheduler.core.started import Started

RESERVE_AFTER_SECONDS = 60.0
NOBODY = Roll()


def plan(
    cluster: Cluster,
    projects: Mapping[ProjectName, Project],
    jobs: Sequence[WaitingJob],
    *,
    occupants: Occupants = NOBODY,
    holds: Sequence[Hold] = (),
    now: float = 0.0,
    reserve_after_seconds: float = RESERVE_AFTER_SECONDS,
    session: Session | None = None,
    consolidate: bool = False,
) -> Plan:
    """Decide which waiting pods start now, where, who gives way, and why the others wait.

    Args:
        cluster: what is free now; not changed.
        projects: quotas by name; a job of a project that is not there is ``Invalid``.
        jobs: jobs with waiting pods, in any order.
        occupants: the pods that hold what is not free; without them nobody is evicted.
        holds: those of the plan before, so that room once promised stays kept.
        now: epoch seconds.
        reserve_after_seconds: a pod first in order that has waited so long gets room reserved.
        session: what is kept from cycle to cycle, and the packing policy; None = nothing is.
        consolidate: fractional pods may be moved together for who needs several GPUs.
    """
    # 1. Copy what will be consumed, and line up the pods of each project.
    session = session or Session()
    session.begin(cluster, jobs)
    snapshot, demands = session.snapshot, session.demands
    tables, locator = Tables(session), Locator(snapshot.cluster)
    gangs = Gangs(session, locator)
    queues, orphans = queue_up(projects, jobs)
    pools = Pools(snapshot, projects)
    shares = shares_now(snapshot, demands, projects, queues, gangs, pools)
    by_model = model_shares_now(pools, demands, projects, queues)

    within, beyond = Allowance(pools, above=False), Allowance(pools, above=True)

    # 2. Use, or go on keeping, the room that was kept for pods.
    leaving = occupants.leaving() if queues else ()
    departures = Departures(snapshot, locator, leaving)
    blocks = Blocks(snapshot, departures, gangs, now)
    reservations = Reservations(
        snapshot, demands, occupants, departures, locator, blocks, gangs, within, now
    )
    held = Holds(
        snapshot, demands, departures, locator, blocks, reservations, tables.open, gangs, beyond
    )
    places = held.honour(holds, queues) if holds else []
    promised = len(places)

    # 3. Start pods inside their project's quota.
    common = snapshot, demands, shares, blocks
    inside = Round(
        *common, room_inside_milli, tables.open, gangs, lambda: None, within, inside=True
    )
    places += inside.run(queues)

    # 4. Keep borrowers away from the nodes for which such pods still wait.
    blocked = [blocked for blocked in inside.blocked() if blocked[0].least_milli]
    tables.claim(blocked, inside.blocked_nodes())
    tables.claim(reservations.wanted)

    # 5. Let projects with a weight borrow what is left.
    above = Round(
        *common, room_above_milli, tables.unclaimed, gangs, tables.barred, beyond, inside=False
    )
    places += above.run(queues)

    # 6. Make room for those below their fair share, and for higher priorities.
    balance = Balance(snapshot, departures, projects, shares, pools, by_model, blocks)
    started = Started(occupants, places, promised, jobs, queues, snapshot, locator, gangs.peers)
    reclaim = Reclaim(
        snapshot, demands, started, departures, locator, balance, blocks, gangs, projects, tables
    )
    reclaim.run(queues)
    if started.undone:  # what they leave may be more than was needed
        places += inside.run(queues) + above.run(queues)

    # 7. Move fractional pods together, for those who need several GPUs.
    moves = Consolidation(session, occupants, departures, locator, blocks, gangs, within, now)
    if consolidate:
        moves.run(projects.values(), queues)

    # 8. Reserve room for those who have waited too long.
    reserve_at = reservations.make(queues, reserve_after_seconds)
    soon = now if session.peers is not None and session.peers.unsettled else None
    times = (reserve_at, moves.again_at, soon)
    again_at = min((at for at in times if at is not None), default=None)

    # 9. Say why each other job waits.
    explainer = Explainer(snapshot, demands, tables, occupants, blocks.holds(), gangs, pools)
    waits = [wait for queue in queues for wait in _waits(queue, explainer)]
    session.note(_started(places, jobs))
    return Plan(
        tuple(places),
        tuple(waits) + _without_project(orphans),
        (*reclaim.evicts, *moves.evicts),
        blocks.holds(),
        shares,
        again_at,
        by_model,
    )


def _started(places: Sequence[Place], jobs: Sequence[WaitingJob]) -> Iterator[Shape]:
    """The shapes of the pods that were placed."""
    pods = {place.pod for place in places}
    keys = {place.job for place in places}
    return (pod.shape for job in jobs if job.key in keys for pod in job.pods if pod.uid in pods)


def _waits(queue: Queue, explainer: Explainer) -> list[Wait]:
    """One wait per job: for its first pod that did not start."""
    waits: list[Wait] = []
    last: JobKey | None = None
    for job, pod in queue.pending:
        if job.key != last:
            last = job.key
            position = len(waits) + 1
            if job.gang is None:
                reason, message = explainer.explain(pod, queue.project, position)
            else:
                reason, message = explainer.explain_gang(job, queue.project, position)
            waits.append(Wait(job.key, reason, message, position))
    return waits


def _without_project(jobs: Sequence[WaitingJob]) -> tuple[Wait, ...]:
    positions: dict[ProjectName, int] = {}
    waits = []
    for job in jobs:
        positions[job.project] = position = positions.get(job.project, 0) + 1
        message = f"project {job.project} does not exist"
        waits.append(Wait(job.key, Reason.INVALID, message, position))
    return tuple(waits)
