"""What happens to pods whose placement did not work out, so that nobody pays for it.

A pod that the kubelet rejected is marked at once, before the Job controller counts it (it looks
once a second): no retry is charged and the Job makes a new one. A pod past its time limit is
marked so that it is not tried again. A pod that hangs after its placement (unschedulable once its
gate is gone, left there without a word, or bound to a node that no longer exists) is evicted: where
nobody makes another one later, and in words. Either way the job keeps off that node for a while and
is in doubt (see ``doubting``): held back where kube-scheduler refuses it, or kubelets more than
once. Fed by every pod event; acts on each pod once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.jobs.evict import mark_disrupted, mark_time_limit
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.binding.start_limit import start_limit_seconds
from gpu_scheduler.runtime.common.event_reason import BOTH, EventReason
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.eviction import overbooked
from gpu_scheduler.runtime.eviction.evictor import (
    Eviction,
    EvictionCause,
    EvictionMessage,
    Evictor,
    and_then,
)
from gpu_scheduler.runtime.jobs import doubting
from gpu_scheduler.runtime.jobs.doubting import doubt
from gpu_scheduler.runtime.jobs.refused.refusals import MOST_SECONDS
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart, elsewhere_first
from gpu_scheduler.state.pods.containers import DEADLINE
from gpu_scheduler.state.pods.pod import PodRecord, Stage

STUCK = EvictionCause(
    "stuck",
    "Placed pods that could not start and were evicted.",
    EventReason(
        "PodStuck",
        "Warning",
        BOTH,
        "a placed pod did not get onto its node within scheduling.stuckSeconds; it is evicted",
    ),
)
_CHECK_SECONDS = 2.0
_SILENT = 4  # times ``stuck_seconds`` may pass before a pod is bound about which nothing is said


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a placed pod may hang before it is evicted, and its job then keeps off the node."""

    stuck_seconds: float
    avoid_seconds: float


