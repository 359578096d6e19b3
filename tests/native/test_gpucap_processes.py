"""The cap is the container's: its processes share it, however they came to be and end."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, Cuda, Number
from tests.native.fake_gpu import FakeGPU

PIECE_MIB = 128
SLOTS_SEEN_AT = 32  # in the ledger's header


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def take_pieces(_: int = 0) -> int:
    """Take pieces until refused."""
    cuda, count = Cuda(), 0
    while cuda.cuMemAlloc_v2(Number(), PIECE_MIB * MIB) == 0:
        count += 1
    return count


def spawn_and_take(method: str, held: int) -> list[int]:
    """Hold some pieces, let a child of multiprocessing take the rest, then take what is left."""
    cuda = Cuda()
    for _ in range(held):
        cuda.allocate(PIECE_MIB)
    with multiprocessing.get_context(method).Pool(1) as pool:
        (child,) = pool.map(take_pieces, [0])
    left = 0
    while cuda.cuMemAlloc_v2(Number(), PIECE_MIB * MIB) == 0:
        left += 1
    return [child, left]


def test_processes_share_one_cap(box: Container) -> None:
    with box.hold("alloc", PIECE_MIB) as first:
        assert first.seen.pieces == 8
        assert box.probe("dlopen", "async", PIECE_MIB).pieces == 0
    with box.hold("vmm", PIECE_MIB) as again:
        assert again.seen.pieces == 8  # the first is dead: its memory is free


def test_sum_of_processes_stays_within_the_cap(box: Container) -> None:
    command = box.probe_command("linked", "alloc", PIECE_MIB, "once")
    holders = [box.start([*command[:4], "hold"]) for _ in range(5)]
    try:
        lines = [holder.stdout.readline() for holder in holders if holder.stdout]
        assert sum(int(line.split()[0]) for line in lines) == 8
        assert box.ledger().held_mib() == 1024
        assert box.gpu.used_mib() == 1024 + 5 * 300  # as the driver sees it, with its contexts
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


@pytest.mark.parametrize("killed_by", [signal.SIGKILL, signal.SIGTERM])
def test_memory_of_a_dead_process_comes_back(box: Container, killed_by: signal.Signals) -> None:
    holder = box.hold("alloc", PIECE_MIB)
    holder.process.send_signal(killed_by)
    holder.process.communicate()
    assert box.probe("linked", "alloc", PIECE_MIB).pieces == 8
    assert box.probe("linked", "alloc", PIECE_MIB, "context").free_mib == 1024


def test_memory_of_a_zombie_comes_back(box: Container) -> None:
    holder = box.hold("alloc", PIECE_MIB)
    holder.process.kill()
    with open(f"/proc/{holder.process.pid}/stat") as stat:
        while stat.read().rsplit(")", 1)[1].split()[0] != "Z":
            stat.seek(0)
    assert box.probe("linked", "alloc", PIECE_MIB).pieces == 8  # nobody has waited for it yet
    holder.process.communicate()


@pytest.mark.parametrize("mode", ["fork", "clone"])
def test_a_forked_child_starts_with_nothing_and_shares_the_rest(box: Container, mode: str) -> None:
    done = box.run([box.programs / "forks", mode])
    assert (done.returncode, done.stdout) == (0, "4 4\n"), done.stderr


def test_fork_before_cuda(box: Container) -> None:
    done = box.run([box.programs / "forks", "early"])
    assert (done.returncode, done.stdout) == (0, "8 8\n"), done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_multiprocessing(box: Container, method: str) -> None:
    # A forked child of a process with CUDA must start the driver anew, as ours does by cuInit.
    assert box.call(f"{__name__}:spawn_and_take", method, 3) == [5, 5]


@pytest.mark.parametrize(
    ("turns", "kind"),
    [(1000, ()), (20_000, ("vmm",)), (20_000, ("small",))],
    ids=["pointers", "handles", "small"],
)
def test_threads(box: Container, turns: int, kind: tuple[str, ...]) -> None:
    done = box.run([box.programs / "threads", "8", str(turns), *kind])
    assert done.returncode == 0, done.stderr
    got, free = map(int, done.stdout.split())
    assert got > 1000
    assert free == 1024 * MIB  # everything was given back, to the byte


def test_a_thousand_processes_start(box: Container) -> None:
    box.gpu.configure(context_mib=0)  # a device has no room for so many real ones
    box.cap_mib = 1024  # a page of 2 MiB for each, however little it takes
    done = box.run([box.programs / "crowd", "1024", "512"])
    assert (done.returncode, done.stdout) == (0, "512 512 0\n"), done.stderr
    assert box.log() == []


def test_slot_says_whose_it_is(box: Container) -> None:
    with box.hold("alloc", PIECE_MIB) as holder:
        (slot,) = box.ledger().slots
        with open(f"/proc/{holder.process.pid}/stat") as stat:
            start_time = int(stat.read().rsplit(")", 1)[1].split()[19])
        assert (slot.pid, slot.start_time) == (holder.process.pid, start_time)
        assert (slot.used_mib, slot.context_mib) == (1024, 0)


def test_a_reused_process_number_is_not_the_process(box: Container) -> None:
    """A container that restarts keeps its ledger; its new processes have the old ones' numbers."""
    with box.hold("alloc", PIECE_MIB) as holder:
        (slot,) = box.ledger().slots
        content = bytearray(box.ledger().content)
    at = 4096 + slot.number * 320
    time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # a start time is a tick: two may begin in one
    living = box.start(["sleep", "60"])
    try:
        content[at : at + 4] = living.pid.to_bytes(4, "little")  # alive, but another start time
        (box.state / "ledger").write_bytes(content)
        assert holder.process.poll() is not None
        assert box.probe("linked", "alloc", PIECE_MIB).pieces == 8
    finally:
        living.kill()
        living.communicate()


