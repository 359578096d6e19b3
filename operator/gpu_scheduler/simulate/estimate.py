"""When a job that waits may start: an estimate, or that none is known.

Only what is founded is said: what the plan decides now, room that it keeps, what becomes due by the
promises and time limits of pods. Nothing is guessed from how long others took. The
simulated state is changed on the way, so it is asked for last.
"""

from collections.abc import Sequence
from typing import Any

from gpu_scheduler.api import states
from gpu_scheduler.core.fit.placement import Placer
from gpu_scheduler.core.model import quota, wording
from gpu_scheduler.core.model.decision import Evict, Reason, ReservationReason
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.simulate.cluster_cycles import SettledCluster, plan_until_stable
from gpu_scheduler.simulate.holders import Waiting
from gpu_scheduler.simulate.planned import Planned
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord

Json = dict[str, Any]

MOST_CYCLES = 3  # that change something, until the job starts: beyond, too much else happens


def estimate(
    planned: Planned, waiting: Waiting, pods: Sequence[RunningPod], candidates: Sequence[Json]
) -> Json:
    """When it may start."""
    if waiting.group.job.doubtful:
        return _in_doubt()
    return (
        _never(waiting)
        or _kept(planned, waiting)
        or _simulated(planned, waiting)
        or _by_time_limits(waiting, pods)
        or _unknown(waiting, candidates)
    )


def at_once(job: WaitingJob, node: str) -> Json:
    """The estimate for what the plan starts."""
    if job.doubtful:
        return _in_doubt()
    text = f"the plan of this moment starts it on {node}, within seconds where an operator runs"
    return _estimate("now", text, node=node)


def _estimate(
    kind: str,
    text: str,
    *,
    at: float | None = None,
    node: str | None = None,
    gives_way: Sequence[Json] = (),
) -> Json:
    return {
        "kind": kind,
        "text": text,
        "startsBy": None if at is None else wording.at(at),
        "node": node,
        "givesWay": list(gives_way),
    }


def _in_doubt() -> Json:
    """For what could not start for a reason of its own: nobody knows when that is mended."""
    text = "the operator tries it again now and then, where GPUs are free; nobody gives way to it"
    return _estimate("unknown", f"not known: {text} until what refuses it has changed")


def _never(waiting: Waiting) -> Json | None:
    if waiting.group.never is None:
        return None
    state = states.of(waiting.group.never)
    return _estimate("never", f"not as it is: {state.mover}" if state else "not as it is")


def _kept(planned: Planned, waiting: Waiting) -> Json | None:
    """Room is kept for it."""
    uids = {pod.uid for pod, _ in waiting.group.members}
    reservations = [
        reservation for reservation in planned.plan.reservations if reservation.pod in uids
    ]
    if not reservations:
        return None
    nodes = wording.names(sorted({reservation.node for reservation in reservations}))
    node = reservations[0].node
    if any(reservation.reason is ReservationReason.FREED for reservation in reservations):
        text = f"as soon as the pods that give way to it on {nodes} have ended"
        gone = [
            _gone(planned, planned.simulated.state.pods.known[each.pod], each)
            for each in planned.plan.evicts
            if each.beneficiary == waiting.key
        ]
        return _estimate("evictions", text, node=node, gives_way=gone)
    starts = [reservation.start for reservation in reservations]
    known_all = [start for start in starts if start is not None]
    if len(known_all) < len(starts):
        return None
    text = f"room on {nodes} is reserved for it, and time limits end the pods there by then"
    return _estimate("time limits", text, at=max(known_all), node=node)


def _simulated(planned: Planned, waiting: Waiting) -> Json | None:
    """It starts once promises fall due, if nothing else happens."""
    uids = {pod.uid for pod, _ in waiting.group.members}

    def enough(outcome: SettledCluster) -> bool:
        started = any(place.pod in uids for _, place, _ in outcome.starts)
        return started or outcome.cycles >= MOST_CYCLES

    outcome = plan_until_stable(planned.simulated, planned.rules, planned.now, enough=enough)
    mine = [(place, moment) for _, place, moment in outcome.starts if place.pod in uids]
    if not mine:
        return None
    (place, moment), *_ = mine
    gone = [
        _gone(planned, pod, decision)
        for pod, decision, _ in outcome.gives_way
        if decision.beneficiary == waiting.key
    ]
    first = [pod for pod, _, when in outcome.gives_way if when.cycle < moment.cycle]
    when = f"about {wording.span(moment.seconds)} from now" if moment.seconds else "soon"
    gives_way = ""
    if gone:
        names = wording.names(sorted({each["job"] for each in gone}))
        gives_way = f", once pods of {names} have given way to it"
    elif first:
        gives_way = ", once others have given way to what is before it"
    text = f"on {place.node} {when}{gives_way}, if nothing else happens"
    at = epoch_seconds(planned.now) + moment.seconds
    return _estimate("promises", text, at=at, node=place.node, gives_way=gone)


