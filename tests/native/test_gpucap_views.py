"""Inside, the device has the size of the cap: for CUDA, for NVML, and for what contexts cost."""

import ctypes
from collections.abc import Callable

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, Cuda, Number


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def views(allocated_mib: int) -> dict[str, list[int]]:
    """What each view says after an allocation, in MiB."""
    cuda = Cuda()
    if allocated_mib:
        cuda.allocate(allocated_mib)
    free, total = Number(), Number()
    cuda.ok("cuMemGetInfo_v2", free, total)
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    assert nvml.nvmlInit_v2() == 0
    device = ctypes.c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    memory = (ctypes.c_uint64 * 3)()
    assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
    memory_v2 = (ctypes.c_uint64 * 5)()
    memory_v2[0] = 40 | 2 << 24
    assert nvml.nvmlDeviceGetMemoryInfo_v2(device, memory_v2) == 0
    return {
        "cuMemGetInfo": [int(free) // MIB, int(total) // MIB],
        "cuDeviceTotalMem": [cuda.get("cuDeviceTotalMem_v2", 0) // MIB],
        "nvml": [byte // MIB for byte in memory],  # total, free, used
        "nvml_v2": [byte // MIB for byte in memory_v2[1:]],  # total, reserved, free, used
    }


@pytest.mark.parametrize("allocated", [0, 256, 1024])
def test_views_show_the_cap(box: Container, allocated: int) -> None:
    left = 1024 - allocated
    assert box.call(f"{__name__}:views", allocated) == {
        "cuMemGetInfo": [left, 1024],
        "cuDeviceTotalMem": [1024],
        "nvml": [1024, left, allocated],
        "nvml_v2": [1024, 0, left, allocated],
    }


@pytest.mark.alone
def test_a_cap_above_the_device_shows_the_device(box: Container) -> None:
    box.cap_mib = 10_000_000
    found = box.call(f"{__name__}:views", 0)
    assert isinstance(found, dict)
    assert found["cuDeviceTotalMem"] == [box.gpu.usable_mib]
    assert found["cuMemGetInfo"] == [box.gpu.usable_mib - 300, box.gpu.usable_mib]  # its context


@pytest.mark.alone
def test_free_is_what_the_neighbours_left(container: Callable[..., Container]) -> None:
    big, small = container(cap_mib=40000), container(cap_mib=1024)
    with big.hold("alloc", 1300) as holder:
        assert holder.seen.pieces == 30
        found = small.probe("linked", "alloc", 128, "context")
        assert found.total_mib == 1024
        assert found.free_mib == 40448 - 30 * 1300 - 2 * 300  # physically there is no more


def test_another_process_sees_what_is_held(box: Container) -> None:
    with box.hold("alloc", 512) as holder:
        assert holder.seen.pieces == 2
        assert box.probe("linked", "alloc", 512, "context").free_mib == 0
    assert box.probe("linked", "alloc", 512, "context").free_mib == 1024


@pytest.mark.alone
@pytest.mark.parametrize(("cap", "reserve"), [(1024, 128), (32768, 512)])
def test_a_context_is_charged_a_reserve(box: Container, cap: int, reserve: int) -> None:
    box.cap_mib, box.context_mib = cap, None
    box.gpu.configure(context_mib=0)
    found = box.probe("linked", "alloc", 128, "context")
    assert found.total_mib == cap
    assert found.free_mib == cap - reserve


def load_modules() -> list[int]:
    """Load a module and a library; what the driver answers."""
    cuda = Cuda()
    image = ctypes.create_string_buffer(b"\x7fELF of a kind", 64)
    cuda.allocate(1024)
    return [
        cuda.cuModuleLoadData(Number(), image),
        cuda.cuModuleLoadDataEx(Number(), image, 0, None, None),
        cuda.cuModuleLoadFatBinary(Number(), image),
        cuda.cuLibraryLoadData(Number(), image, None, None, 0, None, None, 0),
    ]


def test_no_more_modules_at_the_cap(box: Container) -> None:
    assert box.call(f"{__name__}:load_modules") == [OUT_OF_MEMORY] * 4
    box.cap_mib = 2048
    assert box.call(f"{__name__}:load_modules") == [0] * 4


def contexts_come_and_go() -> list[float]:
    """Free memory with a context, with two, after one is destroyed, and so on."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    first, second = Number(), Number()
    cuda.ok("cuCtxCreate_v2", first, 0, 0)
    found = [cuda.free_mib()]
    cuda.ok("cuCtxCreate_v2", second, 0, 0)
    cuda.allocate(256)
    found.append(cuda.free_mib())
    cuda.ok("cuCtxDestroy_v2", int(second))
    cuda.ok("cuCtxSetCurrent", int(first))
    found.append(cuda.free_mib())
    primary = Number()
    cuda.ok("cuDevicePrimaryCtxRetain", primary, 0)
    cuda.ok("cuDevicePrimaryCtxRetain", primary, 0)
    found.append(cuda.free_mib())
    cuda.ok("cuDevicePrimaryCtxRelease_v2", 0)
    found.append(cuda.free_mib())
    cuda.ok("cuDevicePrimaryCtxRelease_v2", 0)
    found.append(cuda.free_mib())
    return found


def test_contexts_are_charged_once_each_and_give_back_what_was_in_them(box: Container) -> None:
    box.context_mib = 100
    assert box.call(f"{__name__}:contexts_come_and_go") == [924, 568, 924, 824, 824, 924]