def in_new_namespace(*command: str) -> list[str]:
    """A command as the first process of a PID namespace, as a container's is."""
    return ["unshare", "-pf" if os.geteuid() == 0 else "-rpf", "--mount-proc", *command]


def test_a_restarted_container_has_all_its_memory_again(box: Container) -> None:
    """The state folder is the old one; the numbers of processes are the same, and are others."""
    command = in_new_namespace(*box.probe_command("linked", "alloc", PIECE_MIB, "hold"))
    first = box.start(command)
    assert first.stdout and first.stdout.readline().startswith("8 ")
    assert box.ledger().slots[0].pid == 1
    first.communicate("")  # its input ends, and so does it, without giving anything back
    assert box.ledger().held_mib() == 1024
    again = box.run(in_new_namespace(*box.probe_command("linked", "alloc", PIECE_MIB)))
    assert again.stdout.startswith("8 "), again.stderr


def test_a_nested_namespace_shares_the_cap(box: Container) -> None:
    """A sandbox inside the container: its processes count, and those outside go on counting."""
    outside = box.start(box.probe_command("linked", "alloc", 512, "steps"))
    assert outside.stdin and outside.stdout
    assert outside.stdout.readline() == "1\n"
    inside = box.run(in_new_namespace(*box.probe_command("linked", "alloc", PIECE_MIB)))
    assert inside.stdout.startswith("4 "), inside.stderr
    outside.stdin.write("\n")
    outside.stdin.flush()
    assert outside.stdout.readline() == "2\n"
    assert sorted(slot.used_mib for slot in box.ledger().slots)[-1] == 1024
    outside.kill()
    outside.communicate()


def test_context_bytes_of_the_agent_count(box: Container) -> None:
    with box.hold("alloc", PIECE_MIB) as holder:
        assert holder.seen.pieces == 8
    command = box.probe_command("linked", "alloc", PIECE_MIB, "context")
    first = box.start([*command[:3], "0", "hold"])  # holds nothing but a context
    assert first.stdout
    first.stdout.readline()
    try:
        box.write_context_mib(first.pid, 512)
        found = box.probe("linked", "alloc", PIECE_MIB)
        assert (found.pieces, found.answer) == (4, OUT_OF_MEMORY)
    finally:
        first.kill()
        first.communicate()


def test_the_slots_of_those_who_are_gone_are_not_read_for_ever(box: Container) -> None:
    box.gpu.configure(context_mib=0)
    box.cap_mib = 256
    assert box.run([box.programs / "crowd", "300", "300"]).returncode == 0
    assert slots_seen(box) >= 300
    with box.hold("alloc", PIECE_MIB):
        assert slots_seen(box) == 1


def slots_seen(box: Container) -> int:
    """How many slots of the ledger a sum reads."""
    return int.from_bytes(box.ledger().content[SLOTS_SEEN_AT : SLOTS_SEEN_AT + 4], sys.byteorder)


def test_a_reset_with_very_many_allocations_gives_all_of_them_back(box: Container) -> None:
    assert box.call(f"{__name__}:allocate_and_reset", 100_000) == 1024


def allocate_and_reset(count: int) -> float:
    """Very many small allocations, then a reset; what is free then."""
    cuda = Cuda()
    context = cuda.get("cuDevicePrimaryCtxRetain", 0)
    cuda.ok("cuCtxSetCurrent", context)
    pointer = Number()
    for _ in range(count):
        cuda.ok("cuMemAlloc_v2", pointer, 512)
    cuda.ok("cuDevicePrimaryCtxReset_v2", 0)
    cuda.ok("cuCtxSetCurrent", cuda.get("cuDevicePrimaryCtxRetain", 0))
    return cuda.free_mib()


def test_what_one_of_many_held_is_got_back_though_not_all_are_looked_at_each_time(
    gpu: FakeGPU, container: Callable[..., Container]
) -> None:
    gpu.configure(context_mib=0)
    box = container(cap_mib=1024)
    idle = [box.hold("alloc", 1025) for _ in range(40)]  # a slot each, and no memory
    holder = box.hold("alloc", 128)
    assert holder.seen.pieces == 8
    asking = box.start(box.probe_command("linked", "alloc", 128, "steps"))
    assert asking.stdin and asking.stdout
    assert asking.stdout.readline() == "0\n"
    with holder:
        pass
    said = "0\n"
    while said == "0\n":  # refused, until its slot's turn has come
        asking.stdin.write("\n")
        asking.stdin.flush()
        said = asking.stdout.readline()
    assert said == "1\n"
    asking.kill()
    asking.communicate()
    for each in idle:
        each.__exit__()
