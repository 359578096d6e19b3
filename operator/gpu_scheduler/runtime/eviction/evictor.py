"""Takes pods off their nodes, and marks those that ended, so that nobody pays for it.

The one place that sends evictions: each pod once, tried again while a disruption budget or the API
server says no, told in one Event and to whoever asks why the job lost its pod. Who has to go, and
when, is for the policies to say (``preemption``, ``gang_guard``, ``failed_placements``,
``overbooked``, ``overcap``, ``starting``, pruning). An eviction that fails is forgotten after a
while: whoever decided on it decides again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

import orjson

from gpu_scheduler.api.names import JOB_TRACKING
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.evict import evict, mark_disrupted, remove
from gpu_scheduler.jobs.write import Write, send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.event_reason import EventReason
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.eviction.losses import Losses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord

log = logging.getLogger(__name__)

# The Job controller removes this finalizer once it has counted a pod's end.
_TRIES = 8
_FIRST_PAUSE_SECONDS, PAUSE_SECONDS = 0.5, 10.0  # between tries: at first, and at most
_REST_SECONDS = (
    2.0  # after an eviction that failed, before anybody may decide on it again: at first
)


class _Withdrawn(Exception):
    """Nobody needs it any more that this pod goes."""


def _nothing() -> None:
    pass


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class EvictionCause:
    """Why a policy takes pods off their nodes; it stands among the ``CAUSES`` of its ``build``.

    Attributes:
        counter: the key of what is counted; its metric is gpusched_COUNTER_pods.
        counted: the same in words, the help of the metric.
        event: the word of the Events that tell of it.
    """

    counter: str
    counted: str
    event: EventReason


@dataclass(frozen=True, slots=True)
class EvictionMessage:
    """What is said of an eviction, once for each pod."""

    cause: EvictionCause
    message: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to leave its node.

    Attributes:
        pod: which one. told: what is said of it; None where whoever decided says it. first: what is
        written before it is evicted. in_spite_of_budgets: its GPUs are owed to others: it goes in
        spite of disruption budgets, as with
            kube-scheduler's preemption. They are asked first, for three quarters of a minute; then
            the pod is deleted, with its own grace period and without a charge.
        grace_seconds: time to end in, instead of its own.
        needed: asked before another try: False = nobody needs it any more, so it stays.
        withdrawn: called then.
        done: called when it goes.
        gave_up: called when it stays after all: a disruption budget said no for too long, or the
            API server refuses. An answer that is not known is no refusal: asking again is safe.
    """

    pod: PodRecord
    told: EvictionMessage | None = None
    first: Write | None = None
    in_spite_of_budgets: bool = False
    grace_seconds: int | None = None
    needed: Callable[[], bool] = _always
    withdrawn: Callable[[], None] = _nothing
    done: Callable[[], None] = _nothing
    gave_up: Callable[[], None] = _nothing


def and_then(pod: PodRecord, made_again: str) -> str:
    """What becomes of a pod that goes: ``made_again``, where somebody does that."""
    alone = pod.share is not None and not pod.share.controlled
    return "nobody makes it again" if alone else made_again


