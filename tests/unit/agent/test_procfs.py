import os
from pathlib import Path

import pytest
from tests.unit.agent.builders import proc

from gpu_scheduler.agent.procfs import ProcFS

LIB = "7f00-7f01 r-xp 00000000 08:01 12 "


def test_a_command_may_hold_parentheses_and_blanks(tmp_path: Path) -> None:
    procfs = proc(tmp_path, 5)
    (tmp_path / "5" / "stat").write_text("5 (a) R 1 (x) S " + "0 " * 18 + "4242 0\n")
    found = procfs.process(5)
    assert found is not None
    assert (found.command, found.started) == ("a) R 1 (x", 4242)


def test_our_own_process_is_read_as_it_is() -> None:
    found = ProcFS().process(os.getpid())
    assert found is not None
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert found.started == ticks == ProcFS().started(os.getpid())
    assert ProcFS().inner_pid(os.getpid()) == os.getpid()


def test_a_process_that_is_gone_is_none(tmp_path: Path) -> None:
    procfs = ProcFS(tmp_path)
    assert procfs.process(9) is None
    assert procfs.started(9) is None
    assert procfs.inner_pid(9) is None
    assert procfs.has_library(9) is None


@pytest.mark.parametrize(
    ("maps", "found"),
    [
        ("", False),
        (LIB + "/usr/lib/libc.so.6\n", False),
        (LIB + "/opt/gpu-scheduler/lib/libgpucap.so\n", True),
        (LIB + "/opt/gpu-scheduler/lib/libgpucap.so (deleted)\n", True),
        (LIB + "/tmp/not-libgpucap.so\n", False),
        (LIB + "/tmp/libgpucap.so.txt\n", False),
    ],
)
def test_the_library_is_found_among_the_mappings(tmp_path: Path, maps: str, found: bool) -> None:
    assert proc(tmp_path, 5, maps=maps).has_library(5) is found


def test_the_innermost_pid_is_the_containers(tmp_path: Path) -> None:
    assert proc(tmp_path, 5).inner_pid(5) == 1005
