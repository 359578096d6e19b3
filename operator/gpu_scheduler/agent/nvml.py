"""``Driver`` over NVML: it and the two modules beside it are the only ones that import pynvml.

Handles and the event set live from ``open`` to ``close``; a second ``open`` starts afresh, which is
how devices come back after a reset. Values that NVML marks as not available, or a device does not
support, are None. What takes long is not asked at all: nvmlDeviceGetPcieThroughput counts for 20 ms
while its caller waits.
"""

import contextlib
import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import pynvml

from gpu_scheduler.agent.driver import (
    POWER_BRAKE,
    POWER_CAP,
    THERMAL,
    DeviceLostError,
    DeviceMemory,
    DeviceProperties,
    DriverError,
    GpuProcess,
    Load,
    NothingFoundError,
    Vitals,
    Xid,
)
from gpu_scheduler.agent.nvml_calls import call, optional, told
from gpu_scheduler.agent.nvml_means import NvmlMeans
from gpu_scheduler.core.model.units import MIB

_EVENT_WAIT_MS = 1  # events are queued; this only asks for those that are there
_MOST_PERCENT = 100
_MOST_EVENTS = 256  # taken at once; the rest comes with the next sample


class NvmlDriver:
    """NVML of this node."""

    def __init__(self) -> None:
        self._means: dict[int, NvmlMeans] = {}
        self._handles: list[Any] = []
        self._uuids: list[str] = []
        self._events: Any = None
        self._open = False

    def open(self) -> None:
        """See ``Driver``."""
        self.close()
        call(pynvml.nvmlInit)
        self._open = True
        self._handles = [
            call(pynvml.nvmlDeviceGetHandleByIndex, index) for index in range(self.count())
        ]
        self._uuids = [self._uuid(handle) for handle in self._handles]
        self._events = optional(pynvml.nvmlEventSetCreate)
        for handle in self._handles if self._events is not None else ():
            with contextlib.suppress(DriverError):
                call(
                    pynvml.nvmlDeviceRegisterEvents,
                    handle,
                    pynvml.nvmlEventTypeXidCriticalError,
                    self._events,
                )

    def close(self) -> None:
        """See ``Driver``."""
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(DriverError):
            if self._events is not None:
                call(pynvml.nvmlEventSetFree, self._events)
        for means in self._means.values():
            means.close()
        self._means = {}
        with contextlib.suppress(DriverError):
            call(pynvml.nvmlShutdown)
        self._handles = []
        self._uuids = []
        self._events = None

    def version(self) -> str:
        """See ``Driver``."""
        return str(call(pynvml.nvmlSystemGetDriverVersion))

    def count(self) -> int:
        """See ``Driver``."""
        return int(call(pynvml.nvmlDeviceGetCount))

    def facts(self, index: int) -> DeviceProperties:
        """See ``Driver``."""
        handle = self._handle(index)
        major, minor = call(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        mig = optional(pynvml.nvmlDeviceGetMigMode, handle)
        return DeviceProperties(
            uuid=self._uuids[index] or str(call(pynvml.nvmlDeviceGetUUID, handle)),
            index=index,
            model=str(call(pynvml.nvmlDeviceGetName, handle)),
            compute_capability=f"{major}.{minor}",
            memory=self.memory(index),
            mig=bool(mig and mig[0]),
        )

    def memory(self, index: int) -> DeviceMemory | None:
        """See ``Driver``."""
        handle = self._handle(index)
        # Version 2 tells the driver's own part apart; r470 has only the first.
        newer = optional(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
        if newer is not None:
            return DeviceMemory(newer.total, newer.reserved, newer.used)
        older = optional(pynvml.nvmlDeviceGetMemoryInfo, handle)
        return None if older is None else DeviceMemory(older.total, 0, older.used)

    def processes(self, index: int) -> list[GpuProcess]:
        """See ``Driver``."""
        handle = self._handle(index)
        found: dict[int, GpuProcess] = {}
        for names in _PROCESS_LISTS:
            for process in _first_supported(names, handle) or ():
                used = process.usedGpuMemory
                # A process with compute and graphics contexts is in both lists with one sum.
                known = found.get(process.pid)
                if known is None or (used or 0) > (known.used_bytes or 0):
                    found[process.pid] = GpuProcess(process.pid, None if used is None else used)
        return list(found.values())

    def load(self, index: int) -> Load:
        """See ``Driver``."""
        handle = self._handle(index)
        rates = optional(pynvml.nvmlDeviceGetUtilizationRates, handle)
        power = optional(pynvml.nvmlDeviceGetPowerUsage, handle)
        heat = optional(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
        if index not in self._means:
            self._means[index] = NvmlMeans(handle)
        means = self._means[index].since_before()
        return Load(
            busy_ratio=None if rates is None else rates.gpu / 100,
            power_watts=None if power is None else power / 1000,
            temperature_celsius=None if heat is None else float(heat),
            memory_busy_ratio=None if rates is None else rates.memory / 100,
            tensor_ratio=_times(means.get(pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL), 0.01),
            sm_clock_mhz=told(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            memory_clock_mhz=told(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM),
            throttled=_throttled(handle),
            pcie_rx_bytes_per_second=_times(means.get(pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC), MIB),
            pcie_tx_bytes_per_second=_times(means.get(pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC), MIB),
            nvlink_rx_bytes_per_second=_times(
                means.get(pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC), MIB
            ),
            nvlink_tx_bytes_per_second=_times(
                means.get(pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC), MIB
            ),
            encoder_ratio=_coder(pynvml.nvmlDeviceGetEncoderUtilization, handle),
            decoder_ratio=_coder(pynvml.nvmlDeviceGetDecoderUtilization, handle),
        )

    def busy_by_pid(
        self, index: int, since_us: int
    ) -> tuple[Mapping[int, float | None] | None, int]:
        """See ``Driver``.

        Source: nvmlDeviceGetProcessUtilization, one sample for each process that ran; an error
        where none did. Real drivers also fill samples with numbers that cannot be (nvtop #110).
        """
        try:
            samples = self._samples(index, since_us)
            if not samples and since_us:
                newest = _newest(self._samples(index, 0), 0)
                if newest < since_us:  # NVML's clock was set back, or nothing is kept any more
                    return (None if newest else {}), newest
        except DeviceLostError:
            raise
        except DriverError:  # not on this driver or device: vGPU, MIG
            return None, since_us
        found: dict[int, list[float]] = {}
        for sample in samples:
            shares = found.setdefault(sample.pid, [])
            if sample.smUtil <= _MOST_PERCENT:
                shares.append(sample.smUtil / 100)
        busy = {pid: sum(each) / len(each) if each else None for pid, each in found.items()}
        return busy, _newest(samples, since_us)

    def _samples(self, index: int, since_us: int) -> list[Any]:
        try:
            found = call(pynvml.nvmlDeviceGetProcessUtilization, self._handle(index), since_us)
        except NothingFoundError:
            return []
        return [sample for sample in found if sample.timeStamp > since_us]

    def vitals(self, index: int) -> Vitals:
        """See ``Driver``."""
        handle = self._handle(index)
        ecc = optional(
            pynvml.nvmlDeviceGetTotalEccErrors,
            handle,
            pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            pynvml.NVML_VOLATILE_ECC,
        )
        rows = optional(pynvml.nvmlDeviceGetRemappedRows, handle)
        return Vitals(
            uncorrected_ecc=ecc,
            remapped_after_corrected=rows[0] if rows else None,
            remapped_after_uncorrected=rows[1] if rows else None,
            remap_failed=bool(rows and rows[3]),
            recovery_action=_recovery_action(handle),
        )

    def xids(self) -> list[Xid]:
        """See ``Driver``."""
        found: list[Xid] = []
        while self._events is not None and len(found) < _MOST_EVENTS:
            try:
                event = pynvml.nvmlEventSetWait(self._events, _EVENT_WAIT_MS)
            except pynvml.NVMLError:  # Timeout: there is no more
                break
            found.append(Xid(self._name(event.device), int(event.eventData)))
        return found

    def _handle(self, index: int) -> Any:
        if index >= len(self._handles):
            raise DriverError(f"there is no device {index}")
        return self._handles[index]

    def _name(self, device: Any) -> str:
        # A lost device does not tell its UUID any more, but its handle is the one we hold.
        for handle, uuid in zip(self._handles, self._uuids, strict=True):
            if _address(handle) == _address(device):
                return uuid
        return self._uuid(device)

    @staticmethod
    def _uuid(handle: Any) -> str:
        try:
            return str(call(pynvml.nvmlDeviceGetUUID, handle))
        except DriverError:
            return ""


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _coder(function: Callable[[Any], Any], handle: Any) -> float | None:
    found = told(function, handle)  # per cent, and over how many microseconds
    return None if found is None else found[0] / 100


def _throttled(handle: Any) -> frozenset[str] | None:
    """Source: nvmlClocksEventReasons in NVIDIA's NVML reference.

    The hardware's slowdown is one of heat or of power: it is told as the second, where the first is
    not said beside it.
    """
    reasons = told(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if reasons is None:  # before r535
        reasons = told(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    if reasons is None:
        return None
    hot = reasons & (
        pynvml.nvmlClocksEventReasonSwThermalSlowdown
        | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    )
    slow = reasons & pynvml.nvmlClocksEventReasonHwSlowdown
    hot_hardware = reasons & pynvml.nvmlClocksEventReasonHwThermalSlowdown
    braked = reasons & pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown
    found = {
        THERMAL: hot,
        POWER_BRAKE: braked or (slow and not hot_hardware),
        POWER_CAP: reasons & pynvml.nvmlClocksEventReasonSwPowerCap,
    }
    return frozenset(word for word, said in found.items() if said)


_PROCESS_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _first_supported(names: tuple[str, ...], handle: Any) -> list[Any] | None:
    for name in names:
        found: list[Any] | None = optional(getattr(pynvml, name), handle)
        if found is not None:
            return found
    return None


def _newest(samples: list[Any], otherwise: int) -> int:
    return max((s.timeStamp for s in samples if s.smUtil <= _MOST_PERCENT), default=otherwise)


def _recovery_action(handle: Any) -> int | None:
    values = optional(
        pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION]
    )
    if not values or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(values[0].value.uiVal)
