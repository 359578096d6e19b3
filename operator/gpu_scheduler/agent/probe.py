"""One attempt to allocate past a cap, in a process of its own.

Says on stdout, as JSON, what the driver let it have. Speaks to libcuda by ctypes, that is by
dlopen and dlsym, and then by cuGetProcAddress, the two ways that programs take; CuPy on request.
Started by the self-test under the layer to be tried, as ``python -m gpu_scheduler.agent.probe``: a
process, because a preloaded library is chosen when a process starts.
"""

import ctypes
import json
import sys
from typing import Any

MIB = 1024 * 1024
CHUNK = 16 * MIB
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_CUDA_VERSION = 12000  # cuGetProcAddress is asked for functions as of this version


class ProbeError(Exception):
    """The driver refused something other than memory."""


def by_driver(limit_mib: int, margin_mib: int) -> dict[str, Any]:
    """Allocate up to ``limit_mib + margin_mib`` on the first device that has memory to give."""
    cuda = ctypes.CDLL("libcuda.so.1")
    _check(cuda.cuInit(0), "cuInit")
    count = ctypes.c_int()
    _check(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    answer: dict[str, Any] = {"error": "no device"}
    for number in range(count.value):
        try:
            answer = _on_device(cuda, number, (limit_mib + margin_mib) * MIB)
        except ProbeError as error:
            answer = {"error": f"device {number}: {error}"}
            continue
        if any(answer["got_mib"].values()):
            break
    return answer


def _on_device(cuda: Any, number: int, most: int) -> dict[str, Any]:
    device, context, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
    _check(cuda.cuDeviceGet(ctypes.byref(device), number), "cuDeviceGet")
    _check(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    try:
        _check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        ways = {"dlsym": cuda.cuMemAlloc_v2, "cuGetProcAddress": _found(cuda, b"cuMemAlloc")}
        got = {way: _fill(cuda, function, most) for way, function in ways.items() if function}
    finally:
        cuda.cuDevicePrimaryCtxRelease_v2(device)
    return {"total_mib": total.value // MIB, "got_mib": got}


def by_cupy(limit_mib: int, margin_mib: int) -> dict[str, Any]:
    """Allocate through CuPy's pool, which obeys CUPY_GPU_MEMORY_LIMIT."""
    import importlib

    cupy: Any = importlib.import_module("cupy")
    held, got = [], 0
    try:
        while got < (limit_mib + margin_mib) * MIB:
            held.append(cupy.empty(CHUNK, dtype="uint8"))
            got += CHUNK
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    return {"got_mib": {"cupy": got // MIB}}


def _found(cuda: Any, name: bytes) -> Any:
    """A function as cuGetProcAddress gives it; None where the driver has no such thing."""
    if not hasattr(cuda, "cuGetProcAddress"):
        return None
    pointer = ctypes.c_void_p()
    code = cuda.cuGetProcAddress(
        name, ctypes.byref(pointer), ctypes.c_int(_CUDA_VERSION), ctypes.c_ulonglong(0)
    )
    if code or not pointer.value:
        return None
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
    return prototype(pointer.value)


def _fill(cuda: Any, allocate: Any, most: int) -> int:
    """MiB that could be allocated, at most ``most`` bytes; all of it is freed again."""
    held: list[ctypes.c_ulonglong] = []
    code = 0
    while not code and (len(held) + 1) * CHUNK <= most:
        pointer = ctypes.c_ulonglong()
        code = allocate(ctypes.byref(pointer), ctypes.c_size_t(CHUNK))
        if not code:
            held.append(pointer)
    for pointer in held:
        cuda.cuMemFree_v2(pointer)
    if code not in (0, OUT_OF_MEMORY):
        raise ProbeError(f"cuMemAlloc: CUDA error {code}")
    return len(held) * CHUNK // MIB


def _check(code: int, name: str) -> None:
    if code:
        raise ProbeError(f"{name}: CUDA error {code}")


def main(arguments: list[str]) -> int:
    """``probe driver|cupy LIMIT_MIB MARGIN_MIB``: the answer, or ``error``, as one JSON object."""
    how, limit, margin = arguments[0], int(arguments[1]), int(arguments[2])
    try:
        answer = (by_cupy if how == "cupy" else by_driver)(limit, margin)
    except (ProbeError, OSError, AttributeError, ImportError) as error:
        answer = {"error": f"{error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
