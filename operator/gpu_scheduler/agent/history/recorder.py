"""Writes what was seen into the rings: a row every ten seconds, and what ten minutes leave.

Fed with every look at the devices, in their thread. What goes wrong with the disk costs the history
alone: it is said once, tried again after a minute, and until then the leader is told nothing.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gpu_scheduler.agent.container_host import ContainerHostUse
from gpu_scheduler.agent.history.answering import Answering
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import HistoryError, HistoryFile
from gpu_scheduler.agent.history.rows import Row, of_containers, of_devices
from gpu_scheduler.agent.history.slot import LOOKS, LOOKS_OF_STEP, RingOwner
from gpu_scheduler.agent.ledger import MemoryMarks
from gpu_scheduler.agent.sampler import Sample
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

FILE = "history"
_TRY_AGAIN_SECONDS = 60.0
_WHOLE_STEPS = LOOKS // LOOKS_OF_STEP - 1  # whose looks are all there still
HostOf = Callable[[Collection[str], float], Mapping[str, ContainerHostUse]]
MarksOf = Callable[[Collection[ContainerUse]], Mapping[RingOwner, MemoryMarks]]


class Recorder:
    """Opens the history when it is first needed; not to be called from two threads."""

    def __init__(
        self,
        folder: Path,
        megabytes: int,
        clock: HistoryClock,
        host_of: HostOf,
        marks_of: MarksOf = lambda uses: {},
    ) -> None:
        """Prepare.

        Args:
            folder: on the node, ours alone.
            megabytes: that the file takes.
            clock: of the history.
            host_of: what containers, by their ids, use of the node.
            marks_of: what ledgers say of shares.
        """
        self._path = folder / FILE
        self._megabytes = megabytes
        self._clock = clock
        self._host_of = host_of
        self._marks_of = marks_of
        self._refused: dict[RingOwner, int] = {}  # as the ledgers said last
        self.file: HistoryFile | None = None
        self.without_ring = 0
        """Containers at the last look for which there was no ring left."""
        self.answering = Answering()
        """What the leader is answered."""
        self._look = self._step = -1
        self._peaks: dict[RingOwner, float] = {}  # MiB, since the last row
        self._try_at = float("-inf")
        self._problem = ""  # for which none is kept

    def take(self, sample: Sample, uses: Collection[ContainerUse], now: float) -> None:
        """Keep a look at the devices; ``now``: monotonic seconds."""
        if sample.problem is not None or now < self._try_at:
            return
        try:
            self._take(sample, uses, now)
        except (OSError, HistoryError) as error:
            self._fails(error)
        except Exception as error:
            unexpected("history", self._path)
            self._fails(error)
        else:
            return
        self._try_at = now + _TRY_AGAIN_SECONDS

    def close(self) -> None:
        """Let go of the file."""
        if self.file is not None:
            self.file.close()
        self.file = None
        self._look = self._step = -1
        self._peaks = {}

    def _fails(self, error: Exception) -> None:
        said = f"{self._path}: {error.strerror}" if isinstance(error, OSError) else str(error)
        if said != self._problem:
            log.warning("no history is kept: %s; tried every %g s", said, _TRY_AGAIN_SECONDS)
        self._problem = said
        self.answering.fails(f"no history is kept: {said}")
        self.close()

    def _take(self, sample: Sample, uses: Collection[ContainerUse], now: float) -> None:
        rows = of_devices(sample, uses)
        for owner, row in rows.items():
            if (memory := row.values.get("memoryMiB")) is not None:
                self._peaks[owner] = max(self._peaks.get(owner, 0.0), memory)
        if self.file is None:
            self.file = HistoryFile(self._path, self._megabytes, self._clock)
            self._look = self.file.marked_look
        look = self.file.look()
        if look == self._look:
            return
        hosts = self._host_of([each.container.own.id for each in uses], now)
        self._note_marks(self._marks_of(uses), rows)
        self._write(self.file, look, rows | of_containers(uses, hosts))
        self.answering.update(self.file, sample, uses, hosts, now)
        if self._problem:
            log.info("the history goes on: %s", self._path)
            self._problem = ""

    def _note_marks(
        self, marks: Mapping[RingOwner, MemoryMarks], rows: dict[RingOwner, Row]
    ) -> None:
        """Put what the ledgers say to what was seen."""
        refused: dict[RingOwner, int] = {}
        for owner, mark in marks.items():
            row = rows.get(owner)
            if row is None:
                continue
            values = dict(row.values)
            if mark.refused is not None:
                refused[owner] = mark.refused
                more = mark.refused - self._refused.get(owner, mark.refused)
                values["refused"] = max(more, 0)
            rows[owner] = Row(values, row.share, mark.peak_mib or 0)
        self._refused = refused

    def _write(self, file: HistoryFile, look: int, rows: Mapping[RingOwner, Row]) -> None:
        self._close_steps(file, look)
        for held in tuple(file.slots()):
            if held.owner is not None and held.owner.container_id and held.owner not in rows:
                file.end(held)
        self.without_ring = 0
        for owner, row in rows.items():
            slot = file.of(owner)
            if slot is None:
                self.without_ring += 1
                continue
            slot.sums.share = row.share
            slot.sums.peak_mib = max(slot.sums.peak_mib, row.peak_mib)
            if row.values:
                slot.add(look, {**row.values, **self._peak(owner, row)})
        file.mark()
        self._peaks = {}
        self._look = look

    def _peak(self, owner: RingOwner, row: Row) -> dict[str, float]:
        peak = self._peaks.get(owner)
        return {} if peak is None else {"memoryMiB": max(peak, row.values.get("memoryMiB") or 0.0)}

    def _close_steps(self, file: HistoryFile, look: int) -> None:
        """Those that have ended since the last look; at the start all whose looks are there."""
        step = look // LOOKS_OF_STEP
        begin = max(self._step if self._step >= 0 else step - _WHOLE_STEPS, step - _WHOLE_STEPS, 0)
        for each in range(begin, step):
            for slot in file.slots():
                if not slot.last or slot.last // LOOKS_OF_STEP >= each:
                    slot.close_step(each)
        self._step = step
