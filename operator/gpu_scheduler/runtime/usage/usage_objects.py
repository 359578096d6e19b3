"""GPUUsage: one object in each namespace that has, or of late had, work with GPUs.

Looked at once a minute, written where a figure moved, a few at a time. After a change of leader the
objects themselves say what ended and how the curves went on; sums come from the agents again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from gpu_scheduler.api.gpuusage import (
    MOST_BYTES,
    MOST_WORKLOADS,
    NAME,
    GPUUsageStatus,
    Workload,
)
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.listing import parts
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.usage.curve import RankCurves
from gpu_scheduler.runtime.usage.kept_work import Advised, KeptWork
from gpu_scheduler.runtime.usage.usage_writes import GPUUSAGES, NamespaceGoneError, UsageWrites
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.usage.answer import Totals

log = logging.getLogger(__name__)

_KEPT_SECONDS = 7 * 86400.0
_SHORT_SECONDS = 600.0  # what ended sooner is left out before what ran for longer
_MOST_LEFT_OUT = 100_000
_WRITTEN_SECONDS = 600.0  # after which the sums of what ended stand in its object and status
_AT_ONCE = 8
_TRY_AGAIN_SECONDS = 30.0
_SAID_EVERY = 120  # tries, an hour of them: a kind that is missing is missing for long


class WorkSums(Protocol):
    """Of a work since it began, by key."""

    def sums(self, work: str) -> Totals:
        """Of all its shares."""

    def by_role(self, work: str) -> Mapping[str, Totals]:
        """The same by role, where it has some."""


Advisor = Callable[[LiveWork, float], Advised | None]


class UsageObjects:
    """Writes them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        terminating: Iterable[str],
        over: Callable[[KeptWork, str], bool],
    ) -> None:
        """Know nothing yet.

        Args:
            client: fenced by the Lease.
            clock: of this process.
            terminating: namespaces in which nothing can be made.
            over: whether work that holds no GPUs in a namespace gets none any more.
        """
        self._client = client
        self._clock = clock
        self._terminating = terminating
        self._over = over
        self._kept: dict[str, dict[str, KeptWork]] = {}  # by namespace and key
        self._written: dict[str, Mapping[str, Any]] = {}  # by namespace, without the time
        self._left_out: dict[str, list[float]] = {}  # by namespace, when each ended
        self._failures: Failures[str] = Failures(clock.monotonic)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._writes = UsageWrites(client, NAME)

    @property
    def writes(self) -> int:
        """Requests that wrote."""
        return self._writes.count

    async def restore(self) -> None:
        """Read what a leader before this one wrote; until then nothing is overwritten."""
        tries = 0
        while True:
            try:
                async for part in parts(self._client, of_group(GROUP, VERSION, GPUUSAGES)):
                    for raw in part.objects:
                        self._take(orjson.loads(bytes(raw)))
                if tries:
                    log.info("GPUUsages can be read again")
                return
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if tries % _SAID_EVERY == 0:
                    log.warning("GPUUsages cannot be read, so none is written: %s", error)
            tries += 1
            await asyncio.sleep(_TRY_AGAIN_SECONDS)

    def _take(self, body: Mapping[str, Any]) -> None:
        meta, status = body["metadata"], body.get("status") or {}
        if meta["name"] != NAME:
            return
        namespace = meta["namespace"]
        self._writes.uids[namespace] = meta["uid"]
        try:
            found = GPUUsageStatus.model_validate(status)
        except ValidationError as error:
            log.warning("GPUUsage of %s: what it says is no status of ours: %s", namespace, error)
            return
        self._written[namespace] = _without_time(status)
        self._left_out[namespace] = [self._clock.now()] * min(found.omitted, _MOST_LEFT_OUT)
        for shown in found.workloads:
            self._kept.setdefault(namespace, {})[_key(namespace, shown)] = KeptWork.of(shown)

    def held(self) -> Iterator[tuple[str, Workload]]:
        """What held GPUs when the objects were written last, by key."""
        for there in self._kept.values():
            yield from ((key, kept.shown) for key, kept in there.items() if kept.shown.pods)

    async def update(
        self, works: Mapping[str, LiveWork], sums: WorkSums, told: Advisor
    ) -> list[str]:
        """Take over a minute; what has ended in it.

        Args:
            works: what holds GPUs now, by key.
            sums: of all shares of a work since it began, those that have ended too.
            told: what to change about work.
        """
        now = self._clock.now()
        over: list[str] = []
        async for key, work in in_pieces(works.items()):
            there = self._kept.setdefault(work.namespace, {})
            kept = there.get(key)
            if kept is None:
                kept = there[key] = KeptWork.begin(work, now)
            kept.update(work, sums.sums(key), told(work, now), now)
            kept.by_role(sums.by_role(key))
        async for namespace, there in in_pieces(self._kept.items()):
            for key, kept in tuple(there.items()):
                if key in works:
                    continue
                if not kept.ended and self._over(kept, namespace):
                    kept.end(sums.sums(key), now)
                    kept.by_role(sums.by_role(key))
                    over.append(key)
                elif not kept.ended:
                    kept.rest()
                elif now - kept.ended > _KEPT_SECONDS:
                    del there[key]
        return over

    def kept(self, namespace: str, key: str) -> Workload | None:
        """What the object says, or is about to say, of a workload; None: nothing."""
        known = self._kept.get(namespace, {}).get(key)
        return known.shown if known is not None else None

    def ranks(self, namespace: str, key: str) -> RankCurves | None:
        """How each pod of a gang used its GPUs, as this leader saw it; None: it is no gang."""
        known = self._kept.get(namespace, {}).get(key)
        return known.ranks if known is not None and known.ranks.points else None

    def lately(self) -> set[str]:
        """Keys of work that may get GPUs again, or whose end may still be written."""
        since = self._clock.now() - _WRITTEN_SECONDS
        return {
            key
            for there in self._kept.values()
            for key, kept in there.items()
            if not kept.ended or kept.ended > since
        }

    async def write(self) -> None:
        """Write what moved.

        Raises:
            NotLeader: the fence has closed.
        """
        stamp = self._clock.stamp()
        due = []
        for namespace in tuple(self._kept):
            if namespace in self._terminating or not self._failures.may_try(namespace):
                continue
            body = await self._body(namespace)
            if body != self._written.get(namespace, {}):
                due.append(self._once(namespace, body, stamp))
            await asyncio.sleep(0)
        await asyncio.gather(*due)

    async def _body(self, namespace: str) -> Mapping[str, Any]:
        """Of the object; what ended long ago and has no room in it is remembered as a number."""
        there, now = self._kept[namespace], self._clock.now()
        async for kept in in_pieces(there.values()):
            kept.told()
        known = [at for at in self._left_out.get(namespace, ()) if now - at <= _KEPT_SECONDS]
        body, rest = status_of(there.values(), len(known))
        for kept in rest:
            if kept.ended and now - kept.ended > _WRITTEN_SECONDS:
                there.pop(_key(namespace, kept.shown), None)
                known.append(kept.ended)
        self._left_out[namespace] = known[-_MOST_LEFT_OUT:]
        return body

    async def _once(self, namespace: str, body: Mapping[str, Any], stamp: str) -> None:
        try:
            async with self._slots:
                await self._write(namespace, body, stamp)
            self._failures.over(namespace)
        except errors.NotLeader:
            raise
        except NamespaceGoneError:
            self._forget(namespace)
        except errors.ApiError as error:
            if self._failures.note(namespace, error):
                log.warning("GPUUsage of %s not written: %s", namespace, error)
        except Exception:
            unexpected("usage", namespace)

    def _forget(self, namespace: str) -> None:
        """The namespace is gone, and who might have asked."""
        for known in (self._kept, self._written, self._left_out, self._writes.uids):
            known.pop(namespace, None)
        self._failures.over(namespace)

    async def _write(self, namespace: str, body: Mapping[str, Any], stamp: str) -> None:
        await self._writes.write(namespace, {**body, "observedAt": stamp})
        self._written[namespace] = body


