"""The fake NVML, asked by NVIDIA's own bindings: inventory, memory, processes, failures, limits."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.fake_gpu import FakeGPU, uuid_of
from tests.native.test_fake_cuda import end, line_of

HERE = "tests.native.nvml_cases"
HOLDS = "tests.native.driver_cases:holds"
UNINITIALIZED, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, TIMEOUT = 1, 2, 4, 6, 10
FUNCTION_NOT_FOUND, IS_LOST, VERSION_MISMATCH = 13, 15, 25


def test_the_inventory_is_the_configuration(fake_gpu: Callable[..., FakeGPU]) -> None:
    gpu = fake_gpu(devices=2)
    assert gpu.call(f"{HERE}:inventory") == {
        "driver": "570.86.15",
        "cuda": 12080,
        "count": 2,
        "name": "NVIDIA A100-PCIE-40GB",
        "uuid": gpu.uuids[0],
        "capability": [8, 0],
        "mig": [0, 0],
        "bus": "00000000:01:00.0",
        "newer": [40960, 512, 0, 40448],
        "older": [40960, 512, 40448],
    }


def test_calls_out_of_order_get_nvmls_errors(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:out_of_order") == {
        "before init": UNINITIALIZED,
        "shutdown": UNINITIALIZED,
        "null": INVALID_ARGUMENT,
        "index": INVALID_ARGUMENT,
        "uuid": NOT_FOUND,
        "version": VERSION_MISMATCH,
        "after shutdown": UNINITIALIZED,
    }


def test_nvml_sees_what_the_container_was_given_whatever_cuda_is_told(
    two_of_three: tuple[FakeGPU, str],
) -> None:
    gpu, given = two_of_three
    seen = gpu.call(f"{HERE}:uuids", FAKEGPU_DEV=given, CUDA_VISIBLE_DEVICES="1")
    assert seen == [uuid_of(0), uuid_of(2)]


def test_processes_are_listed_with_their_pids_and_memory_until_they_die(gpu: FakeGPU) -> None:
    first, second = (gpu.start_call(HOLDS, mib) for mib in (1000, 2000))
    try:
        assert (line_of(first), line_of(second)) == ("0", "0")
        found = gpu.call(f"{HERE}:processes")
        assert sorted(found) == sorted([[first.pid, 1300], [second.pid, 2300]])
        end(first)
        assert gpu.call(f"{HERE}:processes") == [[second.pid, 2300]]
        assert gpu.call(f"{HERE}:inventory")["newer"] == [40960, 512, 2300, 38148]
    finally:
        end(first, second)


def test_a_process_finds_itself(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:own_process") == [364, 364]


def test_memory_of_processes_can_be_not_available(gpu: FakeGPU) -> None:
    gpu.configure(na="used")
    process = gpu.start_call(HOLDS, 1000)
    try:
        line_of(process)
        assert gpu.call(f"{HERE}:processes") == [[process.pid, None]]
    finally:
        end(process)


@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace takes root")
def test_pids_are_those_of_the_readers_namespace(gpu: FakeGPU) -> None:
    inside = ["unshare", "--pid", "--fork", "--kill-child"]
    process = gpu.start([*inside, *gpu.child(HOLDS, 500)])
    try:
        assert line_of(process) == "0"
        [[pid, mib]] = gpu.call(f"{HERE}:processes")
        assert mib == 800
        parent = Path(f"/proc/{pid}/status").read_text().split("PPid:")[1].split()[0]
        assert int(parent) == process.pid, "the pid on the host, not 1"
        done = gpu.run([*inside, *gpu.child(f"{HERE}:processes")])
        assert json.loads(done.stdout) == [], "another container's processes have no pid here"
    finally:
        end(process)


def test_utilisation_is_that_of_processes_and_devices(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:busy") == [NOT_FOUND]
    process = gpu.start_call(HOLDS, 500)
    try:
        line_of(process)
        gpu.control("busy", process.pid, 73)
        assert gpu.call(f"{HERE}:busy") == [[process.pid, 73]]
    finally:
        end(process)


def test_injected_figures_are_told(gpu: FakeGPU) -> None:
    [uuid] = gpu.uuids
    assert gpu.call(f"{HERE}:health")["rows"] == [0, 0, 0, 0]
    for name, number in {
        "gpu-percent": 91,
        "memory-percent": 12,
        "milliwatts": 250_000,
        "temperature": 84,
        "ecc-corrected": 1 << 40,
        "ecc-uncorrected": 3,
        "retired-pages": 5,
        "remapped-rows": 4,
        "remap-pending": 1,
        "remap-failed": 1,
        "recovery-action": 2,
    }.items():
        gpu.set(uuid, name, number)
    assert gpu.call(f"{HERE}:health") == {
        "rates": [91, 12],
        "watts": 250,
        "celsius": 84,
        "ecc": [1 << 40, 3],
        "retired": 5,
        "rows": [0, 4, 1, 1],
        "action": 2,
    }


def test_xids_reach_who_registered_for_them_before(gpu: FakeGPU) -> None:
    [uuid] = gpu.uuids
    gpu.call(f"{HERE}:uuids")  # makes the state
    gpu.xid(uuid, 13)
    process = gpu.start_call(f"{HERE}:waits_for_xids")
    try:
        assert line_of(process) == "waiting"
        gpu.xid(uuid, 79)
        gpu.xid(uuid, 48)
        assert json.loads(line_of(process)) == [79, 48, TIMEOUT]
    finally:
        end(process)


def test_a_lost_device_says_so_and_its_neighbour_goes_on(
    fake_gpu: Callable[..., FakeGPU],
) -> None:
    gpu = fake_gpu(devices=2)
    process = gpu.start_call(f"{HERE}:sees_it_go")
    try:
        assert line_of(process) == "0"
        gpu.set(gpu.uuids[0], "lost", 1)
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        assert line_of(process) == str(IS_LOST)
        assert gpu.call(f"{HERE}:lost") == [IS_LOST, 0]
    finally:
        end(process)


def test_old_drivers_have_no_limits_per_cgroup(gpu: FakeGPU, tmp_path: Path) -> None:
    assert gpu.call(f"{HERE}:set_limit", str(tmp_path), 1000) == FUNCTION_NOT_FOUND


@pytest.mark.skipif(os.geteuid() != 0, reason="setting a limit takes root")
def test_a_cgroups_limit_holds_for_it_and_what_is_below_it_and_nobody_else(
    fake_gpu: Callable[..., FakeGPU], tmp_path: Path
) -> None:
    gpu = fake_gpu(memory_limits=1)
    inside = tmp_path / "pod" / "container"
    inside.mkdir(parents=True)
    assert gpu.call(f"{HERE}:set_limit", str(tmp_path / "none"), 1000) == NOT_FOUND
    assert gpu.call(f"{HERE}:set_limit", str(tmp_path / "pod"), 1000) == 0
    assert gpu.call(f"{HERE}:get_limit", str(tmp_path / "pod")) == [0, 1000, 0]
    assert gpu.state()["limits"][0]["path"] == str(tmp_path / "pod")

    total, got, nvml_total, managed = gpu.call(
        f"{HERE}:lives_in_a_cgroup", FAKEGPU_CGROUP=str(inside)
    )
    assert (total, got, nvml_total) == (1000, 700, 1000), "the context's 300 MiB count"
    assert managed == 0, "managed memory is not held by it, as documented"
    elsewhere = gpu.call(f"{HERE}:lives_in_a_cgroup", FAKEGPU_CGROUP=str(tmp_path))
    assert elsewhere[:3] == [40448, 40100, 40960]

    process = gpu.start_call(HOLDS, 500, FAKEGPU_CGROUP=str(inside))
    try:
        assert line_of(process) == "0"
        assert gpu.call(f"{HERE}:get_limit", str(tmp_path / "pod")) == [0, 1000, 800]
        assert gpu.call(f"{HERE}:set_limit", str(tmp_path / "pod"), -1) == 0
        assert gpu.call(f"{HERE}:get_limit", str(tmp_path / "pod"))[1] == -1
    finally:
        end(process)
