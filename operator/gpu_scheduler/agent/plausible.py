"""What NVML says, held against what can be: nothing else goes on to judge or to report.

A figure that cannot be (negative, beyond every device, not a number) is None, as if the driver did
not know it; a device whose identity cannot be is one that does not answer. Pure.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpu_scheduler.agent.driver import (
    THROTTLE_REASONS,
    DeviceMemory,
    DeviceProperties,
    DriverError,
    GpuProcess,
    Load,
    Vitals,
    Xid,
)

MOST_BYTES = 1 << 50  # a petabyte; the largest device of 2026 has a third of a terabyte
MOST_DEVICES = 1024
MOST_MHZ = 20_000  # the fastest memory clock of 2026 is told as 14,001
_MOST_PID = (1 << 32) - 1
_COMPUTE = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}", re.ASCII)
_UUID = re.compile(r"[!-~]{1,128}", re.ASCII)


def whole(value: object, most: int = MOST_BYTES) -> int | None:
    """A number from 0 to ``most``; None for anything else."""
    return value if type(value) is int and 0 <= value <= most else None


def gauge(value: object, most: float) -> float | None:
    """A finite number from 0 to ``most``; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= most else None


def text(value: object, most: int) -> str:
    """A text that can be written as UTF-8, of at most so many characters."""
    return str(value).encode(errors="replace").decode()[:most]


def count(value: object) -> int:
    """The number of devices.

    Raises:
        DriverError: it cannot be.
    """
    found = whole(value, MOST_DEVICES)
    if found is None:
        raise DriverError(f"NVML counts {value!r:.40} devices")
    return found


def memory(found: DeviceMemory | None) -> DeviceMemory | None:
    """Device memory; None where it has none of its own, or tells nothing that can be."""
    if found is None:
        return None
    total, used = whole(found.total_bytes), whole(found.used_bytes)
    reserved = whole(found.reserved_bytes)
    if not total or used is None or reserved is None or max(used, reserved) > total:
        return None
    return found


def facts(found: DeviceProperties) -> DeviceProperties:
    """What a device is.

    Raises:
        DriverError: it names itself in a way that cannot be, or its memory is no amount.
    """
    if not isinstance(found.uuid, str) or not _UUID.fullmatch(found.uuid):
        raise DriverError(f"its UUID is {found.uuid!r:.60}")
    if found.memory is not None and memory(found.memory) is None:
        raise DriverError(f"its memory is {found.memory!r:.120}")
    if not isinstance(found.compute_capability, str) or not _COMPUTE.fullmatch(
        found.compute_capability
    ):
        raise DriverError(f"its compute capability is {found.compute_capability!r:.40}")
    return replace(found, model=text(found.model, 128))


def processes(found: Iterable[GpuProcess]) -> list[GpuProcess]:
    """Processes that can be; one without a process id is nobody's."""
    return [
        GpuProcess(each.pid, whole(each.used_bytes)) for each in found if whole(each.pid, _MOST_PID)
    ]


def load(found: Load) -> Load:
    """Gauges that can be."""
    return Load(
        busy_ratio=gauge(found.busy_ratio, 1.0),
        power_watts=gauge(found.power_watts, 1e5),
        temperature_celsius=gauge(found.temperature_celsius, 1e3),
        memory_busy_ratio=gauge(found.memory_busy_ratio, 1.0),
        tensor_ratio=gauge(found.tensor_ratio, 1.0),
        sm_clock_mhz=whole(found.sm_clock_mhz, MOST_MHZ),
        memory_clock_mhz=whole(found.memory_clock_mhz, MOST_MHZ),
        throttled=_reasons(found.throttled),
        pcie_rx_bytes_per_second=gauge(found.pcie_rx_bytes_per_second, MOST_BYTES),
        pcie_tx_bytes_per_second=gauge(found.pcie_tx_bytes_per_second, MOST_BYTES),
        nvlink_rx_bytes_per_second=gauge(found.nvlink_rx_bytes_per_second, MOST_BYTES),
        nvlink_tx_bytes_per_second=gauge(found.nvlink_tx_bytes_per_second, MOST_BYTES),
        encoder_ratio=gauge(found.encoder_ratio, 1.0),
        decoder_ratio=gauge(found.decoder_ratio, 1.0),
    )


def _reasons(found: object) -> frozenset[str] | None:
    return found if isinstance(found, frozenset) and found <= THROTTLE_REASONS else None


def busy(found: Mapping[int, float | None]) -> dict[int, float | None]:
    """Shares of time by process; None for one that cannot be."""
    return {pid: gauge(share, 1.0) for pid, share in found.items() if whole(pid, _MOST_PID)}


def vitals(found: Vitals) -> Vitals:
    """Signs of broken hardware; a count that cannot be is no sign."""
    return Vitals(
        uncorrected_ecc=whole(found.uncorrected_ecc),
        remapped_after_corrected=whole(found.remapped_after_corrected),
        remapped_after_uncorrected=whole(found.remapped_after_uncorrected),
        remap_failed=found.remap_failed is True,
        recovery_action=whole(found.recovery_action, 255),
    )


def xids(found: Iterable[Xid]) -> list[Xid]:
    """Error events with a number."""
    return [each for each in found if whole(each.code) is not None and isinstance(each.uuid, str)]
