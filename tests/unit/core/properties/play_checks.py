"""What holds for every plan of a play: who may take what from whom, and how much it ends with."""

from collections.abc import Iterable

from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.decision import EvictReason, Plan, ReservationReason
from gpu_scheduler.core.model.request import ProjectName

TEAMS = ("a", "b", "c")


def able(play: Play, pods: Iterable[Pod]) -> set[str]:
    """Those that can run at all, by name: inside what their project may hold, and on some node."""
    return {
        pod.name
        for pod in pods
        if pod.pod_shape.nominal_milli
        <= quota.ceiling_milli(play.projects[ProjectName(pod.project)])
        and max(request.count for request in pod.pod_shape.devices) <= max(play.gpus)
    }


def taken(play: Play, result: Plan, reason: EvictReason) -> dict[str, int]:
    """What a plan takes from each project."""
    found = dict.fromkeys(TEAMS, 0)
    for evict in result.evicts:
        if evict.reason is reason:
            running_pod = play.running[evict.pod][1]
            found[running_pod.project] += running_pod.milli
    return found


def placements(play: Play, result: Plan, name: str) -> list[int]:
    """What a plan gives to the pods of a project, in the order in which they start."""
    mine = {pod.uid for pod in play.waiting if pod.project == name}
    return [sum(g.milli for g in p.devices) for p in result.assignments if p.pod in mine]


def placed(play: Play, result: Plan, name: str) -> int:
    """What a plan gives to a project."""
    return sum(placements(play, result, name))


def promised(play: Play, result: Plan, name: str, job: str = "") -> int:
    """What freed room is kept for a project, or a job of it: it gets that once others are gone."""
    mine = {
        pod.uid: pod.pod_shape.nominal_milli
        for pod in play.waiting
        if pod.project == name and job in ("", pod.key)
    }
    freed = [
        reservation.pod
        for reservation in result.reservations
        if reservation.reason is ReservationReason.FREED
    ]
    return sum(mine.get(uid, 0) for uid in freed)


def check_limits(play: Play, before: dict[str, int]) -> None:
    """Nobody grew past its limit; ``cluster`` raises where a device is given out twice."""
    play.cluster()
    for name, team in play.projects.items():
        assert play.held(name) <= max(quota.ceiling_milli(team), before[name])


def won_inside_quota(play: Play, result: Plan, loser: str) -> bool:
    """Whether this project loses pods for one that ends inside its quota at its turn.

    What a project gets later in the plan is no part of that: room that is freed for its guarantee
    may be more than that needs, and then goes to whoever is next; and who borrows comes after all
    that are inside a quota.
    """
    gets = dict.fromkeys(TEAMS, 0)
    for winner, loses in reclaims(play, result).items():
        pods = [pod for pod in play.waiting if pod.key == winner]
        name = pods[0].project
        gets[name] += promised(play, result, name, winner)
        limit = play.projects[ProjectName(name)].quota_milli
        after = play.held(name, staying=True) + gets[name]
        after -= sum(taken(play, result, reason)[name] for reason in EvictReason)
        for milli in placements(play, result, name):
            after += milli if after + milli <= limit else 0
        if loser in loses and after <= limit:
            return True
    return False


def reclaims(play: Play, result: Plan) -> dict[str, set[str]]:
    """For whom pods are reclaimed, in the order of the plan, and from which projects."""
    found: dict[str, set[str]] = {}
    for evict in result.evicts:
        if evict.reason is EvictReason.RECLAIM:
            loser = play.running[evict.pod][0].project
            found.setdefault(evict.beneficiary, set()).add(loser)
    return found


def check_losers(play: Play, result: Plan) -> None:
    """Nobody is taken below its quota, nor below its fair share but for a pod inside quota."""
    for name, milli in taken(play, result, EvictReason.RECLAIM).items():
        if milli:
            team = play.projects[ProjectName(name)]
            left = play.held(name, staying=True) + placed(play, result, name) - milli
            left += promised(play, result, name)
            assert left >= team.quota_milli
            if not won_inside_quota(play, result, name):
                assert left >= result.shares_milli[team.name]
    for evict in result.evicts:
        winner = next(pod for pod in play.waiting if pod.key == evict.beneficiary)
        loser = play.running[evict.pod][0]
        if evict.reason is EvictReason.PRIORITY:
            assert winner.project == loser.project
            assert winner.priority > loser.priority
        else:
            assert winner.project != loser.project


def check_winners(play: Play, result: Plan) -> set[str]:
    """Who gets GPUs back ends at most at its fair share; the projects of which that was checked."""
    waiting = {pod.uid: pod for pod in play.waiting}
    owner = {pod.key: pod.project for pod in play.waiting}
    kept_before = {owner.get(reservation.job) for reservation in play.reservations}
    preempted = taken(play, result, EvictReason.PRIORITY)
    helped = {owner[e.beneficiary] for e in result.evicts if e.reason is EvictReason.RECLAIM}
    # A higher priority of its own may take it up to its quota.
    judged = {name for name in helped - kept_before if not preempted[name]}
    for name in judged:
        kept = sum(
            waiting[reservation.pod].pod_shape.nominal_milli
            for reservation in result.reservations
            if reservation.reason is ReservationReason.FREED and owner[reservation.job] == name
        )
        after = play.held(name, staying=True) + placed(play, result, name) + kept
        assert after <= result.shares_milli[ProjectName(name)]
    return judged