class Evictor:
    """Sends evictions and marks."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        events: Events,
        losses: Losses,
        *,
        pause_seconds: float = PAUSE_SECONDS,
        blind: Callable[[], bool] = lambda: False,
    ) -> None:
        """``losses`` is told of each pod that has to leave its node.

        ``blind``: whether something cannot be seen by which it is decided who has to.
        """
        self._backoff = Backoff(min(_FIRST_PAUSE_SECONDS, pause_seconds), pause_seconds)
        self._state = state
        self._client = client
        self._events = events
        self.losses = losses
        self._blind = blind
        self._handled: set[PodUID] = set()  # a request about it is under way or was answered
        self._told: set[PodUID] = set()
        self._failures: Failures[PodUID] = Failures(_now, first_seconds=_REST_SECONDS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[NoReturn] | None = None
        self.counts: Counter[str] = Counter()

    async def run(self) -> NoReturn:
        """Wait for ever; ends with NotLeader when the fence closes."""
        self._failure = asyncio.get_running_loop().create_future()
        await self._failure
        raise AssertionError("it only ends with an error")

    def handles(self, uid: PodUID) -> bool:
        """Whether an eviction of a pod, or a mark, is under way or was answered."""
        return uid in self._handled

    def gone(self, uid: PodUID) -> None:
        """Forget a pod."""
        self._handled.discard(uid)
        self._told.discard(uid)
        self._failures.over(uid)

    def evict(self, eviction: Eviction) -> bool:
        """Begin to evict a pod; False when that is under way already, or nothing may be decided."""
        pod, told = eviction.pod, eviction.told
        if pod.uid in self._handled or self._blind():
            return False
        if told is not None and self.is_news(pod):
            self.counts[told.cause.counter] += 1
            self.tell(pod, told.cause.event.reason, told.message)
        self._start(pod, self._evict(eviction))
        return True

    def mark(self, pod: PodRecord, write: Write, what: str) -> None:
        """Write on a pod that has ended why it did; ``what``: for the counter."""
        if pod.uid not in self._handled:
            self._start(pod, self._mark(pod, write, what))

    def has_told(self, uid: PodUID) -> bool:
        """Whether something was said of a pod's trouble."""
        return uid in self._told

    def is_news(self, pod: PodRecord) -> bool:
        """Whether nothing was said of a pod's trouble yet; from now on it was."""
        news = pod.uid not in self._told
        self._told.add(pod.uid)
        return news

    def tell(self, pod: PodRecord, reason: str, message: str) -> None:
        """Say of a pod that it has to leave its node: in the log, in an Event and in the status."""
        self.losses.lost(pod, message)
        self.warn(pod, reason, message)

    def warn(self, pod: PodRecord, reason: str, message: str) -> None:
        """Say something of a pod in the log, and in an Event of its GPUJob, or else its own."""
        log.warning("%s/%s: %s", pod.namespace, pod.name, message)
        job = self._state.workloads.gpujob_of(pod)
        if job is not None:
            self._events.say(InvolvedObject.of_job(job), "Warning", reason, message)
        else:
            self._events.say(InvolvedObject.of_pod(pod), "Warning", reason, message)

    async def _evict(self, eviction: Eviction) -> None:
        pod, meta = eviction.pod, eviction.pod.meta
        writes = [evict(meta, grace_seconds=eviction.grace_seconds)]
        if eviction.first is not None:
            writes.insert(0, eviction.first)
        try:
            try:
                done = await self._send_all(writes, eviction.needed)
            except (errors.TooManyRequests, errors.ServerError) as error:
                if (
                    not eviction.in_spite_of_budgets
                ):  # several budgets for one pod are an error of the server
                    raise
                self.counts["budget_overruled"] += 1
                self.warn(pod, "BudgetOverruled", f"{pod.name}: {error}; it goes all the same")
                done = await self._send_all(_insisting(pod))
        except _Withdrawn:
            self._handled.discard(pod.uid)
            return eviction.withdrawn()
        except errors.NotLeader:
            raise
        except Exception as error:
            eviction.gave_up()
            await self._rest(pod, error)
            return
        if done is None:
            return eviction.done()
        if done is not writes[-1]:
            self._handled.discard(pod.uid)  # it is not the pod that is gone
        return eviction.gave_up()

    async def _send_all(
        self, writes: Sequence[Write], needed: Callable[[], bool] = _always
    ) -> Write | None:
        """Write one after the other; answers the one whose object is gone, and writes no more."""
        for attempt in range(_TRIES):
            try:
                for write in writes:
                    if await self._send(write, needed) is None:
                        return write
                return None
            except (errors.ServerError, errors.Unavailable):
                if attempt == _TRIES - 1:
                    raise
            await asyncio.sleep(self._backoff.delay_seconds(attempt))
        raise AssertionError("the last try raises or returns")

    async def _send(self, write: Write, needed: Callable[[], bool] = _always) -> bytes | None:
        """Send, again and again while a disruption budget says no; None when the pod is gone.

        Raises:
            _Withdrawn: it says no, and nobody needs it any more.
            TooManyRequests: it still says no.
            ApiError: not written; among them a conflict: the pod was replaced, or just changed.
        """
        attempt = 0
        while True:
            try:
                # A budget's no says to wait ten seconds, as the client would, several times.
                retry = not write.path.endswith("/eviction")
                return await send(self._client, write, retry=retry)
            except errors.NotFound:
                return None
            except errors.Unprocessable as error:
                if not errors.another_object(error):
                    raise  # somebody's policy
                return None
            except errors.TooManyRequests:
                if attempt >= _TRIES:
                    raise
                await asyncio.sleep(self._backoff.delay_seconds(attempt))
                attempt += 1
                if not needed():
                    raise _Withdrawn from None

    async def _mark(self, pod: PodRecord, write: Write, what: str) -> None:
        try:
            answer = await self._send(write)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            return await self._rest(pod, error)
        if answer is None:
            return
        finalizers = orjson.loads(answer)["metadata"].get("finalizers") or ()
        late = JOB_TRACKING not in finalizers and not pod.disrupted
        self.counts["charged_by_race" if late else what] += 1
        if late:
            log.warning("a retry was charged: the Job controller was faster (%s)", write.path)

    async def _rest(self, pod: PodRecord, error: Exception) -> None:
        """Nobody may decide on this pod again for a while, each time for longer."""
        news = self._failures.note(pod.uid, error)
        if news and errors.final(error):
            message = f"the API server refuses to evict or mark pod {pod.name}: {error}"
            self.warn(pod, "EvictionRefused", message)
        elif news or not isinstance(error, errors.ApiError):
            self._say(pod, error)
        await asyncio.sleep(self._failures.left_seconds(pod.uid))
        self._handled.discard(pod.uid)

    def _start(self, pod: PodRecord, work: Coroutine[Any, Any, None]) -> None:
        self._handled.add(pod.uid)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._done(done, pod))

    def _done(self, task: asyncio.Task[None], pod: PodRecord) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        self._handled.discard(pod.uid)
        if isinstance(error, errors.NotLeader):
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)
        else:
            self._say(pod, error)

    def _say(self, pod: PodRecord, error: BaseException) -> None:
        about = f"{pod.namespace}/{pod.name}"
        if not isinstance(error, errors.ApiError):
            unexpected("evictor", about, error)
        else:
            log.warning("evicting or marking %s: %s", about, error)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _insisting(pod: PodRecord) -> tuple[Write, ...]:
    """What takes a pod in spite of budgets."""
    why = "its project borrowed its GPUs, and a disruption budget refuses to give them back"
    marked = mark_disrupted(pod.meta, "PreemptionByScheduler", why, datetime.now(UTC))
    return marked, remove(pod.meta)
