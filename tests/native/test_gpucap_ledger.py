"""A ledger that cannot be used: a clear line once, the cap per process, and never a crash."""

import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.container import HEADER_BYTES, SLOT_BYTES, SLOTS, Container, offsets

from gpu_scheduler.agent import ledger as agent

LEDGER_BYTES = HEADER_BYTES + SLOTS * SLOT_BYTES


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def expect_a_cap_per_process(box: Container, reason: str) -> None:
    """Two processes at a time have the whole cap each, and the log says why in one line."""
    with box.hold("alloc", 128) as first:
        assert first.seen.pieces == 8
        assert box.probe("linked", "alloc", 128).pieces == 8
    (line,) = box.log()
    assert reason in line, line


def good_ledger(box: Container) -> bytes:
    """One that the library made."""
    box.probe("linked", "alloc", 128, "once")
    return box.ledger().content


def test_a_good_ledger_has_the_layout_of_the_contract(box: Container) -> None:
    content = good_ledger(box)
    assert len(content) == LEDGER_BYTES
    assert content[:8] == b"GPUCAPL\0"
    assert struct.unpack_from("=5I", content, 8) == (1, HEADER_BYTES, SLOT_BYTES, SLOTS, 16)
    uuid, in_use = struct.unpack_from("=16sI", content, 128)
    assert f"GPU-{uuid.hex()}" == box.gpu.uuids[0].replace("-", "").replace("GPU", "GPU-")
    assert in_use == 1
    assert (box.state / "ledger").stat().st_mode & 0o777 == 0o666


AGENT = {
    "version": agent.VERSION,
    "file_bytes": agent.FILE_BYTES,
    "header_bytes": agent.HEADER_BYTES,
    "slot_bytes": agent.SLOT_BYTES,
    "slot_count": agent.SLOTS,
    "device_count": agent.DEVICES,
    "header.slots_seen": agent.SLOTS_SEEN_AT,
    "header.device": agent.DEVICE_TABLE_AT,
    "device.bytes": agent.DEVICE_BYTES,
    "slot.start_time": agent.SLOT_START_TIME_AT,
    "slot.device": agent.SLOT_DEVICES_AT,
    "held.bytes": agent.HELD_BYTES,
    "held.context_bytes": agent.HELD_CONTEXT_AT,
}


def test_offsets_are_what_the_compiler_says(box: Container) -> None:
    said = offsets(box.gpu.build.folder)
    assert said["file_bytes"] == str(LEDGER_BYTES)
    assert (said["slot.pid"], said["slot.start_time"], said["slot.device"]) == ("0", "8", "32")
    assert (said["held.used_bytes"], said["held.context_bytes"]) == ("0", "8")
    assert (said["header.device"], said["device.bytes"]) == ("128", "32")


def test_the_agent_has_the_same_layout(box: Container) -> None:
    said = offsets(box.gpu.build.folder)
    assert agent.MAGIC == said["magic"].encode() + b"\0"
    assert {name: int(value) for name, value in said.items() if name in AGENT} == AGENT


@pytest.mark.parametrize("length", [1, 4096, 5000, LEDGER_BYTES - 1, LEDGER_BYTES + 1])
def test_truncated_or_too_long(box: Container, length: int) -> None:
    (box.state / "ledger").write_bytes(good_ledger(box).ljust(LEDGER_BYTES + 1, b"x")[:length])
    expect_a_cap_per_process(box, "not a ledger" if length == 1 else "truncated")


def test_of_another_version(box: Container) -> None:
    content = bytearray(good_ledger(box))
    struct.pack_into("=I", content, 8, 2)
    (box.state / "ledger").write_bytes(content)
    expect_a_cap_per_process(box, "another version")


def test_garbage(box: Container) -> None:
    (box.state / "ledger").write_bytes(os.urandom(LEDGER_BYTES))
    expect_a_cap_per_process(box, "not a ledger")


def test_garbage_in_the_slots_is_no_crash(box: Container) -> None:
    """Right header, nonsense behind it: slots of processes that do not exist are reaped."""
    content = bytearray(good_ledger(box))
    content[HEADER_BYTES:] = os.urandom(LEDGER_BYTES - HEADER_BYTES)
    struct.pack_into("=I", content, 32, 0xFFFFFFFF)  # slots seen
    (box.state / "ledger").write_bytes(content)
    found = box.probe("linked", "alloc", 128)
    assert found.pieces in range(9)
    assert found.total_mib == 1024


def test_a_lock_that_nobody_holds_any_more(box: Container) -> None:
    """Its word names a holder that is not there: a process waits for seconds, not for ever."""
    content = bytearray(good_ledger(box))
    struct.pack_into("=I", content, 64, 0x3FFFFFF0)
    (box.state / "ledger").write_bytes(content)
    assert box.probe("linked", "alloc", 128).pieces == 8
    (line,) = box.log()
    assert "lock cannot be taken" in line


def test_a_link_or_a_folder_in_its_place(box: Container, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (box.state / "ledger").symlink_to(elsewhere)
    expect_a_cap_per_process(box, "cannot be opened")
    assert not elsewhere.exists()  # it was not written through


def test_a_folder_that_is_not_there(box: Container) -> None:
    box.extra["GPUCAP_STATE_DIR"] = "/nonexistent/state"
    assert box.probe("linked", "alloc", 128).pieces == 8


def with_mount(box: Container, mount: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the state folder ($0) is mounted like this, and show the log after it."""
    script = f'{mount} && "$@" && if [ -f "$0/libgpucap.log" ]; then cat "$0/libgpucap.log"; fi'
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    done = box.run([*unshare, "sh", "-c", script, box.state, *command])
    assert done.returncode == 0, done.stderr
    return done


def test_read_only(box: Container) -> None:
    content = good_ledger(box)
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    done = with_mount(box, mount, *box.probe_command("linked", "alloc", 128))
    assert done.stdout.startswith("8 2 ")
    assert box.ledger().content == content


def test_full_disk(box: Container) -> None:
    """A file system of 64 KiB: the ledger does not fit, and nobody dies of a missing page."""
    mount = 'mount -t tmpfs -o size=64k,mode=1777 none "$0"'
    done = with_mount(box, mount, *box.probe_command("linked", "alloc", 128))
    line, log = done.stdout.splitlines()
    assert line.startswith("8 2 ")
    assert "cannot be written (error 28)" in log


@pytest.mark.parametrize("how", ["truncate", "remove", "replace"])
def test_damage_while_it_is_in_use(box: Container, how: str) -> None:
    """A long-lived process notices within 100 ms, goes on with what it holds, and keeps the cap."""
    result = box.call(f"{__name__}:damage_and_take", how, str(box.state / "ledger"))
    assert result == [4, 4]
    if how == "remove":
        assert box.log() == []  # a new one was made


def damage_and_take(how: str, ledger: str) -> list[int]:
    """Take half of the cap, damage the ledger, take the rest."""
    import time

    from tests.native.cuda import MIB, Cuda, Number

    cuda = Cuda()
    for _ in range(4):
        cuda.allocate(128)
    if how == "truncate":
        os.truncate(ledger, 100)
    elif how == "remove":
        os.unlink(ledger)
    else:
        Path(ledger + ".other").write_text("something else")
        os.replace(ledger + ".other", ledger)
    time.sleep(0.2)
    more = 0
    while cuda.cuMemAlloc_v2(Number(), 128 * MIB) == 0:
        more += 1
    return [4, more]
