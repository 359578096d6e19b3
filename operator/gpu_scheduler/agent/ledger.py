"""The ledger of a container as the agent sees it: slots are read, and two things are written.

They are a field of a slot, and what is held by processes without one.

The file belongs to the tenant, who may truncate, replace or fill it with anything: it is opened
without following a link anywhere on the way, checked to be a regular file with one name, and
touched with pread and pwrite alone. The layout is that of ``native/libgpucap/src/ledger.h``, whose
program ``make offsets`` a test compares with the constants here. A container keeps the library it
started with: what an earlier one did not keep is unknown.
"""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from gpu_scheduler.agent.plausible import whole
from gpu_scheduler.core.model.units import MIB

MAGIC = b"GPUCAPL\0"
VERSION = 1
HEADER_BYTES = 4096
SLOT_BYTES = 320
SLOTS = 2048
DEVICES = 16
SLOTS_SEEN_AT = 32
DEVICE_TABLE_AT = 128
DEVICE_BYTES = 32
SLOT_START_TIME_AT = 8
SLOT_DEVICES_AT = 32
KEEPS_MARKS_AT = 908
MARKS_AT = 912
MARK_BYTES = 16
UNSLOTTED_AT = 3728
UNSLOTTED_UNTIL_AT = 3856
HELD_BYTES = 16
HELD_CONTEXT_AT = 8
FILE_BYTES = HEADER_BYTES + SLOTS * SLOT_BYTES

_HEADER = struct.Struct("=8sIIIII")  # magic, version, header, slot, slots, devices
_U32 = struct.Struct("=I")
_U64 = struct.Struct("=Q")
_DEVICE = struct.Struct("=16sI")
_MARK = struct.Struct("=QQ")  # the most bytes at once, and refusals
_MOST_REFUSED = 1 << 53

FOLDER = ("opt", "gpu-scheduler", "state")
FILE = "ledger"


class LedgerError(Exception):
    """The file is not a ledger that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class MemoryMarks:
    """What a container has had of one device since its start; None: its library does not keep it.

    ``peak_mib`` is the most that it was charged at once, contexts included, in whole MiB upwards: a
    cap of so much would have done. ``refused`` counts how often a program of it was told that there
    is not enough memory.
    """

    peak_mib: int | None = None
    refused: int | None = None


class LedgerFile:
    """An open ledger."""

    def __init__(self, descriptor: int) -> None:
        """Check the header.

        Raises:
            LedgerError: not a ledger of this version.
        """
        self._fd = descriptor
        size = os.fstat(descriptor).st_size
        if size < FILE_BYTES:
            raise LedgerError(f"{size} bytes, expected {FILE_BYTES}")
        found = _HEADER.unpack(self._read(0, _HEADER.size))
        expected = (MAGIC, VERSION, HEADER_BYTES, SLOT_BYTES, SLOTS, DEVICES)
        if found != expected:
            raise LedgerError(f"header {found}, expected {expected}")

    def devices(self) -> dict[str, int]:
        """Numbers of the devices in the slots, by UUID."""
        table = self._read(DEVICE_TABLE_AT, DEVICES * DEVICE_BYTES)
        found = {}
        for number in range(DEVICES):
            raw, in_use = _DEVICE.unpack_from(table, number * DEVICE_BYTES)
            if in_use == 1:
                found[f"GPU-{UUID(bytes=raw)}"] = number
        return found

    def marks(self) -> dict[str, MemoryMarks]:
        """The marks of each device, by UUID; what cannot be is None."""
        keeps = _U32.unpack(self._read(KEEPS_MARKS_AT, 4))[0] == 1
        table = self._read(MARKS_AT, DEVICES * MARK_BYTES)
        found = {}
        for uuid, number in self.devices().items():
            peak, refused = _MARK.unpack_from(table, number * MARK_BYTES)
            found[uuid] = MemoryMarks(
                -(-peak // MIB) if keeps and whole(peak) is not None else None,
                refused if keeps and whole(refused, _MOST_REFUSED) is not None else None,
            )
        return found

    def find(self, pid: int, started: int) -> int | None:
        """The slot of a process.

        Args:
            pid: As the container numbers it.
            started: Its start time in clock ticks.
        """
        seen = min(_U32.unpack(self._read(SLOTS_SEEN_AT, 4))[0], SLOTS)
        table = self._read(HEADER_BYTES, seen * SLOT_BYTES)
        for slot in range(seen):
            at = slot * SLOT_BYTES
            if (
                _U32.unpack_from(table, at)[0] == pid
                and _U64.unpack_from(table, at + SLOT_START_TIME_AT)[0] == started
            ):
                return slot
        return None

    def held(self, slot: int, device: int) -> tuple[int, int]:
        """Bytes that a slot says its process has allocated on a device, and those of contexts."""
        used, context = struct.unpack("=QQ", self._read(_held_at(slot, device), HELD_BYTES))
        return used, context

    def write_context(self, slot: int, device: int, value: int) -> None:
        """Set ``context_bytes``."""
        self._write(_held_at(slot, device) + HELD_CONTEXT_AT, value)

    def write_unslotted(self, device: int, value: int, until_ms: int) -> None:
        """Set what processes of the container without a slot hold of a device.

        Args:
            device: Its number.
            value: Bytes.
            until_ms: Of the machine's monotonic clock; from then on libgpucap takes it for old.
        """
        at = UNSLOTTED_AT + device * _U64.size
        if value:
            self._write(UNSLOTTED_UNTIL_AT, until_ms)
        if value != _U64.unpack(self._read(at, _U64.size))[0]:
            self._write(at, value)

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is."""
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def _write(self, at: int, value: int) -> None:
        if os.pwrite(self._fd, _U64.pack(value), at) != _U64.size:
            raise LedgerError("a write was cut short")

    def _read(self, at: int, length: int) -> bytes:
        data = os.pread(self._fd, length, at)
        if len(data) != length:
            raise LedgerError(f"ends at byte {at + len(data)}")
        return data


def _held_at(slot: int, device: int) -> int:
    return HEADER_BYTES + slot * SLOT_BYTES + SLOT_DEVICES_AT + device * HELD_BYTES


@contextmanager
def open_inside(root: Path) -> Iterator[LedgerFile]:
    """The ledger of a container.

    Args:
        root: Its root directory, ``/proc/<pid>/root``.

    Raises:
        LedgerError: it is not what it should be.
        OSError: there is none, or it cannot be opened.
    """
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in FOLDER:
            # One step at a time: an absolute link on the way would lead out of the container.
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, flags, dir_fd=folder)
            os.close(folder)
            folder = below
        # Not blocking: it might be a FIFO that nobody reads.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(FILE, flags, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise LedgerError("not a regular file with one name")
        yield LedgerFile(descriptor)
    finally:
        os.close(descriptor)
