"""What happens to pods whose placement did not work out, so that nobody pays for it.

A pod that the kubelet rejected is marked at once, before the Job controller counts it (it looks
once a second): no retry is charged and the Job makes a new one. A pod past its time limit is
marked so that it is not tried again. A pod that hangs after its placement (unschedulable once its
gate is gone, or bound to a node that no longer exists) is evicted. Either way the job keeps off
that node for a while. Fed by every pod event; acts on each pod once.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

import orjson

from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.verify import PodDevices, overbooked
from gpu_scheduler.jobs.evict import evict, mark_disrupted, mark_time_limit, remove
from gpu_scheduler.jobs.write import Write, send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.events import Events, Subject
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import epoch_seconds
from gpu_scheduler.state.pods import PodRecord, Stage

log = logging.getLogger(__name__)

# The Job controller removes this finalizer once it has counted a pod's end.
_TRACKING = "batch.kubernetes.io/job-tracking"
_DEADLINE = "DeadlineExceeded"
_SWEEP_SECONDS = 2.0
_TRIES = 8
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 10.0  # between tries of an unknown answer


class Recovery:
    """Watches over placed pods."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        events: Events,
        *,
        stuck_seconds: float,
        avoid_seconds: float,
        clock: Callable[[], float],
        now: Callable[[], float] = time.time,
    ) -> None:
        """``stuck_seconds``: how long a placed pod may hang before it is evicted.

        ``clock``: monotonic seconds, ``now``: epoch seconds.
        """
        self._now = now
        self._state, self._client, self._events = state, client, events
        self._stuck_seconds, self._avoid_seconds, self._clock = stuck_seconds, avoid_seconds, clock
        self._handled: set[PodUID] = set()  # a request about it is under way or was answered
        self._told: set[PodUID] = set()  # its trouble was counted and reported
        self._unmarked: set[PodUID] = set()  # ended pods to look at again
        self._since: dict[PodUID, float] = {}  # stuck pods: first seen so
        self._tasks: set[asyncio.Task[object]] = set()
        self._failure: asyncio.Future[NoReturn] | None = None
        self.counts: Counter[str] = Counter()
        self.member_lost: Callable[[PodRecord, str], None] = lambda pod, why: None
        """Told of each pod that could not start where it was placed."""
        self.lost: Callable[[PodRecord, str], None] = lambda pod, why: None
        """Told of each pod that has to leave its node."""

    async def run(self) -> NoReturn:
        """Look for stuck pods for ever; ends with NotLeader when the fence closes."""
        self._failure = asyncio.get_running_loop().create_future()
        while True:
            await asyncio.wait([self._failure], timeout=_SWEEP_SECONDS)
            if self._failure.done():
                await self._failure
            self._sweep()

    def observe(self, pod: PodRecord) -> None:
        """Look at a pod that has just changed."""
        if pod.stage is Stage.ENDED:
            self._since.pop(pod.uid, None)
            self._ended(pod)
        elif self._hangs(pod):
            self._since.setdefault(pod.uid, self._clock())
        else:
            self._since.pop(pod.uid, None)

    def gone(self, uid: PodUID) -> None:
        """Forget a pod."""
        for known in (self._handled, self._told, self._unmarked):
            known.discard(uid)
        self._since.pop(uid, None)

    def check_capacity(self) -> bool:
        """Evict the newest pods from devices above their capacity; True when that began now.

        A pod that takes its time to go keeps its device full in the ledger's arrays: nothing is
        placed there, and the rest of the cluster need not wait for it.
        """
        ledger = self._state.ledger
        cluster = ledger.cluster
        crowded = max((m for held in ledger.unlisted.values() for m in held.values()), default=0)
        least = min(min(cluster.free_milli, default=0), min(cluster.free_mib, default=0))
        if least >= 0 and crowded <= DEVICE_MILLI:
            return False
        found = overbooked(
            cluster,
            [
                PodDevices(
                    pod.uid,
                    pod.node,
                    epoch_seconds(pod.created),
                    ledger.resolved(pod.node, pod.allocation.grants),
                )
                for pod in self._state.pods.values()
                if pod.allocation is not None and pod.stage is not Stage.ENDED
            ],
        )
        began = False
        for device in found:
            for uid in device.evict:
                if uid in self._handled:
                    continue
                began = True
                pod = self._state.pods[uid]
                self._evict(
                    pod,
                    "overbooked",
                    "Overbooked",
                    f"device {device.device} of {device.node} holds {device.milli} milli-GPU and "
                    f"{device.mib} of {device.usable_mib} MiB: evicting {pod.name}",
                )
        return began

    def evict_over_cap(self, pod: PodRecord, message: str) -> None:
        """Evict a pod that holds more device memory than its cap, unless that is under way."""
        if pod.uid not in self._handled and not pod.deleting:
            self._evict(pod, "over_cap", "OverCapEvicted", message, "it starts again")

    def evict_not_started(self, pod: PodRecord, message: str) -> bool:
        """Evict a pod that does not start; False when it goes anyway."""
        if pod.uid in self._handled or pod.deleting:
            return False
        self._evict(pod, "not_started", "StartTimedOut", message, "it is tried again later")
        self.member_lost(pod, message)
        return True

    def make_way(
        self,
        pod: PodRecord,
        gave_up: Callable[[], None],
        first: Write | None = None,
        *,
        owed: bool = False,
    ) -> bool:
        """Evict a pod for another one; False when an eviction of it is under way already.

        ``gave_up`` is called when it stays after all: a disruption budget said no for too long, or
        the API server refuses. An answer that is not known is no refusal: asking again is safe.
        ``first`` is written before it is evicted.

        What was borrowed and is ``owed`` to others goes in spite of budgets, as with
        kube-scheduler's preemption: they are asked first, for three quarters of a minute, and then
        the pod is deleted, with its own grace period and without a charge.
        """
        if pod.uid in self._handled:
            return False
        meta = Meta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
        writes = [evict(meta)] if first is None else [first, evict(meta)]
        self._start(pod, self._all_or(pod, gave_up, writes, self._insist(pod) if owed else ()))
        return True

    def _insist(self, pod: PodRecord) -> tuple[Write, ...]:
        """What takes a pod in spite of budgets."""
        meta = Meta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
        why = "its project borrowed its GPUs, and a disruption budget refuses to give them back"
        return (
            mark_disrupted(meta, "PreemptionByScheduler", why, datetime.now(UTC)),
            remove(meta),
        )

    async def _all_or(
        self,
        pod: PodRecord,
        gave_up: Callable[[], None],
        writes: Sequence[Write],
        insist: Sequence[Write],
    ) -> None:
        """Write all or give up; ``insist``: what is written where evictions are refused."""
        uid, delay = pod.uid, _FIRST_DELAY_SECONDS
        for attempt in range(_TRIES):
            try:
                for write in writes:
                    if await self._send(write) is None:
                        if write is not writes[-1]:
                            self._handled.discard(uid)  # it is not the pod that is gone
                        return gave_up()
                return None
            except errors.NotLeader:
                raise
            except (errors.TooManyRequests, errors.ServerError) as error:
                last = attempt == _TRIES - 1 or isinstance(error, errors.TooManyRequests)
                if last and insist:  # several budgets for one pod are an error of the server
                    self.counts["budget_overruled"] += 1
                    self._say_of(
                        pod, "BudgetOverruled", f"{pod.name}: {error}; it goes all the same"
                    )
                    return await self._all_or(pod, gave_up, insist, ())
                if last:
                    gave_up()
                    raise
            except errors.Unavailable:
                if attempt == _TRIES - 1:
                    gave_up()
                    raise
            except errors.ApiError:
                gave_up()
                raise
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_DELAY_SECONDS)

    def _ended(self, pod: PodRecord) -> None:
        known = pod.uid in self._handled or (pod.disrupted and pod.ran)
        if known or pod.phase != "Failed" or pod.allocation is None or not pod.job_uid:
            return
        key = self._state.job_of(pod)
        if key is None:
            self._unmarked.add(pod.uid)  # after a start, the list of Jobs may be still to come
            return
        if pod.disrupted:
            return self._learn(key, pod)
        meta, now = Meta(name=pod.name, namespace=pod.namespace, uid=pod.uid), datetime.now(UTC)
        if pod.reason == _DEADLINE:
            message = "the pod ran longer than spec.timeLimitSeconds"
            self._start(pod, self._mark(mark_time_limit(meta, message, now), "time_limit"))
        elif not pod.ran and not pod.deleting:
            reason = pod.reason or "Rejected"
            message = f"the kubelet of {pod.node} rejected the pod: {pod.message or reason}"
            if pod.uid not in self._told:
                self._told.add(pod.uid)
                self._avoid(
                    key, pod.node, f"the kubelet refused {pod.name}: {pod.message or reason}"
                )
                self._say(key, "PodRejected", f"{pod.name}: {message}; placing it elsewhere")
                self.member_lost(pod, f"{pod.name}: {message}")
                self.lost(pod, f"{pod.name}: {message}")
            self._start(pod, self._mark(mark_disrupted(meta, reason, message, now), "rejected"))

    def _learn(self, key: JobKey, pod: PodRecord) -> None:
        """An earlier leader marked this pod: its job is not to come back to the node.

        The Job makes each next pod later, at last after ten minutes: a few such tries are hours.
        """
        if pod.uid in self._told or not pod.disruption.startswith(f"{pod.reason}: "):
            return  # who else marks a pod, such as the kubelet for an eviction, has other reasons
        self._told.add(pod.uid)
        ago = max(0.0, self._now() - epoch_seconds(pod.started or pod.created))
        self._avoid(key, pod.node, f"the kubelet refused {pod.name}: {pod.message}", ago)

    def _hangs(self, pod: PodRecord) -> bool:
        if pod.stage is not Stage.PLACED or pod.deleting or pod.allocation is None:
            return False
        return pod.unschedulable is not None or not self._state.ledger.has_node(pod.node)

    def _sweep(self) -> None:
        now = self._clock()
        self._state.waiting.forgive_all_but(self._state.gpujobs)
        try:
            self.check_capacity()
        except Exception:
            unexpected("recovery", "devices above their capacity")
        unmarked, self._unmarked = self._unmarked, set()
        for uid in unmarked:
            if uid in self._state.pods:
                self._each(self._ended, self._state.pods[uid])
        for pod in list(self._state.pods.values()):
            if pod.stage is Stage.PLACED and pod.uid not in self._since and self._hangs(pod):
                self._since[pod.uid] = now
        for uid in list(self._since):
            known = self._state.pods.get(uid)
            if known is None or not self._hangs(known):
                del self._since[uid]
            elif now - self._since[uid] >= self._stuck_seconds and uid not in self._handled:
                self._each(self._unstick, known)

    def _each(self, look: Callable[[PodRecord], None], pod: PodRecord) -> None:
        """What goes wrong with one pod concerns no other."""
        try:
            look(pod)
        except Exception:
            unexpected("recovery", f"{pod.namespace}/{pod.name}")

    def _unstick(self, pod: PodRecord) -> None:
        why = pod.unschedulable.message if pod.unschedulable else "the node is gone"
        key = self._state.job_of(pod)
        if key is not None and pod.uid not in self._told:
            told = f"kube-scheduler could not bind {pod.name}: {why}" if pod.unschedulable else why
            self._avoid(key, pod.node, told)
        why = f"{pod.name} cannot start on {pod.node}: {why}"
        self._evict(pod, "stuck", "PodStuck", why)
        self.member_lost(pod, why)

    def _evict(
        self,
        pod: PodRecord,
        what: str,
        reason: str,
        message: str,
        then: str = "placing it elsewhere",
    ) -> None:
        if pod.uid not in self._told:
            self._told.add(pod.uid)
            self.counts[what] += 1
            self.lost(pod, f"{message}; {then}")
            self._say_of(pod, reason, f"{message}; {then}")
        meta = Meta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
        self._start(pod, self._send(evict(meta)))

    def _avoid(self, key: JobKey, node: str, why: str, ago: float = 0.0) -> None:
        """Keep the job off the node: ``ago`` seconds ago somebody said why it does not do."""
        self._state.waiting.avoid(key, node, self._clock() - ago, self._avoid_seconds, why)

    def _say_of(self, pod: PodRecord, reason: str, message: str) -> None:
        log.warning("%s/%s: %s", pod.namespace, pod.name, message)
        key = self._state.job_of(pod)
        if key is not None:
            self._say(key, reason, message)

    def _say(self, key: JobKey, reason: str, message: str) -> None:
        job = self._state.gpujobs.get(key)
        if job is not None:
            subject = Subject("GPUJob", job.namespace, job.name, job.uid)
            self._events.say(subject, "Warning", reason, message)

    def _start(self, pod: PodRecord, work: Coroutine[Any, Any, object]) -> None:
        self._handled.add(pod.uid)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(done, pod.uid))

    def _done(self, task: asyncio.Task[object], uid: PodUID) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        self._handled.discard(uid)
        if isinstance(error, errors.NotLeader):
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)
            return
        if isinstance(error, errors.ApiError):
            log.warning("recovery of pod %s: %s", uid, error)
        else:
            unexpected("recovery", f"pod {uid}", error)
        if uid in self._state.pods:
            self._unmarked.add(uid)  # the next sweep tries again

    async def _mark(self, write: Write, what: str) -> None:
        answer = await self._send(write)
        if answer is None:
            return
        finalizers = orjson.loads(answer)["metadata"].get("finalizers") or ()
        late = _TRACKING not in finalizers
        self.counts["charged_by_race" if late else what] += 1
        if late:
            log.warning("a retry was charged: the Job controller was faster (%s)", write.path)

    async def _send(self, write: Write) -> bytes | None:
        """Send, again and again while a disruption budget says no; None when the pod is gone.

        Raises:
            TooManyRequests: it still says no.
            ApiError: not written; among them a conflict: the pod was replaced, or just changed.
        """
        attempt = 0
        while True:
            try:
                # A budget's no says to wait ten seconds, as the client would, several times.
                retry = not write.path.endswith("/eviction")
                return await send(self._client, write, retry=retry)
            except (errors.NotFound, errors.Unprocessable):
                return None
            except errors.TooManyRequests:
                if attempt >= _TRIES:
                    raise
                await asyncio.sleep(min(0.5 * 2**attempt, 10.0))
                attempt += 1
