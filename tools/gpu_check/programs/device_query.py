"""Asks the driver about its first device and prints JSON. Runs in a process of its own, by path.

The checking process itself never initialises CUDA: it would hold a context on the device that it
watches, and a driver that hangs would take it along.
"""

import ctypes
import json
import sys
from typing import Any


def main() -> None:
    """Print the answers, or ``{"error": …}``."""
    cuda: Any = ctypes.CDLL("libcuda.so.1")
    result = cuda.cuInit(0)
    if result:
        json.dump({"error": f"cuInit: CUresult {result}"}, sys.stdout)
        return
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        json.dump({"error": "the driver has no device for this process"}, sys.stdout)
        return
    device, total = ctypes.c_int(), ctypes.c_size_t()
    name, uuid = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, 256, device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    ask_uuid = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
    ask_uuid(uuid, device)
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        capped = "libgpucap" in maps.read()
    found = {
        "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "devices": count.value,
        "gpu": name.value.decode(),
        "uuid": uuid.raw.hex(),
        "total_mib": total.value / (1 << 20),
        "already_capped": capped,
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
