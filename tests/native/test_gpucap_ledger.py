"""A ledger that cannot be used: a clear line once, a new one or no memory, and never a crash."""

import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.container import (
    HEADER_BYTES,
    SLOT_BYTES,
    SLOTS,
    Container,
    offsets,
)

from gpu_scheduler.agent import ledger as agent

REFUSED = "driverprobe: cuDevicePrimaryCtxRetain: 2\n"  # out of memory
LEDGER_BYTES = HEADER_BYTES + SLOTS * SLOT_BYTES


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def expect_a_new_one(box: Container, reason: str) -> None:
    """Processes share the cap as ever, in a new ledger, and the log says why in one line."""
    with box.hold("alloc", 128) as first:
        assert first.seen.pieces == 8
        assert box.probe("linked", "alloc", 128).pieces == 0
        assert box.ledger().held_mib() == 1024
    (line,) = box.log()
    assert reason in line, line
    assert "made anew" in line, line
    assert sorted(path.name for path in box.state.iterdir()) == ["ledger", "libgpucap.log"]


def expect_nothing(box: Container, reason: str) -> None:
    """Not even a context is given out for as long as nobody can count it."""
    done = box.run(box.probe_command("linked", "alloc", 128))
    assert done.stderr == REFUSED
    (line,) = box.log()
    assert reason in line, line
    assert "memory is refused" in line, line


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
    "header.keeps_marks": agent.KEEPS_MARKS_AT,
    "header.mark": agent.MARKS_AT,
    "mark.bytes": agent.MARK_BYTES,
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
    expect_a_new_one(box, "not a ledger" if length == 1 else "truncated")


def test_of_another_version(box: Container) -> None:
    content = bytearray(good_ledger(box))
    struct.pack_into("=I", content, 8, 2)
    (box.state / "ledger").write_bytes(content)
    expect_a_new_one(box, "another version")


def test_garbage(box: Container) -> None:
    (box.state / "ledger").write_bytes(os.urandom(LEDGER_BYTES))
    expect_a_new_one(box, "not a ledger")


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
    """The machine lost its power while it was held: after five seconds there is a new ledger."""
    content = bytearray(good_ledger(box))
    struct.pack_into("=I", content, 64, 0x3FFFFFF0)
    (box.state / "ledger").write_bytes(content)
    assert box.probe("linked", "alloc", 128).pieces == 8
    first, second = box.log()
    assert "lock cannot be taken" in first
    assert "nobody who lives uses it: it was made anew" in second


def test_a_link_in_its_place(box: Container, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (box.state / "ledger").symlink_to(elsewhere)
    expect_a_new_one(box, "not a regular file")
    assert not elsewhere.exists()  # it was not written through


def test_a_folder_in_its_place(box: Container) -> None:
    (box.state / "ledger").mkdir()
    expect_nothing(box, "cannot be written")


def test_without_a_cap_nobody_needs_a_ledger(container: Callable[..., Container]) -> None:
    box = container(cap_mib=None)
    (box.state / "ledger").mkdir()
    assert box.probe("linked", "alloc", 1024, "once").pieces == 1


def test_a_folder_that_is_not_there(box: Container) -> None:
    box.extra["GPUCAP_STATE_DIR"] = "/nonexistent/state"
    assert box.probe("linked", "alloc", 128).pieces == 8


def with_mount(box: Container, mount: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the state folder ($0) is mounted like this, and show the log after it."""
    script = f'{mount} && "$@"; if [ -f "$0/libgpucap.log" ]; then cat "$0/libgpucap.log"; fi'
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    done = box.run([*unshare, "sh", "-c", script, box.state, *command])
    return done


def test_read_only(box: Container) -> None:
    content = good_ledger(box)
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    done = with_mount(box, mount, *box.probe_command("linked", "alloc", 128))
    words = f"ledger: {box.state}/ledger: it cannot be opened (error 30): memory is refused until"
    assert done.stderr == f"libgpucap: {words} it can be used\n{REFUSED}"
    assert box.ledger().content == content


@pytest.mark.parametrize("what", ["2<>data", "2>&-"])
def test_the_words_go_nowhere_but_to_a_stderr(box: Container, what: str) -> None:
    """Not into a file that has its number since the program closed it."""
    good_ledger(box)
    mount = f'cd {box.folder} && : >data && mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    probe = " ".join(box.probe_command("linked", "alloc", 128))
    done = with_mount(box, mount, "sh", "-c", f"{probe} {what}; echo $?")
    assert done.stdout == "2\n"
    assert "libgpucap" not in (box.folder / "data").read_text()


def test_full_disk(box: Container) -> None:
    """A file system of 64 KiB: the ledger does not fit, and nobody dies of a missing page."""
    mount = 'mount -t tmpfs -o size=64k,mode=1777 none "$0"'
    done = with_mount(box, mount, *box.probe_command("linked", "alloc", 128))
    assert done.stderr == REFUSED
    (log,) = done.stdout.splitlines()
    assert "cannot be written (error 28): memory is refused" in log


def test_a_ledger_with_holes_on_a_full_disk(box: Container) -> None:
    """A page that cannot be written must be words, and no signal (SIGBUS)."""
    holes = box.folder / "holes"
    holes.write_bytes(good_ledger(box)[:HEADER_BYTES] + bytes(LEDGER_BYTES - HEADER_BYTES))
    mount = f"""mount -t tmpfs -o size=64k,mode=1777 none "$0"
cp --sparse=always {holes} "$0/ledger" && ! dd if=/dev/zero of="$0/full" 2>"$0/said\""""
    done = with_mount(box, mount, *box.probe_command("linked", "alloc", 128))
    words = f"ledger: {box.state}/ledger: there is no room for all of it (error 28): memory is"
    # In the log where a sanitizer leaves a page of the disk free, else on stderr.
    said = f"libgpucap: {done.stdout}{done.stderr}" if box.gpu.build.sanitizer else done.stderr
    assert said.startswith("libgpucap: ") and said.endswith(REFUSED)
    assert f"{words} refused until it can be used\n" in said


@pytest.mark.parametrize("how", ["truncate", "remove", "replace"])
def test_damage_while_it_is_in_use(box: Container, how: str) -> None:
    """A long-lived process notices within 100 ms, goes on with what it holds, and keeps the cap."""
    result = box.call(f"{__name__}:damage_and_take", how, str(box.state / "ledger"))
    assert result == [4, 4]
    assert len(box.log()) == (how != "remove")
    assert box.ledger().held_mib() == 1024


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
