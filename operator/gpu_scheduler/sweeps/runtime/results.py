"""The results ConfigMaps: what is known of a sweep's trials, one object for each segment.

Outcomes are gathered and written at most once per ``seconds`` and segment, so their number does not
grow with that of the trials. Read once, when a sweep is first looked at. They belong to the
GPUJob and go with it; whatever bears such a name and is somebody else's is left alone.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import Any, NoReturn

import msgspec

from gpu_scheduler.api.names import LABEL_JOB, RESULTS_KEY, results_name
from gpu_scheduler.api.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.owner import owner_reference
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures, LastWords
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.sweeps.core.rows import BadRowsError, Header, decode, encode
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_IN_FLIGHT = 8
_MOST_MISSING = 10  # segments in a row that nobody has stored, before those that have a Job
_REMEMBERED = 1000  # segments, before those of deleted sweeps are forgotten
_AGAIN_SECONDS = 30.0  # when something of somebody else is in the way


_LOOK_SECONDS = 1.0  # between two ConfigMaps that are looked at, of all sweeps

_Key = tuple[str, int]  # uid of a sweep, number of a segment


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
        refused: Callable[[JobKey, str], None] = lambda key, why: None,
    ) -> None:
        """Prepare.

        Args:
            client: for the look-ups and writes.
            sweeps: whose results they are.
            seconds: least time between two writes of one segment.
            clock: monotonic seconds.
            terminating: namespaces that are being deleted, in which nothing can be made.
            refused: told of a sweep whose results the API server refuses, and why.
        """
        self._terminating = terminating
        self._refused = refused
        self._client = client
        self._sweeps = sweeps
        self._seconds = seconds
        self._clock = clock
        self._stored: dict[_Key, str] = {}  # uid of the ConfigMap; looked at in turn
        self._rows: dict[_Key, range] = {}  # trials that were read from it
        self._due: dict[_Key, float] = {}  # not before, monotonic seconds
        self._failures: Failures[_Key] = Failures(clock, first_seconds=seconds)
        self._busy: set[_Key] = set()
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
                found.append((number, stored.data.get(RESULTS_KEY, "")))
            elif not later:
                break
            else:
                missing += 1
            number = number + 1 if missing < _MOST_MISSING or not later else min(later)
        for read, text in found:
            self._restore(sweep, read, text)
        sweep.loaded = True

    async def run(self) -> NoReturn:
        """Write for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_for_ever())
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

    def _restore(self, sweep: Sweep, number: int, text: str) -> None:
        name = results_name(sweep.name, number)
        try:
            _, outcomes = decode(text)
        except BadRowsError as error:
            log.error("%s: ConfigMap %s cannot be read: %s", sweep.key, name, error)
            sweep.dirty.add(number)
            return
        # What we wrote: trials only become more.
        ours = [outcome for outcome in outcomes if outcome.trial < sweep.completions]
        for outcome in ours:
            sweep.restore(outcome)
        trials = [outcome.trial for outcome in ours]
        if trials:
            self._rows[sweep.uid, number] = range(min(trials), max(trials) + 1)

    def keep(self, sweep: Sweep, trials: Iterable[int]) -> None:
        """Have trials stored again whose Job is gone: as if no segment had been cut short."""
        for trial in trials:
            if sweep.segments.of(trial) is None:
                key = (sweep.uid, trial // SEGMENT_TRIALS)
                rows = self._rows.get(key, range(trial, trial + 1))
                self._rows[key] = range(min(rows.start, trial), max(rows.stop, trial + 1))
                sweep.dirty.add(key[1])

    def _forget(self, uids: set[str]) -> None:
        self._stored = {k: uid for k, uid in self._stored.items() if k[0] in uids}
        self._due = {k: at for k, at in self._due.items() if k[0] in uids}
        self._rows = {k: rows for k, rows in self._rows.items() if k[0] in uids}

    def _due_segments(self, sweep: Sweep) -> list[Segment]:
        if not sweep.loaded or not sweep.dirty or sweep.namespace in self._terminating:
            return []
        now = self._clock()
        found = (self._segment(sweep, number) for number in sorted(sweep.dirty))
        return [
            segment
            for segment in found
            if segment is not None
            and (sweep.uid, segment.number) not in self._busy
            and self._due.get((sweep.uid, segment.number), now) <= now
            and self._failures.may_try((sweep.uid, segment.number))
        ]

    def _segment(self, sweep: Sweep, number: int) -> Segment | None:
        """A segment by its Job or, where that is gone, by the rows that were read."""
        known = next((each for each in sweep.segments if each.number == number), None)
        rows = self._rows.get((sweep.uid, number))
        if known is not None or rows is None:
            return known
        return Segment(number, rows.start, len(rows))

    async def _look_for_ever(self) -> NoReturn:
        unread = LastWords(self._clock)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for key in [k for k in tuple(self._stored) if self._sweeps.by_uid(k[0]) is None]:
                del self._stored[key]
            if not self._stored:
                continue
            key = next(iter(self._stored))
            self._stored[key] = self._stored.pop(key)  # the last in line
            try:
                await self._look(key)
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if unread.news(error):
                    log.info("results of sweep %s, segment %d: %s", *key, error)
            except Exception:
                unexpected("results", f"segment {key[1]}")

    async def _look(self, key: _Key) -> None:
        """Have what somebody deleted or changed written again: no watch tells of it."""
        sweep, number = self._sweeps.by_uid(key[0]), key[1]
        if sweep is None or not self._settled(sweep, number):
            return
        name = results_name(sweep.name, number)
        stored = await self._get(sweep, name)
        segment = self._segment(sweep, number)
        if segment is None or not self._settled(sweep, number):
            return  # it is written anyway
        if stored is None:
            self._stored.pop(key, None)
        elif stored.data.get(RESULTS_KEY) == text_of(sweep, segment):
            return
        log.warning("%s: ConfigMap %s was deleted or changed: writing it again", sweep.key, name)
        sweep.dirty.add(number)

    def _settled(self, sweep: Sweep, number: int) -> bool:
        """Whether all that is known of a segment was written."""
        unwritten = number in sweep.dirty or (sweep.uid, number) in self._busy
        return sweep.loaded and not unwritten and sweep.namespace not in self._terminating

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
                self._failures.over(key)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            self.counts["failed"] += 1
            if self._failures.note(key, error):
                log.warning("results of %s, segment %d: %s", sweep.key, segment.number, error)
                if errors.final(error):
                    self._refused(sweep.key, str(error))
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
