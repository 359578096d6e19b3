import os
from pathlib import Path

import pytest
from tests.unit.agent import ledger_file
from tests.unit.agent.builders import container, proc, seen, use
from tests.unit.agent.fake_driver import MIB, gpu

from gpu_scheduler.agent.history.marks import Marks
from gpu_scheduler.agent.ledger import MemoryMarks


class Stage:
    """A process with a ledger that keeps marks, and a cap of 20000 MiB."""

    def __init__(self, root: Path) -> None:
        self.procfs = proc(root, 5)
        self.path = ledger_file.make(root / "5" / "root", gpu(0))

    def read(self, *, promised: bool = True) -> list[MemoryMarks]:
        shown = use(seen(5), of=container(promised=promised))
        return list(Marks(self.procfs).read([shown]).values())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    ledger_file.mark(made.path, 300 * MIB, 7)
    return made


def test_marks_are_those_of_the_containers_ledger(stage: Stage) -> None:
    assert stage.read() == [MemoryMarks(300, 7)]


def test_a_peak_above_the_cap_is_the_cap(stage: Stage) -> None:
    ledger_file.mark(stage.path, 30000 * MIB, 7)
    assert stage.read() == [MemoryMarks(20000, 7)]


def test_a_container_without_the_library_has_none(stage: Stage) -> None:
    assert stage.read(promised=False) == []


def test_a_pid_that_was_reused_says_nothing(stage: Stage, tmp_path: Path) -> None:
    proc(tmp_path, 5, started=8)
    assert stage.read() == []


def test_a_ledger_that_cannot_be_read_says_nothing(stage: Stage) -> None:
    os.truncate(stage.path, 100)
    assert stage.read() == []
    stage.path.unlink()
    assert stage.read() == []
