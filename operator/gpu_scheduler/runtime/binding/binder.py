"""Carrying out placements: one write per pod, many in flight, no answer left unresolved.

A decision is charged (``Decisions.assume``) before its write and stays charged until the watch
shows the pod or it is certain that the write neither happened nor will: after a failure the pod is
read; where the answer is not known it is touched first, so that a write still under way is refused.
A pod of which only metadata changed gets its write again at once. The places of a gang are one
decision: when one fails, those not written yet are dropped and those written are released. Every
write carries the leader's term.
"""

import asyncio
import itertools
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol

from gpu_scheduler.api.allocation import contexts
from gpu_scheduler.api.names import TERM
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.gate import HOSTNAME_LABEL
from gpu_scheduler.jobs.place import Pin, obstacle, place
from gpu_scheduler.jobs.touch import touch
from gpu_scheduler.jobs.write import NotPlaceableError, Write, send
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Meta, Pod
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm, refuses_term
from gpu_scheduler.runtime.jobs.doubting import doubt
from gpu_scheduler.runtime.jobs.refused.refusals import FIRST_SECONDS, MOST_SECONDS
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart, elsewhere_first
from gpu_scheduler.state.pods.pod import Stage
from gpu_scheduler.state.pods.slim import slim

log = logging.getLogger(__name__)

_LOOK_AGAIN = Backoff(0.5, 30.0)
_SELDOM = 6  # looks, after which they are as seldom as they get
_LATER_SECONDS = 1.0  # where the API server could not do it
_AVOIDS = 1 / 3  # of ``recheck_seconds``, a node that refused a pod, beyond the job's next try
_GANG_AVOIDS = 2  # the same of a gang: its other pods first have to go and come again
_SLOW_SECONDS = 1.0  # from then on the job's status says what it waits for
_AT_ONCE = 5  # tries with new versions of the pod, before the planner is asked anew


class More(Protocol):
    """What placements set beside the allocation."""

    def prepare(self, decision: Assignment, then: Callable[[], None]) -> bool:
        """Whether it is known; if not, ``then`` is called when it is."""
        ...

    def annotations(self, decision: Assignment) -> Mapping[str, str]:
        """What the write sets; NotPlaceableError if the pod cannot be placed."""
        ...


@dataclass(frozen=True, slots=True)
class Writing:
    """How placements are written.

    Attributes:
        concurrency: writes in flight.
        pin: how a pod is tied to its node.
        more: what a placement sets beside the allocation.
        observe_seconds: told how long each write took.
        placed: told of each pod that was placed, as it was before.
        recheck_seconds: before a job whose placement was refused is tried again.
    """

    concurrency: int
    pin: Pin
    more: More | None = None
    observe_seconds: Callable[[float], None] = lambda seconds: None
    placed: Callable[[Assignment, Pod], None] = lambda decision, pod: None
    recheck_seconds: float = FIRST_SECONDS


@dataclass(frozen=True, slots=True)
class _Failure:
    """Of a placing write.

    Attributes:
        result: for the counter.
        refused: why the same write would fail again, so the node is left alone for a while.
        later: why it may fail again just now: the second time in a row the node is left alone
            for a moment, then for longer.
        unknown: the write may have happened, or may still.
        again: try again at once, when nothing of the pod but its metadata changed.
    """

    result: str
    refused: str = ""
    later: errors.ApiError | None = None
    unknown: bool = False
    again: bool = False


