"""Real clients of the driver, each with its own packages and nothing of ours.

``python client_cases.py NAME PIECE_MIB`` prints JSON: pieces that the client got until it was
refused, total and free MiB before that, and the processes that it sees while it holds one piece.
Run by ``clients`` with an interpreter that has the packages of requirements/clients.txt.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

MIB = 1 << 20
NO_PRIVATE_TABLES = 500  # cudaErrorSymbolNotFound: the runtime asks for what only NVIDIA's has


def _bindings() -> Any:
    from cuda.bindings import driver

    return driver


def _ok(answer: tuple[Any, ...]) -> Any:
    assert answer[0] == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


def _context() -> Any:
    driver = _bindings()
    _ok(driver.cuInit(0))
    device = _ok(driver.cuDeviceGet(0))
    _ok(driver.cuCtxSetCurrent(_ok(driver.cuDevicePrimaryCtxRetain(device))))
    return driver


def _seen(total: int, free: int, pieces: int) -> dict[str, Any]:
    return {"total_mib": total / MIB, "free_mib": free / MIB, "pieces": pieces}


def _take(allocate: Callable[[Any, int], tuple[Any, ...]], piece: int) -> dict[str, Any]:
    driver = _context()
    free, total = _ok(driver.cuMemGetInfo())
    pieces = 0
    while (answer := allocate(driver, piece)[0]) == 0:
        pieces += 1
    assert answer == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY, answer
    return _seen(total, free, pieces)


def cuda_bindings(piece: int) -> dict[str, Any]:
    """cuda-python: cuMemAlloc."""
    return _take(lambda driver, size: driver.cuMemAlloc(size), piece)


def after_the_runtime(piece: int) -> dict[str, Any]:
    """cuda-python: cuMemAlloc, once NVIDIA's runtime has opened the driver and closed it again."""
    runtime = importlib.import_module("runtime_cases")
    for how in runtime.OPENED:
        assert runtime.count_devices(how) == NO_PRIVATE_TABLES, how
    return cuda_bindings(piece)


def cuda_bindings_async(piece: int) -> dict[str, Any]:
    """cuda-python: cuMemAllocAsync, from the device's pool."""
    return _take(lambda driver, size: driver.cuMemAllocAsync(size, 0), piece)


def cuda_bindings_managed(piece: int) -> dict[str, Any]:
    """cuda-python: cuMemAllocManaged."""
    return _take(lambda driver, size: driver.cuMemAllocManaged(size, 1), piece)


def cuda_bindings_vmm(piece: int) -> dict[str, Any]:
    """cuda-python: cuMemCreate."""

    def create(driver: Any, size: int) -> tuple[Any, ...]:
        wanted = driver.CUmemAllocationProp()
        wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = 0
        answer: tuple[Any, ...] = driver.cuMemCreate(size, wanted, 0)
        return answer

    return _take(create, piece)


def numba_cuda(piece: int) -> dict[str, Any]:
    """Numba's arrays on the device."""
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    free, total = cuda.current_context().get_memory_info()
    held: list[Any] = []
    try:
        while True:
            held.append(cuda.device_array(piece, dtype="u1"))
    except CudaAPIError as error:
        assert error.code == 2, error
    return _seen(int(total), int(free), len(held))


def _hold(piece: int) -> None:
    _ok(_context().cuMemAlloc(piece))


def nvidia_ml_py(piece: int) -> dict[str, Any]:
    """NVML by its Python bindings."""
    import pynvml

    _hold(piece)
    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    found = _seen(memory.total, memory.free, 1)
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    return found | {"processes": [process.pid for process in running]}


def gpustat(piece: int) -> dict[str, Any]:
    """gpustat's query, as its command prints it."""
    from gpustat import GPUStatCollection

    _hold(piece)
    (device,) = GPUStatCollection.new_query().jsonify()["gpus"]
    total, used = device["memory.total"] * MIB, device["memory.used"] * MIB
    return _seen(total, total - used, 1) | {"processes": [p["pid"] for p in device["processes"]]}


def nvitop(piece: int) -> dict[str, Any]:
    """nvitop's library, as its command shows it."""
    from nvitop import Device

    _hold(piece)
    (device,) = Device.all()
    found = _seen(device.memory_total(), device.memory_free(), 1)
    return found | {"processes": list(device.processes())}


CLIENTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "cuda-bindings": cuda_bindings,
    "cuda-bindings after libcudart": after_the_runtime,
    "cuda-bindings async": cuda_bindings_async,
    "cuda-bindings managed": cuda_bindings_managed,
    "cuda-bindings VMM": cuda_bindings_vmm,
    "numba-cuda": numba_cuda,
    "nvidia-ml-py": nvidia_ml_py,
    "gpustat": gpustat,
    "nvitop": nvitop,
}

if __name__ == "__main__":
    result = CLIENTS[sys.argv[1]](int(sys.argv[2]) * MIB)
    sys.stdout.write(json.dumps(result | {"pid": os.getpid()}))
