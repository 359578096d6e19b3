"""A ledger as libgpucap makes it, for tests of the agent's side."""

import struct
from pathlib import Path
from uuid import UUID

from gpu_scheduler.agent import ledger


def make(root: Path, device: str, *, slot: int = 3, pid: int = 1005, started: int = 7) -> Path:
    """The ledger below ``root`` (a container's root) with one process on one device."""
    folder = root.joinpath(*ledger.FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    content = bytearray(ledger.FILE_BYTES)
    struct.pack_into(
        "=8sIIIIIII",
        content,
        0,
        ledger.MAGIC,
        ledger.VERSION,
        ledger.HEADER_BYTES,
        ledger.SLOT_BYTES,
        ledger.SLOTS,
        ledger.DEVICES,
        40,
        slot + 1,
    )
    raw = UUID(device.removeprefix("GPU-")).bytes
    struct.pack_into("=16sI", content, ledger.DEVICE_TABLE_AT, raw, 1)
    at = ledger.HEADER_BYTES + slot * ledger.SLOT_BYTES
    struct.pack_into("=IIQ", content, at, pid, 0, started)
    path = folder / ledger.FILE
    path.write_bytes(content)
    return path


def mark(path: Path, peak_bytes: int, refused: int, *, keeps: int = 1, device: int = 0) -> None:
    """What the library noted of a device; ``keeps`` is 0 in ledgers of earlier libraries."""
    with path.open("r+b") as file:
        file.seek(ledger.KEEPS_MARKS_AT)
        file.write(struct.pack("=I", keeps))
        file.seek(ledger.MARKS_AT + device * ledger.MARK_BYTES)
        file.write(struct.pack("=QQ", peak_bytes, refused))


def charge(path: Path, used: int, *, slot: int = 3) -> None:
    _poke(path, slot, 0, used)


def context(path: Path, *, slot: int = 3) -> int:
    at = _at(slot, ledger.HELD_CONTEXT_AT)
    (value,) = struct.unpack("=Q", path.read_bytes()[at : at + 8])
    return int(value)


def unslotted(path: Path, *, device: int = 0) -> tuple[int, int]:
    """Bytes of processes without a slot, and until when that holds."""
    content = path.read_bytes()
    (value,) = struct.unpack_from("=Q", content, ledger.UNSLOTTED_AT + 8 * device)
    (until,) = struct.unpack_from("=Q", content, ledger.UNSLOTTED_UNTIL_AT)
    return int(value), int(until)


def _poke(path: Path, slot: int, offset: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(_at(slot, offset))
        file.write(struct.pack("=Q", value))


def _at(slot: int, offset: int) -> int:
    return ledger.HEADER_BYTES + slot * ledger.SLOT_BYTES + ledger.SLOT_DEVICES_AT + offset
