"""What cannot be read, counted or understood is refused or counted, never given for nothing."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, SUCCESS, Cuda, Number
from tests.native.memory_cases import pinned

PIECE_MIB = 128
STALL_SECONDS = 5  # as long as a process waits for the ledger's lock


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def take(cuda: Cuda, mib: int = PIECE_MIB) -> int:
    """The driver's answer to one more piece."""
    return cuda.cuMemAlloc_v2(Number(), mib * MIB)


def take_all(cuda: Cuda) -> int:
    """Pieces until refused."""
    count = 0
    while take(cuda) == 0:
        count += 1
    return count


# --- a ledger that cannot be opened for a while ---


def test_without_descriptors_nothing_is_given_out_and_with_them_it_goes_on(
    box: Container,
) -> None:
    assert box.call(f"{__name__}:without_descriptors") == [OUT_OF_MEMORY, 8]
    assert box.ledger().held_mib() == 1024
    assert box.log() == []  # for that a descriptor would have been needed as well


def without_descriptors() -> list[int]:
    """A context without a descriptor to spare, then one with, and all pieces that there are."""
    import resource

    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open("/dev/null", os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, hard))
    refused = cuda.cuCtxCreate_v2(Number(), 0, 0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    time.sleep(0.2)
    cuda.ok("cuCtxCreate_v2", Number(), 0, 0)
    return [refused, take_all(cuda)]


# --- a lock that somebody holds and does not give back ---


@contextmanager
def stopped_in_the_ledger(box: Container) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped (a debugger, a paused container) while it has the lock."""
    command = box.probe_command("linked", "alloc", PIECE_MIB, "hold")
    holder = box.start(command, GPUCAP_FAULT="locked:3:stop")
    try:
        with open(f"/proc/{holder.pid}/stat") as stat:
            while stat.read().rsplit(")", 1)[1].split()[0] != "T":
                assert holder.poll() is None
                stat.seek(0)
                time.sleep(0.01)
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def test_while_a_stopped_process_has_the_lock_its_neighbours_may_free_and_not_take(
    container: Callable[..., Container],
) -> None:
    box = container(cap_mib=1024, faults=True)
    neighbour = box.start(box.probe_command("linked", "alloc", 512, "steps"))
    assert neighbour.stdin and neighbour.stdout
    try:
        assert neighbour.stdout.readline() == "1\n"
        with stopped_in_the_ledger(box) as holder:
            began = time.monotonic()
            neighbour.stdin.write("\n")
            neighbour.stdin.flush()
            assert neighbour.stdout.readline() == "1\n"  # refused
            assert time.monotonic() - began > STALL_SECONDS - 1
            began = time.monotonic()
            neighbour.stdin.write("\n")
            neighbour.stdin.flush()
            assert neighbour.stdout.readline() == "1\n"
            assert time.monotonic() - began < STALL_SECONDS - 1, "it does not wait every time"
            holder.send_signal(signal.SIGCONT)
            assert holder.stdout and holder.stdout.readline().startswith("4 ")
            assert box.ledger().held_mib() == 1024
    finally:
        neighbour.kill()
        neighbour.communicate()
    assert any("lock cannot be taken" in line for line in box.log())
    with box.hold("alloc", PIECE_MIB) as after:
        assert after.seen.pieces == 8


def test_processes_that_are_paused_together_go_on_together(
    container: Callable[..., Container],
) -> None:
    """A machine that is paused for longer than anybody waits: all are in the ledger afterwards."""
    box = container(cap_mib=1024, faults=True)
    with stopped_in_the_ledger(box) as holder:
        waiting = box.start(box.probe_command("linked", "alloc", PIECE_MIB, "hold"))
        try:
            time.sleep(1)  # it waits for the lock
            waiting.send_signal(signal.SIGSTOP)
            time.sleep(STALL_SECONDS + 2)
            waiting.send_signal(signal.SIGCONT)
            time.sleep(0.3)  # the one that waits wakes up first
            holder.send_signal(signal.SIGCONT)
            assert holder.stdout and waiting.stdout
            pieces = [int(each.stdout.readline().split()[0]) for each in (holder, waiting)]  # type: ignore[union-attr]
            assert sum(pieces) == 8
            assert box.ledger().held_mib() == 1024
        finally:
            waiting.kill()
            waiting.communicate()
    assert box.log() == []


# --- who is alive ---


def unshare(*options: str) -> list[str]:
    """A command that runs another one in namespaces of its own."""
    return ["unshare", *options, *(() if os.geteuid() == 0 else ("-r",))]


@pytest.mark.parametrize(
    "options",
    [("-pf",), ("-pf", "--mount-proc"), ("-T", "--boottime", "100000"), ("-T", "--boottime", "-1")],
    ids=["another's /proc", "its own /proc", "a later clock", "an earlier clock"],
)
def test_whoever_lives_in_other_namespaces_is_not_taken_for_dead(
    box: Container, options: tuple[str, ...]
) -> None:
    """Its number or start time reads as another's; the lock on the ledger says that it lives."""
    with box.hold("alloc", PIECE_MIB) as outside:
        assert outside.seen.pieces == 8
        command = box.probe_command("linked", "alloc", PIECE_MIB)
        inside = box.run([*unshare(*options), *command])
        assert inside.stdout.startswith("0 "), inside.stdout + inside.stderr
    again = box.start(
        [*unshare(*options), *box.probe_command("linked", "alloc", PIECE_MIB, "hold")]
    )
    assert again.stdout and again.stdout.readline().startswith("8 ")
    try:
        assert box.probe("linked", "alloc", PIECE_MIB).pieces == 0
        beside = box.run([*unshare(*options), *box.probe_command("linked", "alloc", PIECE_MIB)])
        assert beside.stdout.startswith("0 "), beside.stderr
    finally:
        again.communicate("")


def test_two_in_one_sandbox_without_a_proc_of_its_own(box: Container) -> None:
    """There the number of each is, in /proc, that of somebody else outside."""
    probe = " ".join(box.probe_command("linked", "alloc", PIECE_MIB))
    script = f"""
        mkfifo input && {probe} hold <input >said &
        until [ -p input ]; do sleep 0.01; done
        exec 3>input
        until [ -s said ]; do sleep 0.01; done
        cat said
        {probe}
        exec 3>&-
        wait
    """
    done = box.run([*unshare("-pf"), "sh", "-c", f"cd {box.folder}; {script}"])
    first, second = done.stdout.splitlines()
    assert (first.split()[0], second.split()[0]) == ("8", "0"), done.stderr


def test_a_process_that_closed_its_descriptors_is_not_taken_for_dead(box: Container) -> None:
    assert box.call(f"{__name__}:close_and_go_on", box.probe_command("linked", "alloc", 128)) == [
        4,
        "4",
        4,
    ]


def close_and_go_on(command: list[str]) -> list[object]:
    """Take half, close all descriptors and use their numbers, ask; another takes; go on."""
    cuda = Cuda()
    for _ in range(4):
        cuda.allocate(PIECE_MIB)
    os.closerange(3, 64)
    null = [os.open("/dev/null", os.O_RDWR) for _ in range(20)]
    time.sleep(0.2)
    cuda.free_mib()  # any call: the library notices, and locks its slot again
    inside = subprocess.run(
        [*unshare("-pf", "--mount-proc"), *command], capture_output=True, text=True, check=True
    )
    time.sleep(0.2)
    rest = take_all(cuda)
    assert [os.fstat(fd).st_rdev for fd in null] == [os.stat("/dev/null").st_rdev] * 20
    return [4, inside.stdout.split()[0], rest]


def test_a_program_that_becomes_another_one_holds_nothing_of_before(box: Container) -> None:
    """The driver frees its memory at exec; number and start time stay the same."""
    command = box.probe_command("linked", "alloc", PIECE_MIB)
    assert box.call(f"{__name__}:take_and_become", command) == "8"
    assert len(box.ledger().slots) <= 2


def take_and_become(command: list[str]) -> str:
    """In a child: take half of the cap and become driverprobe; its pieces."""
    import sys

    code = "from tests.native.test_gpucap_closed import *; become(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[0]


def become(command: list[str]) -> None:
    """Never comes back."""
    cuda = Cuda()
    for _ in range(4):
        cuda.allocate(PIECE_MIB)
    os.execv(command[0], command)


# --- threads, and children ---


@pytest.mark.parametrize("mode", ["cancel", "stack"])
def test_threads_that_are_cancelled_or_have_little_stack(box: Container, mode: str) -> None:
    done = box.run([box.programs / "odd_threads", mode])
    assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr


def test_a_forked_child_charges_the_device_that_it_uses(
    fake_gpu: Callable[..., object], container: Callable[..., Container]
) -> None:
    box = container(cap_mib=1024)
    box.gpu = fake_gpu(devices=2)  # type: ignore[assignment]
    assert box.call(f"{__name__}:fork_with_two_devices") == [7, 5]


def fork_with_two_devices() -> list[int]:
    """The parent has three pieces of one device and one of the other; a child takes of that."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    for device, pieces in ((1, 1), (0, 3)):
        cuda.ok("cuCtxSetCurrent", cuda.get("cuDevicePrimaryCtxRetain", device))
        for _ in range(pieces):
            cuda.allocate(PIECE_MIB)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        mine = Cuda(context=False)
        mine.ok("cuInit", 0)
        mine.ok("cuCtxSetCurrent", mine.get("cuDevicePrimaryCtxRetain", 1))
        os.write(write, bytes([take_all(mine)]))
        os._exit(0)
    os.waitpid(child, 0)
    return [os.read(read, 1)[0], take_all(cuda)]


# --- more devices than the ledger has places for ---


@pytest.mark.parametrize("cap_mib", [1024, None])
def test_a_device_that_nobody_can_count_gives_no_memory(
    fake_gpu: Callable[..., object], container: Callable[..., Container], cap_mib: int | None
) -> None:
    box = container(cap_mib=cap_mib)
    box.gpu = fake_gpu(devices=18)  # type: ignore[assignment]
    beyond = SUCCESS if cap_mib is None else OUT_OF_MEMORY
    assert box.call(f"{__name__}:on_each_device", 18) == [SUCCESS] * 32 + [beyond] * 4
    said = ["more than 16 devices: those beyond get no memory under a cap"]
    assert [line for line in box.log() if line.startswith("more")] == said


def on_each_device(devices: int) -> list[int]:
    """What cuCtxCreate, and cuMemCreate without a context, answer on each device."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    answers = []
    for device in range(devices):
        answers.append(cuda.cuCtxCreate_v2(Number(), 0, device))
        answers.append(cuda.cuMemCreate(Number(), 2 * MIB, pinned(device=device), 0))
    return answers
