"""Where the cap comes from, that it follows the annotation live, and what garbage does to it."""

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, Cuda, Number


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


@pytest.mark.parametrize(("file", "variable"), [(512, 1024), (1024, 512)])
def test_the_lesser_of_file_and_environment_holds(box: Container, file: int, variable: int) -> None:
    box.limit_file.write_text(f"{file}\n")
    box.cap_mib = variable
    assert box.probe("linked", "alloc", 128).total_mib == 512


def test_without_a_source_there_is_no_cap(box: Container) -> None:
    box.cap_mib = None
    assert box.probe("linked", "alloc", 128, "context").total_mib == box.gpu.usable_mib


GARBAGE = [
    "",
    "   \n",
    "-5",
    "0",
    "lots",
    "12x",
    "1e3",
    "99999999999999999999999",
    "\x00\x01",
    "512.5",
]


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_in_the_file(box: Container, text: str) -> None:
    box.limit_file.write_text(text)
    for _ in range(2):
        found = box.probe("linked", "alloc", 128)
        assert (found.pieces, found.answer, found.total_mib) == (0, OUT_OF_MEMORY, 0)
    (line,) = box.log()  # once, not once per process
    assert str(box.limit_file) in line
    assert "not a number of MiB" in line and "nothing is given out" in line


@pytest.mark.parametrize("text", [text for text in GARBAGE if "\x00" not in text])
def test_garbage_in_the_environment_is_no_cap(box: Container, text: str) -> None:
    box.cap_mib = text
    assert box.probe("linked", "alloc", 128, "once").total_mib == box.gpu.usable_mib
    (line,) = box.log()
    assert "GPU_MEMORY_LIMIT_MIB" in line
    box.limit_file.write_text("512")
    assert box.probe("linked", "alloc", 128).total_mib == 512


def test_a_folder_in_place_of_the_file_gives_out_nothing(box: Container) -> None:
    box.limit_file.mkdir()
    assert box.probe("linked", "alloc", 128).pieces == 0


def test_a_huge_cap_is_the_device(box: Container) -> None:
    box.cap_mib = None
    box.limit_file.write_text(str(1 << 30))
    found = box.probe("linked", "alloc", 4096)
    assert (found.total_mib, found.answer) == (box.gpu.usable_mib, OUT_OF_MEMORY)


def say(*words: object) -> None:
    """A line to the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def follow_the_file() -> None:
    """Tell, whenever a line comes in, how many pieces of 128 MiB can be taken now, to keep."""
    cuda = Cuda()
    say("ready")
    while input() != "end":
        taken = 0
        while cuda.cuMemAlloc_v2(Number(), 128 * MIB) == 0:
            taken += 1
        total = Number()
        cuda.ok("cuMemGetInfo_v2", None, total)
        say(taken, int(total) // MIB, int(cuda.free_mib()))


def ask(process: subprocess.Popen[str]) -> list[int]:
    """One line to it and one back."""
    assert process.stdin and process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    return [int(word) for word in process.stdout.readline().split()]


def swap(box: Container, text: str) -> None:
    """As the kubelet does it: a new file, and a link that is moved to it in one step."""
    fresh = box.folder / f"data-{time.monotonic_ns()}"
    fresh.write_text(text)
    link = box.folder / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh)
    link.replace(box.limit_file)
    time.sleep(0.25)  # it is looked at every 100 ms


def use_up_descriptors() -> None:
    """Between two looks at the limit, take all descriptors there are; then give them back."""
    cuda = Cuda()
    say("ready")
    taken: list[int] = []
    for line in sys.stdin:
        if line == "take\n":
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(0))
        elif line == "give\n":
            while taken:
                os.close(taken.pop())
        time.sleep(0.25)  # so that it is looked at
        say(cuda.cuMemAlloc_v2(Number(), 768 * MIB))


def test_without_descriptors_the_last_limit_stays(box: Container) -> None:
    box.cap_mib = None
    swap(box, "512")
    process = box.gpu.start_call(f"{__name__}:use_up_descriptors", **box.environment)

    def after(word: str) -> int:
        assert process.stdin and process.stdout
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert after("look") == OUT_OF_MEMORY
        assert after("take") == OUT_OF_MEMORY
        swap(box, "1024")  # cannot be read now
        assert after("look") == OUT_OF_MEMORY
        assert after("give") == 0, "and is read as soon as it can be"
    finally:
        process.kill()
        process.communicate()


def test_a_change_while_it_is_being_written_leaves_the_last_limit(box: Container) -> None:
    """As a shell's redirection does it: the file is empty for a while."""
    box.cap_mib = None
    box.limit_file.write_text("512")
    process = box.gpu.start_call(f"{__name__}:follow_the_file", **box.environment)
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert ask(process) == [4, 512, 0]
        box.limit_file.write_text("")
        time.sleep(0.25)
        assert ask(process) == [0, 512, 0]
        box.limit_file.write_text("640")
        time.sleep(0.25)
        assert ask(process) == [1, 640, 0]
        box.limit_file.unlink()
        time.sleep(0.25)
        assert ask(process) == [0, 640, 0]
    finally:
        process.kill()
        process.communicate()


def test_a_live_change_up_and_down(box: Container) -> None:
    box.cap_mib = None
    swap(box, "512")
    process = box.gpu.start_call(f"{__name__}:follow_the_file", **box.environment)
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert ask(process) == [4, 512, 0]
        swap(box, "1024")
        assert ask(process) == [4, 1024, 0]
        swap(box, "768")  # below what it holds: nothing is taken away, nothing more is given
        assert ask(process) == [0, 768, 0]
        swap(box, "junk")
        assert ask(process) == [0, 768, 0]
        swap(box, "1280")
        assert ask(process) == [2, 1280, 0]
    finally:
        process.kill()
        process.communicate()