def status_of(
    works: Iterable[KeptWork], left_out: int = 0
) -> tuple[Mapping[str, Any], Sequence[KeptWork]]:
    """What the object of a namespace says, and what does not fit: the least.

    ``left_out``: how many did not fit before, and are not known any more.
    """
    order = sorted(works, key=_matters)
    shown: list[Mapping[str, Any]] = []
    size = 0
    for kept in order:
        body, bytes_of = kept.told()
        size += bytes_of + 1
        if size > MOST_BYTES or len(shown) == MOST_WORKLOADS:
            break
        shown.append(body)
    held = sum(kept.shown.gpus for kept in order if kept.shown.state == "Running")
    rest = order[len(shown) :]
    omitted = len(rest) + left_out
    return {"gpus": round(held, 3), "workloads": shown, "omitted": omitted}, rest


def _matters(kept: KeptWork) -> tuple[bool, bool, float, float]:
    """What runs first; of what ended, trials of a minute after all that ran for longer."""
    return bool(kept.ended), kept.seconds < _SHORT_SECONDS, -kept.ended, -kept.shown.gpus


def _key(namespace: str, shown: Workload) -> str:
    return shown.uid or f"{namespace}/{shown.kind.lower()} {shown.name}"


def _without_time(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in status.items() if key != "observedAt"}
