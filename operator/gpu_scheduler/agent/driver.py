"""What the agent asks of the NVIDIA driver, as a typed protocol.

One implementation speaks to NVML (``nvml``), another is the tests' own. Memory is in bytes and a
figure that the driver does not know is None, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class DriverError(Exception):
    """The driver did not answer as it should; the message is NVML's own words."""


class DeviceLostError(DriverError):
    """The device is gone, or needs a reset before it answers again."""


class UnsupportedError(DriverError):
    """This driver or this device does not have that."""


class NothingFoundError(DriverError):
    """There is nothing of what was asked for."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Device memory; ``reserved`` is the driver's own part of ``total`` (0 when not told)."""

    total_bytes: int
    reserved_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What does not change while a device works."""

    uuid: str
    index: int
    model: str
    compute_capability: str
    memory: DeviceMemory | None  # None: the device shares the machine's memory
    mig: bool = False


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds something on a device. ``pid`` is the node's."""

    pid: int
    used_bytes: int | None


THERMAL, POWER_BRAKE, POWER_CAP = "thermal", "power-brake", "power-cap"
THROTTLE_REASONS = frozenset({THERMAL, POWER_BRAKE, POWER_CAP})
"""Why a device runs below its clocks: heat; power that the board or the rack cannot give; a limit
that its owner set. That it idles, or was told to run slower, is none."""


@dataclass(frozen=True, slots=True)
class Load:
    """Gauges of a device; ratios are 0 to 1.

    ``tensor_ratio``, PCIe and NVLink are means since the call before: only devices from Hopper on
    can tell.
    """

    busy_ratio: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    memory_busy_ratio: float | None = None  # of the memory controller
    tensor_ratio: float | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    throttled: frozenset[str] | None = None  # of THROTTLE_REASONS
    pcie_rx_bytes_per_second: float | None = None  # to the device
    pcie_tx_bytes_per_second: float | None = None  # from it
    nvlink_rx_bytes_per_second: float | None = None  # over all links, without overhead
    nvlink_tx_bytes_per_second: float | None = None
    encoder_ratio: float | None = None
    decoder_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Vitals:
    """Signs of broken hardware that the driver remembers until a reset."""

    uncorrected_ecc: int | None = None  # since the last reset
    remapped_after_corrected: int | None = None  # rows of memory, in the device's life
    remapped_after_uncorrected: int | None = None
    remap_failed: bool = False
    recovery_action: int | None = None  # NVML's number; 0 = none needed


@dataclass(frozen=True, slots=True)
class Xid:
    """An error event of a device."""

    uuid: str
    code: int


class Driver(Protocol):
    """NVML, as far as the agent needs it. Devices are named by their index."""

    def open(self) -> None:
        """Begin, or begin anew after trouble.

        Raises:
            DriverError: no driver, or it does not answer.
        """

    def close(self) -> None:
        """Let go of the driver; never raises."""

    def version(self) -> str:
        """The driver's version."""

    def count(self) -> int:
        """Number of devices."""

    def facts(self, index: int) -> DeviceProperties:
        """What a device is."""

    def memory(self, index: int) -> DeviceMemory | None:
        """Its memory now; None where it has none of its own."""

    def processes(self, index: int) -> list[GpuProcess]:
        """Compute and graphics processes, one entry per pid."""

    def load(self, index: int) -> Load:
        """Its gauges; what is not supported is None."""

    def busy_by_pid(
        self, index: int, since_us: int
    ) -> tuple[Mapping[int, float | None] | None, int]:
        """Share of time per pid with a kernel, and when that was sampled, after ``since_us``.

        A pid that is not in it did nothing. None: the driver cannot tell, of one or of all.
        """

    def vitals(self, index: int) -> Vitals:
        """Signs of broken hardware."""

    def xids(self) -> list[Xid]:
        """Error events since the last call."""
