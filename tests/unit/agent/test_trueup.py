import logging
import os
from pathlib import Path

import pytest
from tests.unit.agent import ledger_file
from tests.unit.agent.builders import container, proc, seen, use
from tests.unit.agent.fake_driver import MIB, gpu

from gpu_scheduler.agent.trueup import TrueUp
from gpu_scheduler.agent.usage import ContainerUse, Use


class Stage:
    """A process with pid 5 here and 1005 in its container, which has a ledger."""

    def __init__(self, root: Path) -> None:
        self.procfs = proc(root, 5)
        self.path = ledger_file.make(root / "5" / "root", gpu(0), pid=1005, started=7)
        self.true_up = TrueUp(self.procfs, lambda: 100.0)

    def look(self, nvml_mib: int | None, ledger_mib: int, *, promised: bool = True) -> int:
        ledger_file.charge(self.path, ledger_mib * MIB)
        shown = use(seen(5, nvml_mib), of=container(promised=promised))
        self.true_up.update([shown])
        return ledger_file.context(self.path) // MIB


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_context_is_what_nvml_shows_above_the_allocations(stage: Stage) -> None:
    assert stage.look(1300, 1000) == 0, "one look may have come between two allocations"
    assert stage.look(1300, 1000) == 300


def test_a_free_between_the_two_readings_is_not_taken_for_a_context(stage: Stage) -> None:
    for _ in range(3):
        stage.look(1300, 1000)
    assert stage.look(1300, 200) == 300
    assert stage.look(500, 200) == 300


def test_a_context_that_grew_is_seen_after_three_looks(stage: Stage) -> None:
    for _ in range(3):
        stage.look(1300, 1000)
    assert [stage.look(1400, 1000) for _ in range(3)] == [300, 300, 400]


def test_a_context_that_shrank_is_seen_at_once(stage: Stage) -> None:
    for _ in range(3):
        stage.look(1300, 1000)
    assert stage.look(1100, 1000) == 100


def test_more_in_the_ledger_than_nvml_shows_is_no_negative_context(stage: Stage) -> None:
    assert [stage.look(100, 1000) for _ in range(3)] == [0, 0, 0]


def test_what_nvml_does_not_know_is_not_written(stage: Stage) -> None:
    assert [stage.look(None, 1000) for _ in range(3)] == [0, 0, 0]


def test_containers_without_the_library_are_left_alone(stage: Stage) -> None:
    assert [stage.look(1300, 1000, promised=False) for _ in range(3)] == [0, 0, 0]


def test_a_pid_that_was_reused_is_left_alone(stage: Stage, tmp_path: Path) -> None:
    proc(tmp_path, 5, started=8)
    assert [stage.look(1300, 1000) for _ in range(3)] == [0, 0, 0]


def test_a_bad_ledger_is_complained_of_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    os.truncate(stage.path, 100)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            stage.true_up.update([use(seen(5, 1300))])
    assert [r.message for r in caplog.records] == [
        "ledger of process 5: 100 bytes, expected 659456"
    ]


def test_no_ledger_yet_is_nothing_to_complain_of(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.path.unlink()
    stage.true_up.update([use(seen(5, 1300))])
    assert not caplog.records


def test_the_first_settled_figure_is_what_a_context_takes_there(stage: Stage) -> None:
    stage.look(1300, 1000)
    stage.look(1310, 1000)
    assert stage.true_up.costs.mib() == {}, "an allocation may have come in between"
    stage.look(1310, 1000)
    assert stage.true_up.costs.mib() == {gpu(0): 304}
    for _ in range(9):
        stage.look(1450, 1000)  # with the libraries that it has loaded since
    assert stage.true_up.costs.mib() == {gpu(0): 304}


def test_a_process_without_a_slot_is_charged_to_its_container_at_the_first_look(
    stage: Stage, tmp_path: Path
) -> None:
    """It sees the same ledger by a root of its own, or none."""
    proc(tmp_path, 6)
    proc(tmp_path, 8)
    (tmp_path / "6" / "root").symlink_to(tmp_path / "5" / "root")
    shown = use(seen(5, 1300), seen(6, 800), seen(8, 50))
    stage.true_up.update([shown])
    assert ledger_file.unslotted(stage.path) == (850 * MIB, 115_000)
    stage.true_up.update([use(seen(5, 1300))])
    assert ledger_file.unslotted(stage.path)[0] == 0


def test_who_lost_its_slot_is_charged_without_it(stage: Stage, tmp_path: Path) -> None:
    """The ledger was replaced beside a process that calls nothing."""
    for _ in range(3):
        assert stage.look(1300, 1000) in (0, 300)
    ledger_file.make(tmp_path / "5" / "root", gpu(0), pid=1009)
    stage.true_up.update([use(seen(5, 1300))])
    assert ledger_file.unslotted(stage.path)[0] == 1300 * MIB
    stage.path.unlink()
    ledger_file.make(tmp_path / "5" / "root", gpu(0), pid=1005)
    assert stage.look(1300, 1000) == 0
    assert ledger_file.unslotted(stage.path)[0] == 0
    assert stage.look(1300, 1000) == 300


def test_a_device_that_does_not_answer_changes_nothing(stage: Stage, tmp_path: Path) -> None:
    proc(tmp_path, 6)
    stage.true_up.update([use(seen(5, 1300), seen(6, 800))])
    silent = ContainerUse(container(), (Use(gpu(0), 20000, (), readable=False),))
    stage.true_up.update([silent])
    assert ledger_file.unslotted(stage.path)[0] == 800 * MIB


def test_a_device_that_the_ledger_does_not_know_is_left_alone(stage: Stage) -> None:
    other = ContainerUse(container(), (Use(gpu(1), 20000, (seen(5, 700),)),))
    stage.true_up.update([other])
    assert [ledger_file.unslotted(stage.path, device=d)[0] for d in range(2)] == [0, 0]
