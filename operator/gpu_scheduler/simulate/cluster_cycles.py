"""Plans again and again until nothing changes any more: what would start, and who gives way.

Between two cycles pods that were placed run on, and pods that were evicted are gone and wait anew:
the answer is where the cluster comes to rest if nothing else happens, not how long that takes.
Called by ``cluster_command``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.decision import Evict, EvictReason, Hold, Place, Plan, Wait
from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.session import Session
from gpu_scheduler.simulate.cluster_world import Scene
from gpu_scheduler.simulate.imagined import placed
from gpu_scheduler.state.jobs import epoch_seconds

MOST_CYCLES = 50


@dataclass(frozen=True, slots=True)
class Start:
    """A pod that would start; ``cycle`` counts from 1."""

    pod: str
    place: Place
    cycle: int


@dataclass(frozen=True, slots=True)
class GivesWay:
    """A pod that would be evicted, from where, and why."""

    uid: PodUID
    pod: str
    node: str
    decision: Evict
    cycle: int


@dataclass(slots=True)
class Outcome:
    """Where a cluster comes to rest; ``settled`` False: it had not after ``MOST_CYCLES``."""

    starts: list[Start] = field(default_factory=list)
    gives_way: list[GivesWay] = field(default_factory=list)
    waits: tuple[Wait, ...] = ()
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    cycles: int = 0
    settled: bool = False


def settle(scene: Scene, packing: Packing, now: str, *, consolidation: bool = False) -> Outcome:
    """Plan until nothing more starts and nobody gives way.

    Args:
        scene: the state; changed on the way.
        packing: how nodes and devices are chosen.
        now: RFC 3339, the time of every cycle.
        consolidation: pods may move, each at most once.
    """
    world, session, outcome = scene.world, Session(packing), Outcome()
    holds: tuple[Hold, ...] = ()
    for cycle in range(1, MOST_CYCLES + 1):
        result = plan(
            world.snapshot(),
            world.planner_projects(),
            world.waiting_jobs(),
            running_pods=world.running_pods,
            holds=holds,
            now=epoch_seconds(now),
            session=session,
            consolidate=consolidation,
        )
        outcome.cycles = cycle
        holds, outcome.shares_milli = result.holds, result.shares_milli
        outcome.waits = (*result.waits, *scene.stopped)
        if not result.places and not result.evicts:
            outcome.settled = True
            break
        _carry_out(scene, result, cycle, outcome, now)
    return outcome


def _carry_out(scene: Scene, result: Plan, cycle: int, outcome: Outcome, now: str) -> None:
    world = scene.world
    for place in result.places:
        pod = world.waiting.pod(place.pod)
        assert pod is not None, "only pods that wait are placed"
        outcome.starts.append(Start(pod.metadata.name, place, cycle))
        world.pod_changed(placed(pod, place, now))
    gone = {decision.pod for decision in result.evicts}
    for decision in result.evicts:
        _evict(scene, decision.pod, decision, cycle, outcome, now)
        # A gang goes as a whole, whichever of its pods the plan names.
        members = world.records(decision.job) if decision.whole_job else ()
        for uid in [p.uid for p in members if p.allocation is not None and p.uid not in gone]:
            gone.add(uid)
            _evict(scene, uid, decision, cycle, outcome, now)


def _evict(
    scene: Scene, uid: PodUID, decision: Evict, cycle: int, outcome: Outcome, now: str
) -> None:
    pod = scene.world.pods[uid]
    if decision.reason is EvictReason.CONSOLIDATE:
        scene.world.running_pods.moves.decided(pod, epoch_seconds(now))
    outcome.gives_way.append(GivesWay(uid, pod.name, pod.node, decision, cycle))
    scene.restart(uid, now)