class Binder:
    """Writes placements with a bounded number of requests in flight."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        term: LeaderTerm,
        gangs: GangGuard,
        how: Writing,
        *,
        clock: Callable[[], float],
    ) -> None:
        """``term`` is the leader's; ``gangs`` is told of members that are not placed."""
        self._state = state
        self._client = client
        self._leader_term = term
        self._gangs = gangs
        self._how = how
        self._clock = clock
        self._touches = itertools.count(1)
        self._failures: Failures[PodUID] = Failures(clock, at_once=1)
        self._todo: deque[tuple[Assignment, Pod, asyncio.TimerHandle]] = deque()
        self._ready = asyncio.Semaphore(0)
        self._unsettled = 0
        self._young: set[PodUID] = set()  # submitted a moment ago, and unsettled
        self.idle = asyncio.Event()  # no decision is unsettled
        self.idle.set()
        self.results: Counter[str] = Counter()

    def submit(self, decision: Assignment, pod: Pod, *, gang: bool = False) -> None:
        """Write this decision soon; ``pod`` is the waiting pod as last seen.

        ``gang``: the decisions of its job stand and fall together.
        """
        self._unsettled += 1
        if gang:
            self._gangs.writes.begin(decision.job)
        self.idle.clear()
        self._young.add(decision.pod)
        slow = asyncio.get_running_loop().call_later(_SLOW_SECONDS, self._is_slow, decision)
        write = partial(self._write_soon, decision, pod, slow)
        if self._how.more is None or self._how.more.prepare(decision, write):
            write()

    def hurries(self) -> bool:
        """Whether placements are on their way that the API server may still answer at once."""
        return bool(self._young)

    def _is_slow(self, decision: Assignment) -> None:
        self._young.discard(decision.pod)
        self._state.changes.touch(decision.job)

    def _write_soon(self, decision: Assignment, pod: Pod, slow: asyncio.TimerHandle) -> None:
        self._todo.append((decision, pod, slow))
        self._ready.release()

    async def run(self) -> NoReturn:
        """Work for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._how.concurrency):
                group.create_task(self._worker())
        raise AssertionError("workers do not end")

    async def _worker(self) -> NoReturn:
        while True:
            await self._ready.acquire()
            decision, pod, slow = self._todo.popleft()
            started = self._clock()
            try:
                await self._carry_out(decision, pod)
            except errors.NotLeader:
                raise
            except Exception:
                # A mistake of ours about one pod must not stop all others. What became of the
                # write is not known, so its GPUs stay charged until the watch tells.
                self.results["unexpected"] += 1
                unexpected("binder", f"{decision.pod} on {decision.node}")
            slow.cancel()
            self._young.discard(decision.pod)
            self._gangs.writes.settle(decision.job)
            self._unsettled -= 1
            if not self._unsettled:
                self.idle.set()
            self._how.observe_seconds(self._clock() - started)

    async def _carry_out(self, decision: Assignment, pod: Pod) -> None:
        for left in reversed(range(_AT_ONCE)):
            changed = await self._try(decision, pod, last=not left)
            if changed is None:
                return
            pod = changed

    async def _try(self, decision: Assignment, pod: Pod, *, last: bool) -> Pod | None:
        """One write and what became of it; the pod as it is now when that is to be tried again."""
        gang = self._gangs.writes.of(decision.job)
        if gang is not None and gang.failure:
            return await self._resolve(decision, pod, _Failure("released"))
        try:
            write = self._write(decision, pod)
        except NotPlaceableError as error:
            log.info("not placed: %s", error)
            failure = _Failure("not_placeable", refused=str(error))
            return await self._resolve(decision, pod, failure)
        except Exception as error:  # nothing was written: it is tried again, elsewhere or later
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            unexpected("binder", f"{name} on {decision.node}")
            failure = _Failure("unexpected", refused=repr(error))
            return await self._resolve(decision, pod, failure)
        try:
            await send(self._client, write)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            raced = isinstance(error, errors.Conflict | errors.NotFound | errors.Unprocessable)
            if fenced := refuses_term(error):
                self._leader_term.doubt()
            again = isinstance(error, errors.Conflict) and not last
            # Of a pod that is there after all, "no such pod" says nothing that would stay so.
            gone = isinstance(error, errors.NotFound)
            refused = errors.final(error) and not (fenced or gone)
            if not again:
                log.log(
                    logging.INFO if raced and not fenced else logging.WARNING,
                    "placing %s/%s on %s: %s",
                    pod.metadata.namespace,
                    pod.metadata.name,
                    decision.node,
                    error,
                )
            failure = _Failure(
                "fenced" if fenced else "raced" if raced else "failed",
                refused=str(error) if refused else "",
                later=None if refused or fenced or again else error,
                unknown=error.maybe_applied,
                again=again,
            )
            return await self._resolve(decision, pod, failure)
        self._placed(decision, pod)
        return None

    def _write(self, decision: Assignment, pod: Pod) -> Write:
        hostname = ""
        if self._how.pin is Pin.HOSTNAME:
            hostname = self._state.nodes.labels(decision.node).get(HOSTNAME_LABEL, "")
        known = self._state.ledger.node(decision.node)
        by_device = {d.id: d.context_mib for d in known[1] if d.context_mib} if known else {}
        more = {
            **contexts(decision.devices, by_device),
            **(self._how.more.annotations(decision) if self._how.more is not None else {}),
            TERM: self._leader_term.text,
        }
        return place(
            pod, decision.node, decision.devices, pin=self._how.pin, hostname=hostname, more=more
        )

    async def _resolve(self, decision: Assignment, pod: Pod, failure: _Failure) -> Pod | None:
        """Find out what became of a decision whose write failed, and act on that.

        Args:
            decision: what was to be carried out.
            pod: the pod that the write was made for.
            failure: of the write.

        Returns:
            The pod as it is now, if its write is to be tried again.
        """
        meta, later = pod.metadata, failure.later
        result, unknown = failure.result, failure.unknown
        times = 0 if result in ("failed", "fenced") else -1  # … at once
        while True:
            await asyncio.sleep(_LOOK_AGAIN.delay_seconds(times) if times >= 0 else 0.0)
            times += 1
            try:
                now = await (self._touch(meta) if unknown else self._read(meta))
            except errors.NotLeader:
                raise
            except errors.NotFound:
                self._take_back(decision, None, "gone")
                return None
            except errors.ApiError as error:
                if errors.final(error):
                    times = max(times, _SELDOM)
                continue
            unknown = False
            if now.metadata.uid != meta.uid or decision.pod not in self._state.pods.known:
                # Another pod of that name, or the watch has told the end of this one already.
                self._take_back(decision, None, "gone")
                return None
            seen = self._state.pod_changed(now)
            if decision.pod not in self._state.decisions.assumed:
                if self._state.pods.known[decision.pod].node:
                    self._placed(decision, pod)
                else:
                    self.results["gone"] += 1
                    self._not_placed(decision, "gone")
                return None
            if seen is None:
                continue  # older than what the watch has shown: too old to go by
            if failure.again and slim(now).spec == slim(pod).spec and not obstacle(now):
                self.results[result] += 1
                return now
            if failure.refused and seen.stage is Stage.WAITING:
                self._refused(decision, seen.name, failure.refused)
            elif later is not None and seen.stage is Stage.WAITING:
                self._failures.note(decision.pod, later)
                if not self._failures.may_try(decision.pod):
                    avoid = self._state.waiting.avoid
                    avoid(decision.job, decision.node, self._clock(), _LATER_SECONDS, str(later))
            self._take_back(decision, now, result)
            return None

    def _refused(self, decision: Assignment, name: str, why: str) -> None:
        """Another node may do, so that is tried first; then the job as a whole waits."""
        gang = self._gangs.writes.of(decision.job) is not None
        seconds = self._how.recheck_seconds * (_GANG_AVOIDS if gang else _AVOIDS)
        until = doubt(
            self._state,
            decision.job,
            FailedStart(
                self._clock(),
                f"pod {name} was refused its place on {decision.node}: {why}",
                delays=elsewhere_first(Backoff(self._how.recheck_seconds, MOST_SECONDS)),
            ),
        )
        self._state.waiting.avoid(decision.job, decision.node, until, seconds)

    async def _read(self, pod: Meta) -> Pod:
        return await self._client.get(pod_path(pod.namespace, pod.name), Pod)

    async def _touch(self, pod: Meta) -> Pod:
        """The pod, changed: from now on a write for an earlier version of it is refused."""
        write = touch(pod, f"{self._leader_term.text}/{next(self._touches)}")
        try:
            return await self._client.merge_patch(write.path, write.body, Pod)
        except errors.Unprocessable:
            now = await self._read(pod)
            if now.metadata.uid == pod.uid:
                raise  # somebody's policy, which says nothing about the pod
            return now  # another pod of that name

    def _take_back(self, decision: Assignment, pod: Pod | None, result: str) -> None:
        self.results[result] += 1
        self._state.forget(decision.pod, pod)
        self._not_placed(decision, result)

    def _placed(self, decision: Assignment, pod: Pod) -> None:
        self.results["placed"] += 1
        self._failures.over(decision.pod)
        self._how.placed(decision, pod)
        gang = self._gangs.writes.of(decision.job)
        if gang is None:
            return
        gang.placed.append(decision.pod)
        if gang.failure:
            self._gangs.placement_failed(decision.job, gang.failure, gang.placed)

    def _not_placed(self, decision: Assignment, result: str) -> None:
        gang = self._gangs.writes.of(decision.job)
        if gang is None or gang.failure:
            return
        gang.failure = f"a pod could not be placed on {decision.node} ({result})"
        self._gangs.placement_failed(decision.job, gang.failure, gang.placed)
