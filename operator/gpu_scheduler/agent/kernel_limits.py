"""The driver's own memory limits, one per container and device: the ``kernel`` tier.

UNTESTED ON HARDWARE: written from NVIDIA's documentation of NVML r615, tried against a pretend
NVML alone. Soft limit 0, hard limit the cap, on the container's leaf cgroup (a limit on a parent
does not reach a leaf that the runtime made later). A limit counts as in place only if it was there
before the container was seen on a GPU and the driver reads it back. What remains: a container's
cgroup is known when the kubelet reports the container, so a program that allocates in its first
second may be earlier; and the driver charges managed memory to the machine, not to the device.

Source: https://docs.nvidia.com/deploy/mps/mpsv3-memory-partitioning.html and
nvmlSetMemoryLimits_v1_t in the NVML reference.
"""

import ctypes
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpu_scheduler.agent import cgroup_tree
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

FIRST_DRIVER = 615
LIMIT_MAX = 2**64 - 1  # NVML_DEVICE_MEMORY_LIMIT_MAX; its value is assumed
_SYMBOLS = ("nvmlDeviceSetMemoryLimits_v1", "nvmlDeviceGetMemoryLimits_v1")


class LimitError(Exception):
    """The driver did not take or give a limit; the message says why."""


class SetLimits(ctypes.Structure):
    """nvmlSetMemoryLimits_v1_t."""

    _fields_ = [
        ("nameSpace", ctypes.c_char_p),  # full path of the cgroup's folder
        ("softLimit", ctypes.c_ulonglong),  # bytes
        ("hardLimit", ctypes.c_ulonglong),
    ]


class GetLimits(ctypes.Structure):
    """nvmlGetMemoryLimits_v1_t."""

    _fields_ = [*SetLimits._fields_, ("currentUsed", ctypes.c_ulonglong)]


class DriverLimits(Protocol):
    """The driver's part."""

    def set(self, uuid: str, folder: Path, hard_bytes: int) -> None:
        """Set the limits of a cgroup on a device (soft 0).

        Raises:
            LimitError: it did not take them.
        """

    def hard_bytes(self, uuid: str, folder: Path) -> int:
        """The hard limit that is set."""


class NvmlLimits:
    """NVML by ctypes; it must have been initialised by the caller."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        """Bind.

        Raises:
            LimitError: no NVML, or one without the functions.
        """
        try:
            self._nvml: Any = ctypes.CDLL(library)
        except OSError as error:
            raise LimitError(str(error)) from None
        missing = [name for name in _SYMBOLS if not hasattr(self._nvml, name)]
        if missing:
            raise LimitError(f"NVML has no {missing[0]}")

    def set(self, uuid: str, folder: Path, hard_bytes: int) -> None:
        """See ``DriverLimits``."""
        limits = SetLimits(str(folder).encode(), 0, hard_bytes)
        self._call("nvmlDeviceSetMemoryLimits_v1", self._handle(uuid), ctypes.byref(limits))

    def hard_bytes(self, uuid: str, folder: Path) -> int:
        """See ``DriverLimits``."""
        limits = GetLimits(str(folder).encode(), 0, 0, 0)
        self._call("nvmlDeviceGetMemoryLimits_v1", self._handle(uuid), ctypes.byref(limits))
        return int(limits.hardLimit)

    def _handle(self, uuid: str) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        return handle

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._nvml, name)(*arguments)
        if code:
            raise LimitError(f"{name}: NVML error {code}")


def unavailable(
    driver_version: str, *, mig: bool, root: Path, limits: DriverLimits | None
) -> str | None:
    """Why the driver cannot hold limits here; None when it can.

    Args:
        driver_version: As NVML tells it, for example 615.71.09.
        mig: Some device is in MIG mode.
        root: Of the node's cgroups.
        limits: The binding, None when NVML has no such functions.
    """
    major = driver_version.split(".")[0]
    if not major.isdigit() or int(major) < FIRST_DRIVER:
        return f"driver {driver_version or 'unknown'} is older than r{FIRST_DRIVER}"
    if not cgroup_tree.is_v2(root):
        return f"the node has no cgroup v2 at {root}"
    if mig:
        return "a device is in MIG mode"
    return "NVML lacks nvmlDeviceSetMemoryLimits_v1" if limits is None else None


@dataclass(slots=True)
class _Applied:
    folder: Path
    caps_mib: dict[str, int]
    in_time: bool


class KernelLimits:
    """Applies limits to containers, once each, and again when a cap changes."""

    def __init__(self, limits: DriverLimits, root: Path) -> None:
        self._limits = limits
        self._root = root
        self._applied: dict[str, _Applied] = {}  # by container id: a restarted one has another

    def update(self, uses: Iterable[ContainerUse]) -> None:
        """Set what is missing."""
        seen = set()
        for use in uses:
            container_id = use.container.own.id
            if container_id:
                seen.add(container_id)
                try:
                    self._ensure(container_id, use)
                except Exception:
                    unexpected("kernel-limits", f"container {container_id}")
                    self._applied.pop(container_id, None)
        for gone in self._applied.keys() - seen:
            del self._applied[gone]  # with the cgroup the driver forgets the limit too

    def holds(self, use: ContainerUse) -> bool:
        """Whether the driver has held this container to its caps from the beginning."""
        applied = self._applied.get(use.container.own.id)
        return applied is not None and applied.in_time and applied.caps_mib == _caps(use)

    def _ensure(self, container_id: str, use: ContainerUse) -> None:
        caps = _caps(use)
        applied = self._applied.get(container_id)
        if applied is not None and applied.caps_mib == caps:
            return
        folder = applied.folder if applied else None
        folder = folder or cgroup_tree.leaf_of_container(container_id, self._root)
        if folder is None:
            return
        in_time = applied.in_time if applied else not use.processes
        try:
            # An agent that was started anew finds what its predecessor set in time.
            in_time = in_time or all(
                self._limits.hard_bytes(uuid, folder) == mib * MIB for uuid, mib in caps.items()
            )
            for uuid, mib in caps.items():
                self._limits.set(uuid, folder, mib * MIB)
                found = self._limits.hard_bytes(uuid, folder)
                if found != mib * MIB:
                    raise LimitError(f"{uuid}: set {mib * MIB} bytes, the driver says {found}")
        except LimitError as error:
            log.warning("limit of container %s: %s", container_id, error)
            self._applied.pop(container_id, None)
            return
        self._applied[container_id] = _Applied(folder, caps, in_time)


def _caps(use: ContainerUse) -> dict[str, int]:
    return {each.uuid: each.cap_mib for each in use.uses}
