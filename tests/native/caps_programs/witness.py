"""Says how many bytes of the first device are held, by NVML, a line for each line that it reads."""

import ctypes
import sys


class NvmlMemory(ctypes.Structure):
    """nvmlMemory_v2_t."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


VERSION = ctypes.sizeof(NvmlMemory) | 2 << 24


def main() -> None:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    for _ in sys.stdin:
        memory = NvmlMemory(version=VERSION)
        code = nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory))
        assert code == 0, code
        sys.stdout.write(f"{memory.used}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