def _gone(planned: Planned, pod: PodRecord, decision: Evict) -> Json:
    return {"pod": pod.name, "job": planned.name_of(decision.job), "message": decision.message}


def _by_time_limits(waiting: Waiting, pods: Sequence[RunningPod]) -> Json | None:
    """Time limits give enough back by a certain moment, at the latest."""
    ending = sorted((pod for pod in pods if pod.ends is not None), key=lambda p: (p.ends, p.uid))
    if not ending:
        return None
    if waiting.reason is Reason.WAITING_FOR_QUOTA:
        found = _of_project(waiting, ending)
    elif waiting.group.job.gang is None:
        found = _of_node(waiting, ending)
    else:
        found = None
    if found is None:
        return None
    at, node, jobs = found
    where = f" on {node}" if node else " in its project"
    text = f"time limits end enough{where} by then: {wording.names(jobs)}"
    text += _before(waiting)
    return _estimate("time limits", text, at=at, node=node or None)


ExpectedStart = tuple[float, str, list[str]]  # when, on which node, and whose pods end


def _of_project(waiting: Waiting, ending: Sequence[RunningPod]) -> ExpectedStart | None:
    group = waiting.group
    held = waiting.room.session.snapshot.allocated_milli(group.project.name)
    gap, jobs = group.needs.least_milli - (quota.ceiling_milli(group.project) - held), list[str]()
    for pod in ending:
        gap -= pod.milli
        jobs.append(waiting.room.name_of(pod.job))
        if gap <= 0 and pod.ends is not None:
            return pod.ends, "", list(dict.fromkeys(jobs))
    return None


def _of_node(waiting: Waiting, ending: Sequence[RunningPod]) -> ExpectedStart | None:
    """The planner's own question, node by node, as one pod after the other ends."""
    placer, member = Placer(waiting.room.session), waiting.group.members[0]
    snapshot, best = waiting.room.session.snapshot, None
    by_node: dict[str, list[RunningPod]] = {}
    for pod in ending:
        by_node.setdefault(pod.node, []).append(pod)
    for name, pods in by_node.items():
        node, mark, gone = snapshot.number_of(name), snapshot.mark(), list[RunningPod]()
        if node is None:
            continue
        for pod in pods:
            if best is not None and pod.ends is not None and pod.ends >= best[0]:
                break
            snapshot.release_pod(pod)
            gone.append(pod)
            if placer.fits(member, node) is not None and pod.ends is not None:
                names = [waiting.room.name_of(each.job) for each in gone]
                best = pod.ends, name, list(dict.fromkeys(names))
                break
        snapshot.rollback(mark)
    return best


def _unknown(waiting: Waiting, candidates: Sequence[Json]) -> Json:
    group = waiting.group
    if not group.complete:
        text = "it starts when all pods of its gang are there and have a place"
    elif waiting.reason is Reason.WAITING_FOR_QUOTA:
        held = waiting.room.session.snapshot.allocated_milli(group.project.name)
        room = quota.ceiling_milli(group.project) - held
        gap = max(0, group.needs.least_milli - room)
        back = f"{wording.gpus(gap)} back" if gap else "back what it waits for"
        text = f"it starts once pods of project {group.project.name} give {back}"
    elif group.job.gang is not None:
        text = "it starts once there is room for all of its pods at the same time"
    elif candidates and not candidates[0]["fits"]:
        best = candidates[0]
        missing = best["missingGPU"]
        if len(best["lacks"]) == 1 and missing != "0":
            text = f"it starts once {best['node']} has {missing} GPU more free"
        else:
            lacks = "; ".join(best["lacks"])
            text = f"it starts once nothing is in the way on {best['node']}: {lacks}"
    else:
        text = "it starts when its turn comes"
    before = _before(waiting)
    return _estimate("unknown", f"not known: {text}{before}; no time limit says when")


def _before(waiting: Waiting) -> str:
    if not waiting.before:
        return ""
    jobs = "1 job" if waiting.before == 1 else f"{waiting.before:,} jobs"
    return f"; {jobs} before it may take what comes free"
