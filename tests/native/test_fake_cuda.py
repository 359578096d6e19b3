"""The fake driver: start, devices, entry points, processes and injected failures."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native import cuda as codes
from tests.native.build import NATIVE, NativeBuild
from tests.native.cuda import SUCCESS
from tests.native.driver_cases import exported
from tests.native.fake_gpu import FakeGPU, uuid_of

HERE = "tests.native.driver_cases"


LEGACY, PER_THREAD = 1, 2


def test_calls_out_of_order_get_the_drivers_errors(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:out_of_order") == {
        "before init": codes.NOT_INITIALIZED,
        "flags": codes.INVALID_VALUE,
        "no context": codes.INVALID_CONTEXT,
        "no such device": codes.INVALID_DEVICE,
        "null": codes.INVALID_VALUE,
        "no bytes": codes.INVALID_VALUE,
        "unknown pointer": codes.INVALID_VALUE,
        "null info": SUCCESS,
        "context gone": codes.INVALID_CONTEXT,
        "destroyed twice": codes.INVALID_CONTEXT,
    }


def test_a_device_says_what_the_configuration_says(gpu: FakeGPU) -> None:
    name, uuid, major, total = gpu.call(f"{HERE}:describe")
    assert (name, major) == ("NVIDIA A100-PCIE-40GB", 8)
    assert uuid == gpu.uuids[0].removeprefix("GPU-").replace("-", "")
    assert total == gpu.usable_mib == 40448


@pytest.mark.parametrize(
    ("wish", "seen"),
    [
        ("0,1,2", [0, 1, 2]),
        ("2,0", [2, 0]),
        (uuid_of(1), [1]),
        (f"{uuid_of(2)[:12]},0", [2, 0]),
        ("1,9,0", [1]),
        ("GPU-0", codes.NO_DEVICE),  # begins every UUID
        ("0,0", codes.NO_DEVICE),
        ("-1", codes.NO_DEVICE),
        ("", codes.NO_DEVICE),
    ],
)
def test_cuda_visible_devices_follows_nvidias_rules(
    fake_gpu: Callable[..., FakeGPU], wish: str, seen: object
) -> None:
    gpu = fake_gpu(devices=3)
    assert gpu.call(f"{HERE}:visible", CUDA_VISIBLE_DEVICES=wish) == seen


def test_a_container_sees_the_devices_it_was_given(two_of_three: tuple[FakeGPU, str]) -> None:
    gpu, given = two_of_three
    assert gpu.call(f"{HERE}:visible", FAKEGPU_DEV=given) == [0, 2]
    again = gpu.call(f"{HERE}:visible", FAKEGPU_DEV=given, CUDA_VISIBLE_DEVICES="1")
    assert again == [2], "ordinals count what was given"


def test_without_a_configuration_there_is_no_device(gpu: FakeGPU) -> None:
    (gpu.folder / "config").unlink()
    assert gpu.call(f"{HERE}:visible") == codes.NO_DEVICE


@pytest.mark.parametrize(
    ("name", "version", "flags", "symbol"),
    [
        ("cuMemAlloc", 2000, 0, "cuMemAlloc"),
        ("cuMemAlloc", 3020, 0, "cuMemAlloc_v2"),
        ("cuMemAlloc", 12000, PER_THREAD, "cuMemAlloc_v2"),
        ("cuMemAllocAsync", 12000, 0, "cuMemAllocAsync"),
        ("cuMemAllocAsync", 12000, LEGACY, "cuMemAllocAsync"),
        ("cuMemAllocAsync", 12000, PER_THREAD, "cuMemAllocAsync_ptsz"),
        ("cuMemcpyHtoD", 12000, PER_THREAD, "cuMemcpyHtoD_v2_ptds"),
        ("cuCtxCreate", 11030, 0, "cuCtxCreate_v2"),
        ("cuCtxCreate", 11040, 0, "cuCtxCreate_v3"),
        ("cuCtxCreate", 12080, 0, "cuCtxCreate_v4"),
        ("cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2"),
        ("cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"),
        ("cuDeviceGetUuid", 11030, 0, "cuDeviceGetUuid"),
        ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
    ],
)
def test_entry_points_are_found_by_name_version_and_stream_flag(
    gpu: FakeGPU, name: str, version: int, flags: int, symbol: str
) -> None:
    assert gpu.call(f"{HERE}:resolve", name, version, flags) == [0, 0, 0, symbol]


@pytest.mark.parametrize(
    ("name", "version", "result", "status", "older"),
    [
        ("cuNoSuchThing", 12000, 0, 1, codes.NOT_FOUND),
        ("cuMemAlloc_v2", 12000, 0, 1, codes.NOT_FOUND),
        ("cuMemAllocAsync", 11010, 0, 2, codes.NOT_FOUND),
        ("cuMemAlloc", 13000, codes.INVALID_VALUE, 0, codes.INVALID_VALUE),
    ],
)
def test_what_is_not_there_is_said_in_the_way_of_the_version(
    gpu: FakeGPU, name: str, version: int, result: int, status: int, older: int
) -> None:
    assert gpu.call(f"{HERE}:resolve", name, version, 0) == [result, status, older]


def test_every_function_of_the_table_is_exported_and_nothing_else(native: NativeBuild) -> None:
    table = (NATIVE / "include" / "cuda_functions.def").read_text().splitlines()
    symbols = {row.split("(")[1].split(",")[0] for row in table if row.startswith("CUDA_FUNCTION(")}
    assert len(symbols) > 150
    own = {"fakegpu_busy"}  # for programs that make traces
    assert set(exported(native.libcuda)) == symbols | own
    assert all(name.startswith("nvml") for name in exported(native.libnvidia_ml))


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def test_two_processes_share_a_device_and_a_killed_one_gives_its_memory_back(gpu: FakeGPU) -> None:
    other = gpu.start_call(f"{HERE}:holds", 30_000)
    try:
        assert line_of(other) == "0"
        assert gpu.used_mib() == 30_300
        assert gpu.call(f"{HERE}:asks", 15_000) == codes.OUT_OF_MEMORY
        assert gpu.call(f"{HERE}:asks", 9_800) == SUCCESS
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert gpu.call(f"{HERE}:asks", 15_000) == SUCCESS
        assert gpu.used_mib() == 0
    finally:
        end(other)


def test_the_memory_of_the_dead_is_found_when_a_neighbour_asks(gpu: FakeGPU) -> None:
    for _ in range(3):
        end(other := gpu.start_call(f"{HERE}:holds", 30_000))
        assert other.returncode == -signal.SIGKILL
    first, second = (gpu.start_call(f"{HERE}:holds", 20_000) for _ in range(2))
    try:
        assert sorted(map(line_of, (first, second))) == ["0", str(codes.OUT_OF_MEMORY)]
    finally:
        end(first, second)


def test_processes_killed_at_work_leave_nothing_behind(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:killed_at_work", 40) == [gpu.usable_mib - 300, 0]


def test_devices_are_apart(fake_gpu: Callable[..., FakeGPU]) -> None:
    gpu = fake_gpu(devices=2)
    other = gpu.start_call(f"{HERE}:holds", 40_000, 1)
    try:
        assert line_of(other) == "0"
        assert gpu.call(f"{HERE}:asks", 40_000) == SUCCESS
        assert (gpu.used_mib(0), gpu.used_mib(1)) == (0, 40_300)
    finally:
        end(other)


def test_a_forked_child_owns_nothing_until_it_starts_afresh(gpu: FakeGPU) -> None:
    inherited, again, no_context, taken, after = gpu.call(f"{HERE}:forks")
    assert (inherited, again, no_context) == (codes.NOT_INITIALIZED, SUCCESS, codes.INVALID_CONTEXT)
    assert taken == 100 + 300 + 10
    assert after == 100, "the child's memory went with it, the parent's stayed"


def test_1024_processes_at_once(fake_gpu: Callable[..., FakeGPU]) -> None:
    gpu = fake_gpu(context_mib=1)
    assert gpu.call(f"{HERE}:many", 1024) == [1024, 1024 * 3 + 1, 1]


def test_threads_allocate_at_once(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:threads") == 0


def test_injected_failures_reach_a_running_process(gpu: FakeGPU) -> None:
    process = gpu.start_call(f"{HERE}:survives_a_failure")
    assert process.stdin

    def next_result() -> int:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        return int(line_of(process))

    try:
        assert line_of(process) == "ready"
        gpu.set(gpu.uuids[0], "next-error", 719)
        assert next_result() == 719
        assert next_result() == SUCCESS, "once"
        gpu.set(gpu.uuids[0], "lost", 1)
        assert next_result() == codes.UNKNOWN
        assert gpu.call(f"{HERE}:visible") == codes.NO_DEVICE
    finally:
        end(process)


@pytest.mark.parametrize("name", ["evader", "evader-static"])
def test_the_evader_holds_memory_without_a_lookup_in_libcuda(
    gpu: FakeGPU, native: NativeBuild, name: str
) -> None:
    program = native.fakegpu / name
    if native.sanitizer and not program.exists():
        pytest.skip("sanitizers cannot be linked statically")
    process = gpu.start([program, "5000"])
    try:
        assert line_of(process) == "holding 5000 MiB, result 0"
        assert gpu.used_mib() == 5300
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        assert "libcuda" not in mapped
    finally:
        end(process)


def test_errors_have_names(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:errors") == ["CUDA_ERROR_OUT_OF_MEMORY", "out of memory"]
