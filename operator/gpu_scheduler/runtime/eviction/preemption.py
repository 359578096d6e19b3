"""Carrying out evictions that the planner decided, and telling both sides.

The Eviction API marks the pod with DisruptionTarget, so its Job charges no retry and starts the
same index again; the pod keeps its own grace period. From the decision on the pod counts as
leaving, so nobody else is evicted for the same room. Of a gang all members go, also those that hold
no GPU. A pod whose disruption budget says no for too long goes all the same where a guarantee is
owed its devices (ADR 0032), and is else spared for a while. That a pod moves is written on its Job
first.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from gpu_scheduler.core.actions.consolidation import REST_SECONDS
from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.jobs.evict import mark_moved
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.eviction import overbooked
from gpu_scheduler.runtime.eviction.eviction_costs import EvictionCosts
from gpu_scheduler.runtime.eviction.evictor import Eviction, Evictor
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.queue.gangs import holds

log = logging.getLogger(__name__)

SPARED_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Preempted:
    """Why a job's pods had to go, the latest time."""

    by: str
    pod: PodUID


class Preemptor:
    """Evicts for others."""

    def __init__(
        self,
        state: ClusterState,
        evictor: Evictor,
        events: Events,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        """``clock``: monotonic seconds, ``now``: epoch seconds."""
        self._state = state
        self._evictor = evictor
        self._events = events
        self._clock = clock
        self._now = now
        self._preempted: dict[JobKey, tuple[str, Preempted]] = {}  # with the GPUJob's uid
        self._spared: dict[PodUID, float] = {}  # until, monotonic seconds
        self.costs = EvictionCosts(state, now)
        self.counts: Counter[str] = Counter()
        """Evictions by reason."""

    def carry_out(self, evicts: Iterable[Evict]) -> None:
        """Evict what was decided, each pod once."""
        self._expire()
        gangs: dict[JobKey, Evict] = {}
        for decision in evicts:
            try:
                self._carry_out(decision, gangs)
            except Exception:
                unexpected("preemption", f"{decision.job}: pod {decision.pod}")
        for job, decision in gangs.items():
            for pod in list(self._state.workloads.pods(job)):
                if holds(pod) or pod.uid in self._state.decisions.assumed:
                    try:
                        self._evict(pod, decision)
                    except Exception:
                        unexpected("preemption", f"{pod.namespace}/{pod.name}")

    def _carry_out(self, decision: Evict, gangs: dict[JobKey, Evict]) -> None:
        pod = self._state.pods.known.get(decision.pod)
        if pod is None or not self._evict(pod, decision):
            return
        self.counts[decision.reason] += 1
        self.costs.began(pod, decision)
        if decision.reason is not EvictReason.CONSOLIDATE:
            self._state.running_pods.gave_way(pod, decision.beneficiary)
        own = self._state.jobs.believed.get(pod.job_uid)
        why = Preempted(self._state.groups.name_of(decision.beneficiary), pod.uid)
        self._preempted[decision.job] = (own.owner_uid if own is not None else "", why)
        if decision.job in gangs:
            return  # one of them says it for all
        if decision.whole_job:
            gangs[decision.job] = decision
        log.info("%s: evicting for another job: %s", decision.reason, decision.message)
        self._say(decision.job, "Preempted", decision.message, pod)
        self._say(decision.beneficiary, "Preempting", decision.message)

    def relieve(self) -> bool:
        """Evict from devices above their capacity; True when that began now."""
        return overbooked.relieve(self._state, self._evictor)

    def of(self, job: JobKey) -> Preempted | None:
        """For whom pods of a job had to go, as far as that was not forgotten."""
        known = self._preempted.get(job)
        return known[1] if known is not None and self._lives(job, known[0]) else None

    def forget(self, job: JobKey) -> None:
        """The job has its pods again."""
        self._preempted.pop(job, None)

    def _evict(self, pod: PodRecord, decision: Evict) -> bool:
        """Begin; False when the pod goes anyway."""
        reason = decision.reason
        if pod.deleting or pod.stage is Stage.ENDED:
            return False
        first = self._mark(pod) if reason is EvictReason.CONSOLIDATE else None
        in_spite_of_budgets, stays = reason is EvictReason.RECLAIM, partial(self._stays, pod.uid)
        needed, withdrawn = partial(self._needed, decision), partial(self._withdrawn, pod.uid)
        eviction = Eviction(
            pod,
            first=first,
            in_spite_of_budgets=in_spite_of_budgets,
            needed=needed,
            withdrawn=withdrawn,
            gave_up=stays,
        )
        if not self._evictor.evict(eviction):
            return False
        self._state.set_leaving(pod.uid, True)
        return True

    def _needed(self, decision: Evict) -> bool:
        """Whether somebody still waits for what a pod holds, and its project still borrows."""
        state, pod = self._state, self._state.running_pods.get(decision.pod)
        if decision.reason is EvictReason.CONSOLIDATE or pod is None:
            return True
        waiting = state.waiting_job(decision.beneficiary)
        if waiting is None or waiting.doubtful:
            return False
        known = pod.project in state.projects.records
        project = state.planner_project(pod.project) if known else None
        if decision.reason is not EvictReason.RECLAIM or project is None:
            return True
        if project.quota_by_model:
            return True  # it may borrow of one model alone
        held = state.projects.holdings(state.ledger.held_milli)
        return held.get(pod.project, 0) > project.quota_milli

    def _withdrawn(self, uid: PodUID) -> None:
        self.costs.stays(uid)
        self._state.set_leaving(uid, False)

    def _mark(self, pod: PodRecord) -> Write | None:
        """What says on the pod's Job that it moves."""
        job, now = self._state.jobs.believed.get(pod.job_uid), self._now()
        self._state.running_pods.moves.decided(pod, now)
        if job is None:
            return None
        meta = Meta(name=job.name, namespace=job.namespace, uid=job.uid)
        old = [i for i, mark in job.moves.items() if mark.at + REST_SECONDS <= now]
        return mark_moved(meta, pod.index, pod.uid, datetime.fromtimestamp(now, UTC), old)

    def _stays(self, uid: PodUID) -> None:
        running_pods = self._state.running_pods
        self.costs.stays(uid)
        self._state.set_leaving(uid, False)
        if running_pods.get(uid) is None:
            return
        self._spared[uid] = self._clock() + SPARED_SECONDS
        self._state.spare(uid, True)

    def _lives(self, key: JobKey, uid: str) -> bool:
        """Whether the GPUJob is still that one, and not a later one of its name."""
        job = self._state.workloads.get(key)
        return job is not None and job.uid == uid

    def _expire(self) -> None:
        now = self._clock()
        self.costs.expire()
        for key in [key for key, (uid, _) in self._preempted.items() if not self._lives(key, uid)]:
            del self._preempted[key]
        for uid in [uid for uid, until in self._spared.items() if until <= now]:
            del self._spared[uid]
            self._state.spare(uid, False)

    def _say(self, key: JobKey, reason: str, message: str, lost: PodRecord | None = None) -> None:
        job = self._state.gpujobs.get(key)
        if job is not None:
            self._events.say(InvolvedObject.of_job(job), "Normal", reason, message)
        elif key in self._state.groups.records:
            for pod in self._state.workloads.pods(key):
                self._events.say(InvolvedObject.of_pod(pod), "Normal", reason, message)
        elif lost is not None:  # it has no owner any more
            self._events.say(InvolvedObject.of_pod(lost), "Normal", reason, message)
