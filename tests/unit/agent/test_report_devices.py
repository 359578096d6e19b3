from dataclasses import replace

import pytest
from tests.unit.agent.fake_driver import MIB, facts

from gpu_scheduler.agent.driver import DeviceMemory
from gpu_scheduler.agent.report import device
from gpu_scheduler.agent.sampler import with_configured_memory
from gpu_scheduler.api.gpunode import ForeignProcess


def test_usable_is_the_total_without_the_drivers_part() -> None:
    found = device(facts(total_mib=40960, reserved_mib=512), None)
    assert (found.memory_mib, found.usable_mib) == (40960, 40448)
    assert (found.model, found.compute_capability, found.healthy) == (
        "NVIDIA A100-PCIE-40GB",
        "8.0",
        True,
    )


@pytest.mark.parametrize(
    ("total", "reserved", "usable"),
    [(10 * MIB + 1, 1, 10), (10 * MIB, 1, 9), (10 * MIB, 11 * MIB, 0), (10 * MIB, 0, 10)],
)
def test_usable_is_rounded_down(total: int, reserved: int, usable: int) -> None:
    found = device(replace(facts(), memory=DeviceMemory(total, reserved, 0)), None)
    assert found.usable_mib == usable


def test_a_device_without_memory_of_its_own_takes_the_configured_size() -> None:
    shared = replace(facts(), memory=None)
    without = device(with_configured_memory(shared, 0), None)
    assert (without.healthy, without.usable_mib) == (False, 0)
    assert "unifiedMemoryMiB" in (without.message or "")
    sized = device(with_configured_memory(shared, 65536), None)
    assert (sized.healthy, sized.usable_mib) == (True, 65536)


def test_the_configured_size_is_for_devices_without_memory_alone() -> None:
    assert device(with_configured_memory(facts(), 1), None).usable_mib == 40448


def test_a_device_cut_up_by_mig_is_not_shared() -> None:
    found = device(replace(facts(), mig=True), None)
    assert not found.healthy
    assert "MIG" in (found.message or "")


def test_trouble_comes_with_its_message() -> None:
    assert device(facts(), "XID 79").message == "XID 79"
    assert not device(facts(), "XID 79").healthy
    assert len(device(facts(), "x" * 600).message or "") == 512


def test_no_more_foreign_processes_than_the_object_holds() -> None:
    many = [ForeignProcess(pid=n, name="x", used_mib=None) for n in range(40)]
    assert len(device(facts(), None, many).foreign_processes or ()) == 16
    assert device(facts(), None, []).foreign_processes is None
