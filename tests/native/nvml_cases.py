"""What `test_fake_nvml` lets processes of their own do, with NVIDIA's own bindings."""

import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any

import pynvml
from tests.native.cuda import MIB, Cuda, Number
from tests.native.driver_cases import say

MOST = 0xFFFF_FFFF_FFFF_FFFF


def first() -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def code(function: Callable[..., Any], *arguments: Any) -> int:
    """The NVML error of a call; 0: none."""
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def inventory() -> dict[str, Any]:
    device = first()
    newer = pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2)
    older = pynvml.nvmlDeviceGetMemoryInfo(device)
    return {
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "cuda": pynvml.nvmlSystemGetCudaDriverVersion(),
        "count": pynvml.nvmlDeviceGetCount(),
        "name": pynvml.nvmlDeviceGetName(device),
        "uuid": pynvml.nvmlDeviceGetUUID(device),
        "capability": pynvml.nvmlDeviceGetCudaComputeCapability(device),
        "mig": pynvml.nvmlDeviceGetMigMode(device),
        "bus": pynvml.nvmlDeviceGetPciInfo(device).busId,
        "newer": [each // MIB for each in (newer.total, newer.reserved, newer.used, newer.free)],
        "older": [each // MIB for each in (older.total, older.used, older.free)],
    }


def out_of_order() -> dict[str, int]:
    library = ctypes.CDLL("libnvidia-ml.so.1")
    seen = {"before init": library.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint()))}
    seen["shutdown"] = library.nvmlShutdown()
    pynvml.nvmlInit()
    seen["null"] = library.nvmlDeviceGetCount_v2(None)
    seen["index"] = code(pynvml.nvmlDeviceGetHandleByIndex, 5)
    seen["uuid"] = code(pynvml.nvmlDeviceGetHandleByUUID, b"GPU-of-another")
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    seen["version"] = code(pynvml.nvmlDeviceGetMemoryInfo, handle, 1)
    pynvml.nvmlShutdown()
    seen["after shutdown"] = code(pynvml.nvmlDeviceGetUUID, handle)
    return seen


def uuids() -> list[str]:
    pynvml.nvmlInit()
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles]


def processes() -> list[list[int | None]]:
    device = first()
    found = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    same = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(device)
    assert [each.pid for each in found] == [each.pid for each in same]
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(device) == []
    return [
        [each.pid, None if each.usedGpuMemory is None else each.usedGpuMemory // MIB]
        for each in found
    ]


def own_process() -> list[int]:
    """A process with both libraries finds itself, and is not taken for dead."""
    cuda = Cuda()
    cuda.allocate(64)
    device = first()
    listed = [
        each.usedGpuMemory // MIB for each in pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    ]
    pynvml.nvmlShutdown()
    return [*listed, int(40448 - cuda.free_mib())]


def busy() -> list[Any]:
    device = first()
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(device, 0)
    except pynvml.NVMLError as error:
        return [int(error.value)]
    return [[each.pid, each.smUtil] for each in samples]


def health() -> dict[str, Any]:
    device = first()
    rates = pynvml.nvmlDeviceGetUtilizationRates(device)
    action = pynvml.nvmlDeviceGetFieldValues(device, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    return {
        "rates": [rates.gpu, rates.memory],
        "watts": pynvml.nvmlDeviceGetPowerUsage(device) / 1000,
        "celsius": pynvml.nvmlDeviceGetTemperature(device, 0),
        "ecc": [pynvml.nvmlDeviceGetTotalEccErrors(device, kind, 0) for kind in (0, 1)],
        "retired": len(pynvml.nvmlDeviceGetRetiredPages(device, 1)),
        "rows": pynvml.nvmlDeviceGetRemappedRows(device),
        "action": action[0].value.uiVal,
    }


def waits_for_xids() -> None:
    device = first()
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(device, pynvml.nvmlEventTypeXidCriticalError, events)
    say("waiting")
    found: list[int] = []
    while len(found) < 2:
        found.append(pynvml.nvmlEventSetWait(events, 20_000).eventData)
    nothing = code(pynvml.nvmlEventSetWait, events, 0)
    pynvml.nvmlEventSetFree(events)
    say(json.dumps([*found, nothing]))


def lost() -> list[int]:
    pynvml.nvmlInit()
    return [code(pynvml.nvmlDeviceGetHandleByIndex, index) for index in range(2)]


def sees_it_go() -> None:
    device = first()
    say(code(pynvml.nvmlDeviceGetMemoryInfo, device))
    sys.stdin.readline()
    say(code(pynvml.nvmlDeviceGetMemoryInfo, device))


def set_limit(cgroup: str, hard_mib: int) -> int:
    device = first()
    hard = hard_mib * MIB if hard_mib >= 0 else MOST
    limits = pynvml.c_nvmlSetMemoryLimits_v1_t(cgroup.encode(), 0, hard)
    return code(pynvml.nvmlDeviceSetMemoryLimits_v1, device, limits)


def get_limit(cgroup: str) -> list[int]:
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t(cgroup.encode())
    pynvml.nvmlDeviceGetMemoryLimits_v1(first(), limits)
    hard = limits.hardLimit
    return [limits.softLimit // MIB, -1 if hard == MOST else hard // MIB, limits.currentUsed // MIB]


def lives_in_a_cgroup() -> list[Any]:
    cuda = Cuda()
    total = Number()
    cuda.ok("cuMemGetInfo_v2", None, total)
    got = 0
    while cuda.cuMemAlloc_v2(Number(), 100 * MIB) == 0:
        got += 100
    info = pynvml.nvmlDeviceGetMemoryInfo(first(), pynvml.nvmlMemory_v2)
    return [int(total) // MIB, got, info.total // MIB, cuda.cuMemAllocManaged(Number(), MIB, 1)]
