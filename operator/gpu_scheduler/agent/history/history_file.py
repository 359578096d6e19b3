"""The history of a node: one file of rings, made once at its full size.

So a disk that fills up later takes nothing from it. A file that is not ours, or of another version,
is set aside under another name and begun anew. Who needs a ring gets one that is nobody's, else
that of who ended first: of the containers that ran for less than ten minutes while there are any,
so that thousands of short trials push out each other and nobody else. Their sums stay, in one ring
for all of a work's, which is as short as the time from the first of them to the last.
"""

import logging
import os
import stat
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from secrets import randbits
from struct import Struct

from gpu_scheduler.agent.history.columns import RingType
from gpu_scheduler.agent.history.history_clock import MARK_BYTES, HistoryClock
from gpu_scheduler.agent.history.slot import LOOK_SECONDS, LOOKS_OF_STEP, RingOwner, RingSlot

log = logging.getLogger(__name__)

_MAGIC = b"GPUHIST\0"
_VERSION = 3
_HEAD = Struct("<8sIII")  # magic, version, bytes of a ring, rings
_MARKS_AT = (512, 1024)
_SLOTS_AT = 4096


class HistoryError(Exception):
    """There can be no history; the message says why."""


class HistoryFile:
    """An open history. Methods raise ``OSError`` where the disk does."""

    def __init__(self, path: Path, megabytes: int, clock: HistoryClock) -> None:
        """Open it, or begin it.

        Raises:
            HistoryError: it can be neither read nor made.
        """
        self.clock = clock
        self.count = (megabytes * 1_000_000 - _SLOTS_AT) // RingSlot.SIZE
        if self.count < 1:
            raise HistoryError(f"{megabytes} MB hold no ring of {RingSlot.SIZE} bytes")
        try:
            self._fd = _open(path)
        except OSError as error:
            raise HistoryError(f"{path}: {error.strerror}") from None
        try:
            self._begin(path)
        except OSError as error:
            self.close()
            raise HistoryError(f"{path}: {error.strerror}") from None
        self._marked = 0
        self._free: list[RingSlot] = []
        self._slots: dict[RingOwner, RingSlot] = {}
        # A heap of those that have ended; what is not so any more is passed over.
        self._ended: list[tuple[tuple[bool, int], int, RingSlot]] = []
        for number in reversed(range(self.count)):
            slot = RingSlot(self._fd, _SLOTS_AT + number * RingSlot.SIZE)
            if slot.read() and slot.owner is not None and slot.first <= self.look():
                self._slots[slot.owner] = slot
                self._has_ended(slot)
            else:
                self._free.append(slot)

    def look(self) -> int:
        """The number of the look that is now."""
        return int(self.clock.now()) // LOOK_SECONDS

    @property
    def marked_look(self) -> int:
        """The last look that is in it whole: an agent before this one may have kept it just now."""
        return int(self.clock.marked) // LOOK_SECONDS

    def slots(self) -> Iterator[RingSlot]:
        """All rings that are somebody's, ended ones too."""
        yield from self._slots.values()

    def of(self, owner: RingOwner) -> RingSlot | None:
        """The ring of somebody: the one it has, or a new one; None: all rings are of who runs."""
        found = self._slots.get(owner)
        if found is not None:
            if found.last:
                found.go_on()
            return found
        found = self._take()
        if found is None:
            return None
        found.begin(owner, self.look(), _generation())
        self._slots[owner] = found
        return found

    def end(self, slot: RingSlot) -> None:
        """Its container has ended."""
        if not slot.last:
            slot.end(self.look())
            self._has_ended(slot)

    def mark(self) -> None:
        """Remember what time it is."""
        self._marked += 1
        os.pwrite(self._fd, self.clock.mark(), _MARKS_AT[self._marked % 2])

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def _take(self) -> RingSlot | None:
        while not self._free:
            first = self._first_ended()
            if first is None or first.owner is None:
                return None
            del self._slots[first.owner]
            if first.owner.type is not RingType.SHARE or not first.owner.work:
                return first
            of_work = RingOwner(type=RingType.WORK, work=first.owner.work)
            sums = self._slots.get(of_work)
            if sums is not None:
                sums.take(first, self.look())
                self._has_ended(sums)
                return first
            # It becomes the one for the sums, and the next one is taken.
            first.begin_sums(of_work, self.look(), _generation())
            self._slots[of_work] = first
            self._has_ended(first)
        return self._free.pop()

    def _has_ended(self, slot: RingSlot) -> None:
        if slot.last:
            heappush(self._ended, (_gives_way(slot), slot.at, slot))

    def _first_ended(self) -> RingSlot | None:
        while self._ended:
            order, _, slot = heappop(self._ended)
            if slot.last and order == _gives_way(slot):
                return slot
        return None

    def _begin(self, path: Path) -> None:
        head = _HEAD.pack(_MAGIC, _VERSION, RingSlot.SIZE, self.count)
        size = _SLOTS_AT + self.count * RingSlot.SIZE
        found = os.pread(self._fd, len(head), 0)
        if found == head and os.fstat(self._fd).st_size == size:
            for at in _MARKS_AT:
                self.clock.resume(os.pread(self._fd, MARK_BYTES, at))
            return
        if found.strip(b"\0"):
            aside = _aside(path)
            log.warning("%s is no history of this version: it is %s now", path, aside.name)
            path.replace(aside)
            other, self._fd = self._fd, _open(path)
            os.close(other)
        try:
            os.posix_fallocate(self._fd, 0, size)
        except OSError:
            os.ftruncate(self._fd, 0)  # a disk that has not enough keeps what it has
            raise
        os.pwrite(self._fd, head, 0)


def remove(path: Path) -> list[Path]:
    """Remove a history, and one that was set aside for it; those that there were.

    Raises:
        HistoryError: one cannot be removed.
    """
    found = [each for each in (path, _aside(path)) if each.exists()]
    for each in found:
        try:
            each.unlink()
        except OSError as error:
            raise HistoryError(f"{each}: {error.strerror}") from None
    return found


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.other")


def rings(path: Path, clock: HistoryClock) -> list[RingSlot]:
    """The rings of a history that an agent may be writing at this moment; the clock goes on there.

    Raises:
        HistoryError: it cannot be read, or is none of this version.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from None
    head = os.pread(descriptor, _HEAD.size, 0)
    magic, version, size, count = _HEAD.unpack(head.ljust(_HEAD.size, b"\0"))
    if (magic, version, size) != (_MAGIC, _VERSION, RingSlot.SIZE):
        os.close(descriptor)
        raise HistoryError(f"{path} is no history of this version")
    for at in _MARKS_AT:
        clock.resume(os.pread(descriptor, MARK_BYTES, at))
    found = (RingSlot(descriptor, _SLOTS_AT + number * size) for number in range(count))
    return [slot for slot in found if slot.read()]


def _gives_way(slot: RingSlot) -> tuple[bool, int]:
    """Who ended, in their order: a work's sums are short where all that is in them was.

    They stay while others of it are summed up: each time makes them the youngest.
    """
    return slot.last - slot.first >= LOOKS_OF_STEP, max(slot.last, slot.summed_at)


def _generation() -> int:
    return randbits(31) + 1


def _open(path: Path) -> int:
    """A regular file that nobody else may read; a link is followed nowhere."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is no file")
    return descriptor
