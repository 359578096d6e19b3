"""The most that a container had at once, and how often it was refused: noted in its ledger."""

import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.agent_node import ready
from tests.native.container import Container
from tests.native.cuda import MIB, Cuda, Number

from gpu_scheduler.agent.ledger import KEEPS_MARKS_AT, MARKS_AT, LedgerFile, MemoryMarks

HERE = "tests.native.test_gpucap_marks"
CAP_MIB = 1024
MOST = (1 << 64) - 1


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=CAP_MIB)


def marks(box: Container) -> MemoryMarks:
    """Of the only device, as the agent reads them."""
    descriptor = os.open(box.state / "ledger", os.O_RDONLY)
    try:
        return LedgerFile(descriptor).marks()[box.gpu.uuids[0]]
    finally:
        os.close(descriptor)


def take_and_free(*sizes_mib: int) -> int:
    """Take and free one after the other; how many were refused."""
    cuda, refused = Cuda(), 0
    for mib in sizes_mib:
        pointer = Number()
        if cuda.cuMemAlloc_v2(pointer, mib * MIB):
            refused += 1
        else:
            cuda.ok("cuMemFree_v2", int(pointer))
    return refused


def test_a_peak_that_lasted_for_a_moment_is_kept(box: Container) -> None:
    assert box.call(f"{HERE}:take_and_free", 100, 700, 300) == 0
    assert marks(box) == MemoryMarks(700, 0)
    box.call(f"{HERE}:take_and_free", 200)
    assert marks(box) == MemoryMarks(700, 0), "of all processes since the start"


def test_a_refusal_counts_and_is_no_peak(box: Container) -> None:
    assert box.call(f"{HERE}:take_and_free", 500, 2000, 1025, 600) == 2
    assert marks(box) == MemoryMarks(600, 2)


def test_a_context_counts_by_what_it_is_charged(container: Callable[..., Container]) -> None:
    box = container(cap_mib=CAP_MIB, context_mib=64)
    box.call(f"{HERE}:take_and_free", 100)
    assert marks(box) == MemoryMarks(164, 0)
    done = box.run(box.probe_command("linked", "alloc", 8), GPUCAP_CONTEXT_MIB="2000")
    assert done.returncode != 0
    assert marks(box) == MemoryMarks(164, 1), "a context that was refused"


@pytest.mark.parametrize("row", ["alloc", "async", "vmm", "array", "pool", "graph"])
def test_every_way_to_get_memory_counts(box: Container, row: str) -> None:
    """The row takes pieces of 128 MiB until one is refused."""
    box.gpu.configure(context_mib=0, module_mib=0)
    found = box.probe("linked", row, 128)
    assert found.pieces == 8
    assert marks(box) == MemoryMarks(CAP_MIB, 1)
    assert box.gpu.peak_mib() == CAP_MIB, "what the driver has seen of it"


def test_what_fits_after_idle_memory_was_given_back_was_not_refused(box: Container) -> None:
    assert box.call(f"{HERE}:fill_a_pool_and_take") == 0
    assert marks(box).refused == 0


def fill_a_pool_and_take() -> int:
    cuda, pointer = Cuda(), Number()
    pool = cuda.get("cuDeviceGetDefaultMemPool", 0)
    cuda.ok("cuMemPoolSetAttribute", pool, 4, Number(MOST))
    cuda.ok("cuMemAllocAsync", pointer, 800 * MIB, None)
    cuda.ok("cuMemFreeAsync", int(pointer), None)
    return int(cuda.cuMemAlloc_v2(Number(), 800 * MIB))


def hold(mib: int) -> None:
    """Hold so much, and as much more as each line of the input says."""
    cuda = Cuda()
    cuda.allocate(mib)
    ready()
    for line in sys.stdin:
        cuda.allocate(int(line))
        ready()


def started(box: Container, mib: int) -> "subprocess.Popen[str]":
    child = box.start(box.gpu.child(f"{HERE}:hold", mib))
    wait(child)
    return child


def wait(child: "subprocess.Popen[str]") -> None:
    assert child.stdout
    assert child.stdout.readline() == "ready\n"


def end(*children: "subprocess.Popen[str]") -> None:
    for each in children:
        each.kill()
        each.communicate()


def test_processes_add_up_and_the_dead_do_not(box: Container) -> None:
    lasting, brief = started(box, 300), started(box, 200)
    try:
        assert marks(box).peak_mib == 500
        end(brief)
        time.sleep(0.2)  # who grows looks for the dead every tenth of a second
        assert lasting.stdin
        lasting.stdin.write("250\n")
        lasting.stdin.flush()
        wait(lasting)
        assert marks(box) == MemoryMarks(550, 0)
    finally:
        end(lasting, brief)
    another = started(box, 540)
    end(another)
    assert marks(box) == MemoryMarks(550, 0)


def test_a_ledger_that_an_earlier_library_made_goes_on_and_has_no_marks(box: Container) -> None:
    path = box.state / "ledger"
    box.call(f"{HERE}:take_and_free", 100)
    as_before(path)
    made = path.stat().st_ino
    box.call(f"{HERE}:take_and_free", 200, 2000)
    assert path.stat().st_ino == made, "it was not made anew"
    assert box.log() == []
    assert marks(box) == MemoryMarks(None, None), "what came before is not known"


def as_before(path: Path) -> None:
    """Noughts where an earlier library left them."""
    with path.open("r+b") as file:
        file.seek(KEEPS_MARKS_AT)
        file.write(struct.pack("=I", 0))
        file.seek(MARKS_AT)
        file.write(bytes(256))
