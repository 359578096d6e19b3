"""The results ConfigMaps: what is known of a sweep's trials, one object for each segment.

Outcomes are gathered and written at most once per ``seconds`` and segment, so their number does not
grow with that of the trials. Read once, when a sweep is first looked at. They belong to the
GPUJob and go with it; whatever bears such a name and is somebody else's is left alone.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Container
from typing import Any, NoReturn

import msgspec

from gpu_scheduler.api.names import LABEL_JOB, RESULTS_KEY, results_name
from gpu_scheduler.core.sweeps.rows import BadRowsError, Header, decode, encode
from gpu_scheduler.core.sweeps.segments import Segment
from gpu_scheduler.jobs.owner import owner_reference
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.sweeps.record import Sweep, Sweeps

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_IN_FLIGHT = 8
_MOST_MISSING = 10  # segments in a row that nobody has stored, before those that have a Job
_REMEMBERED = 1000  # segments, before those of deleted sweeps are forgotten
_AGAIN_SECONDS = 30.0  # when something of somebody else is in the way


class ConfigMap(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap."""

    metadata: Meta = Meta()
    data: dict[str, str] = {}


class Results:
    """Reads and writes the results of all sweeps."""

    def __init__(
        self,
        client: Client,
        sweeps: Sweeps,
        *,
        seconds: float,
        clock: Callable[[], float],
        terminating: Container[str] = (),
    ) -> None:
        """Prepare.

        Args:
            client: for the look-ups and writes.
            sweeps: whose results they are.
            seconds: least time between two writes of one segment.
            clock: monotonic seconds.
            terminating: namespaces that are being deleted, in which nothing can be made.
        """
        self._terminating = terminating
        self._client, self._sweeps, self._seconds, self._clock = client, sweeps, seconds, clock
        self._stored: dict[tuple[str, int], str] = {}  # sweep, segment -> uid of the ConfigMap
        self._due: dict[tuple[str, int], float] = {}  # not before, monotonic seconds
        self._busy: set[tuple[str, int]] = set()
        self._slots = asyncio.Semaphore(_IN_FLIGHT)
        self.counts: Counter[str] = Counter()
        """``written`` and ``failed``, since the start."""

    async def load(self, sweep: Sweep) -> None:
        """Put what is stored into the sweep's table.

        Raises:
            ApiError: the API server could not be asked; nothing was changed.
        """
        found, number, missing = [], 0, 0
        while True:
            name = results_name(sweep.name, number)
            stored = await self._get(sweep, name)
            later = [segment.number for segment in sweep.segments if segment.number > number]
            if stored is not None:
                missing = 0
                self._stored[sweep.uid, number] = stored.metadata.uid
                found.append((name, stored.data.get(RESULTS_KEY, "")))
            elif not later:
                break
            else:
                missing += 1
            number = number + 1 if missing < _MOST_MISSING or not later else min(later)
        for name, text in found:
            self._restore(sweep, name, text)
        sweep.loaded = True

    async def run(self) -> NoReturn:
        """Write for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(_TICK_SECONDS)
                sweeps = self._sweeps.all()
                if len(self._due) > _REMEMBERED:
                    self._forget({sweep.uid for sweep in sweeps})
                for sweep in sweeps:
                    try:
                        due = self._due_segments(sweep)
                    except Exception:
                        unexpected("results", sweep.key)
                        continue
                    for segment in due:
                        group.create_task(self._write(sweep, segment))
        raise AssertionError("the loop does not end")

    def _restore(self, sweep: Sweep, name: str, text: str) -> None:
        try:
            _, outcomes = decode(text)
        except BadRowsError as error:
            log.error("%s: ConfigMap %s cannot be read: %s", sweep.key, name, error)
            return
        for outcome in outcomes:
            if outcome.trial < sweep.completions:  # what we wrote: trials only become more
                sweep.restore(outcome)

    def _forget(self, uids: set[str]) -> None:
        self._stored = {k: uid for k, uid in self._stored.items() if k[0] in uids}
        self._due = {k: at for k, at in self._due.items() if k[0] in uids}

    def _due_segments(self, sweep: Sweep) -> list[Segment]:
        if not sweep.loaded or not sweep.dirty or sweep.namespace in self._terminating:
            return []
        now = self._clock()
        return [
            segment
            for segment in sweep.segments
            if segment.number in sweep.dirty
            and (sweep.uid, segment.number) not in self._busy
            and self._due.get((sweep.uid, segment.number), now) <= now
        ]

    async def _write(self, sweep: Sweep, segment: Segment) -> None:
        key = (sweep.uid, segment.number)
        self._busy.add(key)
        try:
            async with self._slots:
                # Everything until the request is sent happens at once: later news are dirt again.
                sweep.dirty.discard(segment.number)
                self._due[key] = self._clock() + self._seconds
                await self._send(sweep, segment)
                self.counts["written"] += 1
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            self.counts["failed"] += 1
            log.warning("results of %s, segment %d: %s", sweep.key, segment.number, error)
            sweep.dirty.add(segment.number)
        except Exception:  # a mistake of ours about one sweep must not stop all others
            self.counts["failed"] += 1
            unexpected("results", f"{sweep.key}, segment {segment.number}")
            sweep.dirty.add(segment.number)
        finally:
            self._busy.discard(key)

    async def _send(self, sweep: Sweep, segment: Segment) -> None:
        name, key = results_name(sweep.name, segment.number), (sweep.uid, segment.number)
        data = {RESULTS_KEY: text_of(sweep, segment)}
        uid = self._stored.get(key)
        if uid is not None:
            body: dict[str, Any] = {"metadata": {"uid": uid}, "data": data}
            try:
                return await self._client.merge_patch(
                    core("configmaps", sweep.namespace, name), body
                )
            except (errors.NotFound, errors.Conflict, errors.Unprocessable):
                del self._stored[key]  # deleted by hand: it is made anew
        meta = {
            "name": name,
            "namespace": sweep.namespace,
            "labels": {LABEL_JOB: sweep.name},
            "ownerReferences": [owner_reference(sweep.name, sweep.uid)],
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        try:
            made = await self._client.create(core("configmaps", sweep.namespace), body, ConfigMap)
            self._stored[key] = made.metadata.uid
        except errors.Conflict:
            found = await self._get(sweep, name)
            if found is None:
                self._due[key] = self._clock() + _AGAIN_SECONDS
                raise
            self._stored[key] = found.metadata.uid
            sweep.dirty.add(segment.number)

    async def _get(self, sweep: Sweep, name: str) -> ConfigMap | None:
        """The ConfigMap of this name, if it is this sweep's."""
        path = core("configmaps", sweep.namespace, name)
        try:
            found = await self._client.get(path, ConfigMap)
        except errors.NotFound:
            return None
        ours = any(owner.uid == sweep.uid for owner in found.metadata.owner_references)
        return found if ours else None


def text_of(sweep: Sweep, segment: Segment) -> str:
    """What is stored of a segment."""
    objective = sweep.objective
    header = Header(
        segment.number,
        (objective.metric, *objective.also) if objective is not None else (),
        sweep.search.names if sweep.search.adaptive else (),
    )
    known = (sweep.table.get(trial) for trial in range(segment.first, segment.end))
    return encode(header, (outcome for outcome in known if outcome is not None))
