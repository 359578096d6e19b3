"""Where the cap comes from, that it follows the annotation live, and what garbage does to it."""

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


def test_the_file_comes_before_the_environment(box: Container) -> None:
    box.limit_file.write_text("512\n")
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
        assert (found.pieces, found.answer, found.total_mib) == (8, OUT_OF_MEMORY, 1024)
    (line,) = box.log()  # once, not once per process
    assert str(box.limit_file) in line
    assert "not a number of MiB" in line


@pytest.mark.parametrize("text", [text for text in GARBAGE if "\x00" not in text])
def test_garbage_in_the_environment_as_well(box: Container, text: str) -> None:
    box.limit_file.write_text("nonsense")
    box.cap_mib = text
    assert box.probe("linked", "alloc", 128, "once").total_mib == box.gpu.usable_mib
    assert len(box.log()) == 2


def test_a_folder_in_place_of_the_file(box: Container) -> None:
    box.limit_file.mkdir()
    assert box.probe("linked", "alloc", 128).pieces == 8


def test_a_huge_cap_is_the_device(box: Container) -> None:
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


def test_a_live_change_up_and_down(box: Container) -> None:
    swap(box, "512")
    process = box.gpu.start_call(f"{__name__}:follow_the_file", **box.environment)
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert ask(process) == [4, 512, 0]
        swap(box, "1024")
        assert ask(process) == [4, 1024, 0]
        swap(box, "768")  # below what it holds: nothing is taken away, nothing more is given
        assert ask(process) == [0, 768, 0]
        swap(box, "junk")  # the environment's
        assert ask(process) == [0, 1024, 0]
        swap(box, "1280")
        assert ask(process) == [2, 1280, 0]
    finally:
        process.kill()
        process.communicate()
