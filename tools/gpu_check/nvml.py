"""The driver's view from outside: NVML in this process, which has no library preloaded.

Only what the checks need, by ctypes: this runs where nothing is installed. A figure that NVML does
not give (WSL, a container with its own process ids, N/A) is None, never 0.
"""

import ctypes
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

MIB = 1 << 20
NOT_AVAILABLE = (1 << 64) - 1
MOST_PROCESSES = 256


class MemoryInfo(ctypes.Structure):
    """NVML's memory of a device, version 1: bytes."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Process(ctypes.Structure):
    """A process on a device: pid, bytes, and its MIG instances."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Nvml:
    """One device, by its UUID.

    Raises:
        OSError: the library or the device is not there; the message says which.
    """

    def __init__(self, library: Path, uuid: str) -> None:
        self._library: Any = ctypes.CDLL(str(library))
        if self._library.nvmlInit_v2():
            raise OSError("nvmlInit_v2 failed")
        self._device = ctypes.c_void_p()
        found = self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device))
        if found:
            raise OSError(f"NVML does not know the device {uuid} (nvmlReturn {found})")

    def driver_version(self) -> str:
        """For example 580.65.06."""
        text = ctypes.create_string_buffer(96)
        self._library.nvmlSystemGetDriverVersion(text, 96)
        return text.value.decode()

    def free_mib(self) -> float:
        """What nobody uses."""
        return float(self._memory().free) / MIB

    def used_mib(self) -> float:
        """What all processes and the driver itself use."""
        return float(self._memory().used) / MIB

    def processes(self) -> dict[int, float | None]:
        """MiB by process id; a value of None: NVML does not say."""
        count = ctypes.c_uint(MOST_PROCESSES)
        found = (Process * MOST_PROCESSES)()
        for name in ("_v3", "_v2"):
            ask = getattr(self._library, f"nvmlDeviceGetComputeRunningProcesses{name}", None)
            if ask and not ask(self._device, ctypes.byref(count), found):
                return {
                    entry.pid: None if entry.used == NOT_AVAILABLE else entry.used / MIB
                    for entry in found[: count.value]
                }
        return {}

    def _memory(self) -> MemoryInfo:
        memory = MemoryInfo()
        answer = self._library.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory))
        if answer:
            raise OSError(f"nvmlDeviceGetMemoryInfo: nvmlReturn {answer}")
        return memory


class Device(Protocol):
    """What a watch needs of a device."""

    def used_mib(self) -> float:
        """What all processes and the driver itself use."""

    def processes(self) -> Mapping[int, float | None]:
        """MiB by process id."""


class Watch:
    """What some processes hold, seen from outside; made before they start.

    By process where NVML tells; else (WSL, process ids of another namespace) by what the device
    lost since, in which other programs on it count, too. Without NVML: None.
    """

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._before = device.used_mib() if device else 0.0
        self.by = "process"

    def held_mib(self, pids: Collection[int]) -> float | None:
        """What they hold now; processes without a context hold nothing."""
        if not self._device:
            return None
        known = self._device.processes()
        held = [known.get(pid) for pid in pids]
        if all(value is not None for value in held):
            self.by = "process"
            return sum(value for value in held if value is not None)
        self.by = "device"
        return max(0.0, self._device.used_mib() - self._before)
