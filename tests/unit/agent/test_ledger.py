import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.agent import ledger_file
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent import ledger
from gpu_scheduler.agent.ledger import LedgerError, MemoryMarks, open_inside


def test_a_process_is_found_by_pid_and_start_time(tmp_path: Path) -> None:
    ledger_file.make(tmp_path, gpu(0), slot=3, pid=1005, started=7)
    with open_inside(tmp_path) as opened:
        assert opened.devices() == {gpu(0): 0}
        assert opened.find(1005, 7) == 3
        assert opened.find(1005, 8) is None
        assert opened.find(1006, 7) is None


def test_slots_that_were_never_taken_are_not_searched(tmp_path: Path) -> None:
    path = ledger_file.make(tmp_path, gpu(0), slot=3)
    with path.open("r+b") as file:
        file.seek(ledger.SLOTS_SEEN_AT)
        file.write((3).to_bytes(4, "little"))
    with open_inside(tmp_path) as opened:
        assert opened.find(1005, 7) is None


def test_a_written_context_is_the_only_change(tmp_path: Path) -> None:
    path = ledger_file.make(tmp_path, gpu(0))
    ledger_file.charge(path, 123)
    before = path.read_bytes()
    with open_inside(tmp_path) as opened:
        opened.write_context(3, 0, 300 << 20)
        held = opened.held(3, 0)
    assert held == (123, 300 << 20)
    after = path.read_bytes()
    changed = [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    start = ledger.HEADER_BYTES + 3 * ledger.SLOT_BYTES + ledger.SLOT_DEVICES_AT + 8
    assert changed
    assert all(start <= at < start + 8 for at in changed)


def marks(root: Path) -> dict[str, MemoryMarks]:
    with open_inside(root) as opened:
        return opened.marks()


def test_peak_and_refusals_are_read_by_device(tmp_path: Path) -> None:
    path = ledger_file.make(tmp_path, gpu(0))
    ledger_file.mark(path, (300 << 20) + 1, 7)
    assert marks(tmp_path) == {gpu(0): MemoryMarks(301, 7)}


def test_an_earlier_library_keeps_no_marks(tmp_path: Path) -> None:
    path = ledger_file.make(tmp_path, gpu(0))
    assert marks(tmp_path) == {gpu(0): MemoryMarks(None, None)}
    ledger_file.mark(path, 1 << 20, 7, keeps=2)
    assert marks(tmp_path) == {gpu(0): MemoryMarks(None, None)}, "a word of later ones"


def test_marks_that_cannot_be_are_unknown(tmp_path: Path) -> None:
    ledger_file.mark(ledger_file.make(tmp_path, gpu(0)), (1 << 64) - 1, (1 << 64) - 1)
    assert marks(tmp_path) == {gpu(0): MemoryMarks(None, None)}


def test_without_a_ledger_there_are_no_marks(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        marks(tmp_path)
    garbage(ledger_file.make(tmp_path, gpu(0)))
    with pytest.raises(LedgerError):
        marks(tmp_path)


def truncated(path: Path) -> None:
    os.truncate(path, 5000)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(ledger.FILE_BYTES))


def of_another_version(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8)
        file.write((2).to_bytes(4, "little"))


def linked_twice(path: Path) -> None:
    os.link(path, path.with_name("other"))


def a_symbolic_link(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def below_a_link(path: Path) -> None:
    folder = path.parent
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


def missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        truncated,
        empty,
        garbage,
        of_another_version,
        linked_twice,
        a_symbolic_link,
        a_fifo,
        a_folder,
        below_a_link,
        missing,
    ],
)
def test_what_a_tenant_puts_there_is_refused(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(ledger_file.make(tmp_path, gpu(0)))
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises((LedgerError, OSError)), open_inside(tmp_path):
        pass
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_file_that_shrinks_while_it_is_open_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = ledger_file.make(tmp_path, gpu(0))
    with open_inside(tmp_path) as opened:
        os.truncate(path, 4096)
        with pytest.raises(LedgerError):
            opened.held(3, 0)
        with pytest.raises(LedgerError):
            opened.find(1005, 7)
