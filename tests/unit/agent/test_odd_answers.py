"""NVML answers anything at any call: no exception leaves a look, and nothing is made up."""

import math
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from tests.unit.agent.builders import container, proc
from tests.unit.agent.fake_driver import MIB, facts, gpu
from tests.unit.agent.odd_driver import OddDriver

from gpu_scheduler.agent import report
from gpu_scheduler.agent.driver import (
    DeviceLostError,
    DeviceMemory,
    DriverError,
    GpuProcess,
    Load,
    UnsupportedError,
    Vitals,
    Xid,
)
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.plausible import MOST_BYTES
from gpu_scheduler.agent.poll import PodSnapshot, Poll, Poller
from gpu_scheduler.agent.sampler import REOPEN_SECONDS, Sampler
from gpu_scheduler.agent.watchdog import Watchdog
from gpu_scheduler.api.gpunode import GPUNodeStatus

PID = 4_000_000_000
LOOKS = 4

odd_numbers = st.sampled_from(
    [None, -1, 0, 1, 1 << 40, (1 << 64) - 1, 1 << 80, math.nan, math.inf, -math.inf, "7", b"", True]
)
odd_texts = st.sampled_from([None, "", "x" * 5000, "GPU-\n", "\ud800", "GPU-\0", 7, b"GPU-x"])
odd_things = st.one_of(odd_numbers, odd_texts, st.just([]), st.just({}), st.just(object()))
errors = st.sampled_from(
    [
        DriverError("Unknown Error"),
        DeviceLostError("GPU is lost"),
        UnsupportedError("Not Supported"),
        RuntimeError("nobody foresaw it"),
        TypeError("nor this"),
        OverflowError("nor that"),
        IndexError("a device vanished between count and handle"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"),
    ]
)


def odd(data: st.DataObject, honest: Any) -> Any:
    """An answer of the right kind with some odd part, or of no kind at all."""
    if isinstance(honest, DeviceMemory | Load | Vitals) or hasattr(honest, "uuid"):
        name = data.draw(st.sampled_from([f.name for f in fields(honest)]))
        return replace(honest, **{name: data.draw(odd_things)})
    if isinstance(honest, list):
        pid, amount = data.draw(odd_things), data.draw(odd_things)
        return [*honest, data.draw(st.sampled_from([GpuProcess(pid, amount), Xid(pid, amount)]))]
    if isinstance(honest, tuple):
        return ({data.draw(odd_numbers): data.draw(odd_numbers)}, data.draw(odd_numbers))
    return data.draw(odd_things)


class Stage:
    def __init__(self, root: Path, driver: OddDriver) -> None:
        procfs = proc(root, PID)
        driver.on = {gpu(0): [GpuProcess(PID, 1000 * MIB)]}
        self.driver = driver
        sampler = Sampler(driver, procfs, Health())
        self.poller = Poller(sampler, procfs, Watchdog(tolerance_mib=512))
        self.now = 0.0

    def look(self) -> tuple[Poll, GPUNodeStatus]:
        ours = container()
        known = PodSnapshot({ours.pod.uid: (ours,)}, {})
        found = self.poller.poll(self.now, "t", known)
        self.now += REOPEN_SECONDS
        return found, report.status(found, found.usage.foreign, None)


@given(data=st.data())
def test_no_exception_leaves_a_look_and_what_cannot_be_is_absent(data: st.DataObject) -> None:
    def draw(call: str, honest: Any) -> Any:
        how = data.draw(st.sampled_from(["honest", "honest", "odd", "error"]), label=call)
        if how == "error":
            raise data.draw(errors)
        return honest if how == "honest" else odd(data, honest)

    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), OddDriver(draw))
        metrics = AgentMetrics("n1")
        for _ in range(LOOKS):
            found, said = stage.look()
            GPUNodeStatus.model_validate(said.to_json())
            for device in found.sample.devices:
                assert device.facts.uuid
                assert device.facts.memory is None or 0 < device.facts.memory.total_bytes
                if device.memory is not None:
                    assert 0 <= device.memory.used_bytes <= device.memory.total_bytes <= MOST_BYTES
                if not device.readable:
                    assert device.message
                for seen in device.processes:
                    assert seen.pid > 0
                    assert seen.used_bytes is None or 0 <= seen.used_bytes <= MOST_BYTES
            metrics.sample, metrics.usage = found.sample, found.usage
            for line in generate_latest(metrics.registry).decode().splitlines():
                least = -math.inf if line.startswith("gpusched_clock_ahead_seconds") else 0
                assert line.startswith("#") or least <= float(line.split()[-1]) < math.inf


def honest(call: str, answer: Any) -> Any:
    return answer


@pytest.mark.parametrize("used", [None, -5, 1 << 63, math.nan, "many"])
def test_memory_that_cannot_be_is_absent_and_no_nought(tmp_path: Path, used: Any) -> None:
    stage = Stage(tmp_path, OddDriver(honest))
    stage.driver.on = {gpu(0): [GpuProcess(PID, used)]}
    found, _ = stage.look()
    assert found.usage.containers[0].uses[0].used_mib is None
    assert found.sample.devices[0].processes[0].used_bytes is None


@pytest.mark.parametrize(
    "memory", [DeviceMemory(0, 0, 0), DeviceMemory(-1, 0, 0), DeviceMemory(1 << 70, 0, 0)]
)
def test_a_device_whose_memory_cannot_be_costs_itself_alone(
    tmp_path: Path, memory: DeviceMemory
) -> None:
    stage = Stage(tmp_path, OddDriver(honest))
    stage.driver.devices = [facts(0), replace(facts(1), memory=memory)]
    _, said = stage.look()
    assert [device.uuid for device in said.devices] == [gpu(0)]
    stage.driver.devices = [facts(0), facts(1)]
    _, said = stage.look()
    assert [device.healthy for device in said.devices] == [True, True]


@pytest.mark.parametrize("count", [-1, 10**9, None, 2.5, "two"])
def test_a_number_of_devices_that_cannot_be_is_a_driver_that_does_not_answer(
    tmp_path: Path, count: Any
) -> None:
    stage = Stage(tmp_path, OddDriver(lambda call, a: count if call == "count" else a))
    found, _ = stage.look()
    assert "devices" in (found.sample.problem or "")


def test_a_process_of_no_pid_is_nobodys(tmp_path: Path) -> None:
    stage = Stage(tmp_path, OddDriver(honest))
    stage.driver.on = {gpu(0): [GpuProcess(pid, 5) for pid in (-1, 0, 1 << 70)]}  # one per oddity
    found, _ = stage.look()
    assert found.sample.devices[0].processes == ()


def test_a_version_and_a_model_that_are_no_text_are_written_all_the_same(tmp_path: Path) -> None:
    driver = OddDriver(lambda call, honest: "\ud800" if call == "version" else honest)
    driver.devices = [replace(each, model="A\ud800") for each in driver.devices]
    _, said = Stage(tmp_path, driver).look()
    assert said.driver_version == "?"
    assert {device.model for device in said.devices} == {"A?"}