class FailedPlacements:
    """Watches over placed pods."""

    def __init__(
        self,
        state: ClusterState,
        evictor: Evictor,
        gangs: GangGuard,
        patience: Patience,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        """``clock``: monotonic seconds, ``now``: epoch seconds."""
        self._state = state
        self._evictor = evictor
        self._gangs = gangs
        self._patience = patience
        self._clock = clock
        self._now = now
        self._since: dict[PodUID, float] = {}  # stuck pods: first seen so
        self._unbound: dict[PodUID, float] = {}  # pods that kube-scheduler is to bind: the same

    async def run(self) -> NoReturn:
        """Check for ever."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="failed placements", about="placed pods"
        )

    def observe(self, pod: PodRecord) -> None:
        """Look at a pod that has just changed."""
        doubting.observe(self._state, pod, self._clock())
        if self._hangs(pod):
            self._since.setdefault(pod.uid, self._clock())
        else:
            self._since.pop(pod.uid, None)
            self._ended(pod)
        if self._is_unbound(pod):
            self._unbound.setdefault(pod.uid, self._clock())
        else:
            self._unbound.pop(pod.uid, None)

    def gone(self, uid: PodUID) -> None:
        """Forget a pod."""
        self._evictor.gone(uid)
        self._since.pop(uid, None)
        self._unbound.pop(uid, None)

    def check(self) -> None:
        """Evict what hangs for too long, and mark what could not be marked before."""
        now = self._clock()
        self._state.waiting.forget_failures(lambda key: self._state.workloads.get(key) is None)
        try:
            overbooked.relieve(self._state, self._evictor)
        except Exception:
            unexpected("failed placements", "devices above their capacity")
        for pod in list(self._state.pods.known.values()):
            if pod.stage is not Stage.PLACED and pod.phase != "Failed":
                continue
            try:  # what goes wrong with one pod concerns no other
                self.observe(pod)
                if self._hung_for_too_long(pod, now):
                    self._unstick(pod)
            except Exception:
                unexpected("failed placements", f"{pod.namespace}/{pod.name}")

    def _ended(self, pod: PodRecord) -> None:
        """Mark a pod that failed before it ran, or ran for too long."""
        if pod.phase != "Failed" or pod.allocation is None or not pod.job_uid:
            return
        explained = pod.disrupted and not pod.unexplained
        if self._evictor.handles(pod.uid) or (explained and pod.ran):
            return
        key, now = self._state.workloads.key_of(pod), datetime.fromtimestamp(self._now(), UTC)
        if key is None:
            return  # after a start, the list of Jobs may be still to come
        if explained:
            return self._learn(key, pod)
        if pod.reason == DEADLINE:
            message = f"the pod ran longer than {pod.time_limit or 'its time limit'}"
            mark = mark_time_limit(pod.meta, message, now)
            self._evictor.mark(pod, mark, "time_limit")
        elif pod.failure is not None and pod.failure.reason is Reason.PROGRAM_NOT_FOUND:
            if self._evictor.is_news(pod):
                doubting.never_began(self._state, key, pod, self._clock())
        elif not pod.ran and not pod.deleting:
            reason = pod.reason or "Rejected"
            message = f"the kubelet of {pod.node} rejected the pod: {pod.message or reason}"
            if self._evictor.is_news(pod):
                why = f"{pod.name}: {message}"
                refused = f"the kubelet refused {pod.name}: {pod.message or reason}"
                then = and_then(pod, "placing it elsewhere")
                if self._has_failed_before(key, pod.node):
                    self._doubt(key, pod.node, why)
                else:  # the node may be to blame
                    self._avoid(key, pod.node, refused)
                    doubt(self._state, key, FailedStart(self._clock(), refused))
                self._evictor.warn(pod, "PodRejected", f"{why}; {then}")
                self._gangs.member_lost(pod, why)
                self._evictor.losses.lost(pod, why)
            mark = mark_disrupted(pod.meta, reason, message, now)
            self._evictor.mark(pod, mark, "rejected")

    def _learn(self, key: JobKey, pod: PodRecord) -> None:
        """An earlier leader marked this pod: its job is not to come back to the node.

        The Job makes each next pod later, at last after ten minutes: a few such tries are hours.
        """
        if not pod.disruption.startswith(f"{pod.reason}: ") or not self._evictor.is_news(pod):
            return  # who else marks a pod, such as the kubelet for an eviction, has other reasons
        began = self._state.beginnings.of_pod(pod.uid, pod.started or pod.created)
        ago = max(0.0, self._now() - began)
        self._avoid(key, pod.node, f"the kubelet refused {pod.name}: {pod.message}", ago)

    def _has_failed_before(self, key: JobKey, node: str) -> bool:
        """Whether pods of a job, or of one that is like it, were rejected before this moment."""
        waiting = self._state.waiting
        inherited = key in waiting.doubts and not waiting.avoided(key)
        return inherited or waiting.has_failed_before(key, node)

    def _hangs(self, pod: PodRecord) -> bool:
        if pod.stage is not Stage.PLACED or pod.deleting or pod.allocation is None:
            return False
        return pod.unschedulable is not None or not self._state.ledger.has_node(pod.node)

    def _is_unbound(self, pod: PodRecord) -> bool:
        placed = pod.stage is Stage.PLACED and not pod.deleting and pod.allocation is not None
        return placed and not pod.bound

    def _hung_for_too_long(self, pod: PodRecord, now: float) -> bool:
        unbound, patience = now - self._unbound.get(pod.uid, now), self._patience.stuck_seconds
        if pod.share is not None and not pod.share.controlled:  # an eviction is its end
            limit = start_limit_seconds(self._state, pod)
            return bool(limit) and unbound >= max(limit, patience)
        return now - self._since.get(pod.uid, now) >= patience or unbound >= _SILENT * patience

    def _unstick(self, pod: PodRecord) -> None:
        if self._evictor.handles(pod.uid):
            return
        key, gone = self._state.workloads.key_of(pod), not self._state.ledger.has_node(pod.node)
        if pod.unschedulable:
            why = pod.trouble.message if pod.trouble else pod.unschedulable.message
            said = f"kube-scheduler could not bind {pod.name} to {pod.node}: {why}"
        elif gone:
            why = said = "the node is gone"
        else:
            seconds = self._clock() - self._unbound[pod.uid]
            why = (
                f"kube-scheduler has not bound it within {seconds:.0f} s, and does not say why: it "
                "does not run, or waits for what the pod names, such as a resource claim"
            )
            said = f"{pod.name} was to start on {pod.node}: {why}"
        message = f"{pod.name} cannot start on {pod.node}: {why}"
        if key is not None and not self._evictor.has_told(pod.uid):
            if gone and not pod.unschedulable:
                self._avoid(key, pod.node, why)
            else:
                self._doubt(key, pod.node, said)
        elsewhere = "giving its GPUs back until then" if pod.trouble else "placing it elsewhere"
        told = EvictionMessage(STUCK, f"{message}; {and_then(pod, elsewhere)}")
        self._evictor.evict(Eviction(pod, told))
        self._gangs.member_lost(pod, message)

    def _doubt(self, key: JobKey, node: str, why: str) -> None:
        """Hold the job back as a whole, for longer each time."""
        seconds, now = self._patience.avoid_seconds, self._clock()
        delays = elsewhere_first(Backoff(seconds, MOST_SECONDS))
        until = doubt(self._state, key, FailedStart(now, why, delays=delays))
        self._state.waiting.avoid(key, node, until, seconds)

    def _avoid(self, key: JobKey, node: str, why: str, ago: float = 0.0) -> None:
        """Keep the job off the node: ``ago`` seconds ago somebody said why it does not do."""
        since, seconds = self._clock() - ago, self._patience.avoid_seconds
        self._state.waiting.avoid(key, node, since, seconds, why)
