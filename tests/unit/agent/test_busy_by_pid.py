"""What NVML's samples per process say, also those that cannot be."""

from dataclasses import dataclass

import pynvml
import pytest

from gpu_scheduler.agent.nvml import NvmlDriver

Samples = list[tuple[int, int, int]]  # pid, time stamp, smUtil


@dataclass
class Sample:
    pid: int
    timeStamp: int  # noqa: N815  (NVML's name)
    smUtil: int  # noqa: N815


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Samples:
    """The driver's buffer."""
    buffer: Samples = []

    def ask(handle: object, since: int) -> list[Sample]:
        found = [Sample(*each) for each in buffer if each[1] > since]
        if not found:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found

    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", ask)
    monkeypatch.setattr(NvmlDriver, "_handle", lambda self, index: None)
    return buffer


def test_several_samples_of_a_process_are_their_mean(kept: Samples) -> None:
    kept += [(7, 10, 20), (7, 20, 60), (8, 15, 100)]
    assert NvmlDriver().busy_by_pid(0, 0) == ({7: 0.4, 8: 1.0}, 20)
    assert NvmlDriver().busy_by_pid(0, 20) == ({}, 20), "nothing has run since"


def test_what_cannot_be_is_neither_all_nor_nothing(kept: Samples) -> None:
    kept += [(7, 1 << 62, 4294967295), (8, 10, 30), (9, 10, 101), (9, 11, 50)]
    assert NvmlDriver().busy_by_pid(0, 0) == ({7: None, 8: 0.3, 9: 0.5}, 11)


def test_a_clock_that_was_set_back_makes_nobody_idle(kept: Samples) -> None:
    kept += [(7, 100, 42)]
    assert NvmlDriver().busy_by_pid(0, 5000) == (None, 100)
    kept += [(7, 110, 42)]
    assert NvmlDriver().busy_by_pid(0, 100) == ({7: 0.42}, 110)


def test_an_empty_buffer_is_an_idle_device(kept: Samples) -> None:
    assert NvmlDriver().busy_by_pid(0, 5000) == ({}, 0)
