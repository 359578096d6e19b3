from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.builders import proc
from tests.unit.agent.fake_driver import MIB, FakeDriver, gpu

from gpu_scheduler.agent.driver import (
    DeviceLostError,
    DeviceMemory,
    DriverError,
    GpuProcess,
    Load,
    Vitals,
    Xid,
)
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import REOPEN_SECONDS, SLOW_SECONDS, Sampler


class Stage:
    def __init__(self, root: Path) -> None:
        self.driver = FakeDriver()
        self.sampler = Sampler(self.driver, ProcFS(root), Health())

    def messages(self, now: float) -> list[str | None]:
        return [device.message for device in self.sampler.sample(now).devices]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_devices_processes_and_gauges(stage: Stage, tmp_path: Path) -> None:
    proc(tmp_path, 5)
    stage.driver.on = {gpu(0): [GpuProcess(5, 7 * MIB), GpuProcess(6, None)]}
    stage.driver.busy = {5: 0.25}
    sample = stage.sampler.sample(0.0)
    first, second = sample.devices
    assert (sample.driver_version, sample.problem) == ("570.86.15", None)
    assert [(p.pid, p.used_bytes, p.busy_ratio) for p in first.processes] == [
        (5, 7 * MIB, 0.25),
        (6, None, 0.0),
    ]
    assert first.processes[0].process is not None
    assert first.processes[1].process is None
    assert (first.load.busy_ratio, second.processes) == (0.5, ())


def test_a_driver_that_cannot_tell_who_is_busy_is_not_taken_for_idle(
    stage: Stage, tmp_path: Path
) -> None:
    proc(tmp_path, 5)
    stage.driver.on, stage.driver.busy = {gpu(0): [GpuProcess(5, 7 * MIB)]}, None
    assert [p.busy_ratio for p in stage.sampler.sample(0.0).devices[0].processes] == [None]
    stage.driver.gauges = Load(busy_ratio=None)
    assert [p.busy_ratio for p in stage.sampler.sample(60.0).devices[0].processes] == [None]


@pytest.mark.parametrize("by_pid", [None, {5: None}])
def test_on_a_device_where_nothing_ran_no_process_was_busy_whatever_the_driver_cannot_tell(
    stage: Stage, tmp_path: Path, by_pid: Any
) -> None:
    proc(tmp_path, 5)
    stage.driver.on, stage.driver.busy = {gpu(0): [GpuProcess(5, 7 * MIB)]}, by_pid
    stage.driver.gauges = Load(busy_ratio=0.0)
    stage.driver.busy = by_pid
    assert [p.busy_ratio for p in stage.sampler.sample(0.0).devices[0].processes] == [0.0]


def test_an_xid_makes_its_device_unhealthy_at_the_next_look(stage: Stage) -> None:
    assert stage.messages(0) == [None, None]
    stage.driver.events = [Xid(gpu(1), 79)]
    assert stage.messages(3) == [None, "XID 79: the GPU has fallen off the bus"]
    assert stage.messages(6) == [None, "XID 79: the GPU has fallen off the bus"]


def test_xids_are_counted_by_device_and_number_for_good(stage: Stage) -> None:
    stage.driver.events = [Xid(gpu(0), 31), Xid(gpu(0), 31), Xid(gpu(1), 79)]
    stage.messages(0)
    stage.driver.events = [Xid(gpu(0), 13)]
    stage.driver.errors = {gpu(0): DeviceLostError("GPU is lost")}
    first, second = stage.sampler.sample(3).devices
    assert (first.xids, second.xids) == ({31: 2, 13: 1}, {79: 1})


def test_numbers_of_xids_are_not_kept_without_end(stage: Stage) -> None:
    stage.driver.events = [Xid(gpu(0), code) for code in range(1000)]
    first, _ = stage.sampler.sample(0).devices
    assert len(first.xids) == 64


def test_ecc_errors_are_passed_on(stage: Stage) -> None:
    stage.driver.vital = {gpu(0): Vitals(uncorrected_ecc=3)}
    first, second = stage.sampler.sample(0).devices
    assert (first.vitals.uncorrected_ecc, second.vitals.uncorrected_ecc) == (3, None)


def test_a_lost_device_costs_itself_alone_and_comes_back(stage: Stage) -> None:
    stage.messages(0)
    stage.driver.errors = {gpu(0): DeviceLostError("GPU is lost")}
    assert stage.messages(3) == ["NVML: GPU is lost", None]
    stage.driver.errors = {}
    assert stage.messages(6) == [None, None]


def test_nvml_is_opened_anew_while_a_device_is_lost(stage: Stage) -> None:
    stage.messages(0)
    stage.driver.errors = {gpu(0): DeviceLostError("GPU is lost")}
    for now in range(3, int(REOPEN_SECONDS) + 1, 3):
        stage.messages(now)
    assert stage.driver.opened == 1
    stage.messages(3 + REOPEN_SECONDS)
    assert stage.driver.opened == 2


def test_nothing_is_opened_anew_while_all_is_well(stage: Stage) -> None:
    for now in range(0, 300, 3):
        assert stage.messages(now) == [None, None]
    assert stage.driver.opened == 1


def test_a_device_that_is_not_listed_any_more_stays_known_and_shifts_no_other(stage: Stage) -> None:
    stage.driver.vital = {gpu(1): Vitals(uncorrected_ecc=2)}
    stage.messages(0)
    gone = stage.driver.devices.pop(0)
    stage.driver.broken = DriverError("Unknown Error")
    assert stage.sampler.sample(3).problem == "NVML: Unknown Error"
    stage.driver.broken = None
    sample = stage.sampler.sample(6)
    by_uuid = {device.facts.uuid: device.message for device in sample.devices}
    assert "does not list" in (by_uuid[gone.uuid] or "")
    assert "ECC" in (by_uuid[gpu(1)] or "")


def test_a_driver_that_is_not_there_is_a_problem_until_it_is(stage: Stage) -> None:
    stage.driver.broken = DriverError("Driver Not Loaded")
    sample = stage.sampler.sample(0)
    assert (sample.problem, sample.devices) == ("NVML: Driver Not Loaded", ())
    stage.driver.broken = None
    assert stage.messages(3) == [None, None]


def test_a_device_that_is_unreadable_from_the_start_is_found_later(stage: Stage) -> None:
    stage.driver.errors = {gpu(1): DriverError("Unknown Error")}
    assert stage.messages(0) == [None]
    stage.driver.errors = {}
    assert stage.messages(3) == [None]
    assert stage.messages(REOPEN_SECONDS) == [None, None]


def test_what_changes_slowly_is_looked_at_now_and_then(stage: Stage) -> None:
    stage.messages(0)
    stage.driver.vital = {gpu(0): Vitals(remap_failed=True)}
    assert stage.messages(SLOW_SECONDS - 1) == [None, None]
    assert stage.messages(SLOW_SECONDS)[0] is not None


def test_memory_is_read_at_every_look(stage: Stage) -> None:
    stage.messages(0)
    first = stage.driver.listed[0]
    stage.driver.listed[0] = replace(first, memory=DeviceMemory(9, 1, 5))
    assert stage.sampler.sample(1).devices[0].memory == DeviceMemory(9, 1, 5)


def test_closing_lets_go_and_the_next_look_opens(stage: Stage) -> None:
    stage.messages(0)
    stage.sampler.close()
    assert stage.driver.closed == 1
    stage.messages(3)
    assert stage.driver.opened == 2
