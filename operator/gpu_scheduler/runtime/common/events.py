"""Events on users' objects: what ``kubectl describe`` shows under Events.

The same (object, reason, message) is written once per ten minutes, as far as the last 10,000 go;
events are a courtesy, so one that cannot be written is dropped, and of a namespace in which
thousands of jobs begin to wait only the first are told that nothing is wrong with them: the status
of each says it. Source: the core/v1 Event API.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Literal, NoReturn

from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.bounded import digest
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord

log = logging.getLogger(__name__)

_REPEAT_SECONDS = 600.0
_REMEMBERED = 10_000
_NORMAL_PER_SECOND, _NORMAL_AT_ONCE = 1.0, 60.0  # of a namespace
_MOST_CHARS = 1024  # of a message, as the API server has it
WRITERS, _OF_ONE = 4, 2  # at once, and of one namespace: slow ones hold up no others
_PARTS = 4  # of the events that may wait: one of them any namespace has
COMPONENT = "gpu-scheduler"


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an event is about. An empty namespace: a cluster-scoped object."""

    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of_job(cls, job: GPUJobRecord) -> "InvolvedObject":
        """A GPUJob."""
        return cls("GPUJob", job.namespace, job.name, job.uid)

    @classmethod
    def of_pod(cls, pod: PodRecord) -> "InvolvedObject":
        """A pod, for what concerns one without a GPUJob."""
        return cls("Pod", pod.namespace, pod.name, pod.uid)


_Event = tuple[InvolvedObject, str, str, str]


class Events:
    """Writes events in the background."""

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        clock: Callable[[], float],
        terminating: Container[str] = (),
        limit: int = 1000,
        now: Callable[[], str] = utc_now,
    ) -> None:
        """Prepare.

        Args:
            client: for the writes.
            instance: who reports.
            clock: monotonic seconds.
            terminating: namespaces that are being deleted, in which no event can be made.
            limit: events that may wait to be written.
            now: RFC 3339; dates them.
        """
        self._terminating = terminating
        self._client = client
        self._instance = instance
        self._clock = clock
        self._now = now
        self._queue: Turns[str, _Event] = Turns(_OF_ONE)
        self._waiting: Counter[str] = Counter()  # by namespace
        self._limit = limit
        self._some = asyncio.Event()
        self._failures: Failures[tuple[str, str]] = Failures(clock, first_seconds=0.0)
        self._said: dict[bytes, float] = {}
        self._normal: RateLimiter[str] = RateLimiter(_NORMAL_PER_SECOND, _NORMAL_AT_ONCE)

    def say(
        self, subject: InvolvedObject, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Report once; dropped when too many wait or it was said a moment ago."""
        if subject.namespace in self._terminating:
            return
        message = clip(message, _MOST_CHARS)
        key, now = digest(subject.uid, reason, message), self._clock()
        if now - self._said.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        if self._is_full(subject.namespace):
            return
        if kind == "Normal" and not self._normal.spend(subject.namespace, now):
            return
        self._said.pop(key, None)
        self._said[key] = now  # the last, as the latest
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
        self._queue.add(subject.namespace, (subject, kind, reason, message))
        self._waiting[subject.namespace] += 1
        self._some.set()

    def _is_full(self, namespace: str) -> bool:
        """Who has little that waits may add to it where another namespace has taken all."""
        waiting, all_of_them = self._waiting[namespace], self._waiting.total()
        least = self._limit // _PARTS
        return all_of_them >= (self._limit if waiting >= least else 2 * self._limit)

    async def run(self) -> NoReturn:
        """Write events for ever; several may do so at once."""
        while True:
            while (taken := self._queue.take()) is None:
                self._some.clear()
                await self._some.wait()
            namespace, event = taken
            self._waiting[namespace] -= 1
            if not self._waiting[namespace]:
                del self._waiting[namespace]
            try:
                await self.write(*event)
            finally:
                self._queue.done(namespace)
                self._some.set()

    async def write(
        self, subject: InvolvedObject, kind: str, reason: str, message: str, *, at: str = ""
    ) -> None:
        """Write one now, for whoever keeps a queue of their own; dropped where that fails.

        ``at``: when it happened, RFC 3339; by default now.
        """
        if subject.namespace in self._terminating:
            return
        if not self._failures.may_try((subject.namespace, reason)):
            return
        try:
            await self._write(subject, kind, reason, message, at or self._now())
        except errors.NotLeader:
            raise
        except Exception:
            unexpected("events", f"{reason} on {subject.kind} {subject.name}")

    async def _write(
        self, subject: InvolvedObject, kind: str, reason: str, message: str, now: str
    ) -> None:
        namespace = subject.namespace or "default"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{subject.name[:200]}.{secrets.token_hex(8)}"},
            "involvedObject": {
                "apiVersion": "v1" if subject.kind in ("Node", "Pod") else API_VERSION,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": kind,
            "reason": reason,
            "message": clip(message, _MOST_CHARS),
            "source": {"component": COMPONENT, "host": self._instance},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._client.create(core("events", namespace), body)
            self._failures.over((subject.namespace, reason))
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if self._failures.note((subject.namespace, reason), error):
                log.info("event %s on %s not written: %s", reason, subject.name, error)
