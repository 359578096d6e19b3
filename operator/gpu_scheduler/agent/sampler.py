"""One look at everything NVML and /proc say: the agent's blocking I/O, done in a thread.

A sample is a value; what follows from it is decided elsewhere. A device that does not answer, or
answers what cannot be, costs that device alone, a driver that does so costs all, and while anything
is unreadable NVML is opened anew every ``REOPEN_SECONDS``: that is how a device comes back after a
reset.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpu_scheduler.agent import plausible
from gpu_scheduler.agent.driver import (
    DeviceMemory,
    DeviceProperties,
    Driver,
    DriverError,
    Load,
    Vitals,
    Xid,
)
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.procfs import Process, ProcFS
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

REOPEN_SECONDS = 30.0
_VERSION_LENGTH = 64  # as GPUNode holds it
_MOST_US = (1 << 63) - 1  # NVML's clock
_MOST_CODES = 64  # of XIDs that are counted by number, per device; NVIDIA's catalogue has fewer
SLOW_SECONDS = 10.0  # between looks at what changes slowly: vitals, load, use per process


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process on a device."""

    pid: int
    used_bytes: int | None
    process: Process | None  # None: NVML knows it, /proc does not
    busy_ratio: float | None = None  # of its time; None: the driver cannot tell


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """A device and who is on it; ``message`` says why it is unhealthy."""

    facts: DeviceProperties
    message: str | None
    memory: DeviceMemory | None = None
    load: Load = Load()
    processes: tuple[DeviceProcess, ...] = ()
    readable: bool = True
    vitals: Vitals = Vitals()
    xids: Mapping[int, int] = field(default_factory=dict)  # how often, by code, since the start

    @property
    def total_bytes(self) -> int | None:
        """Its memory, as it was read or else as it was known before; None: not known."""
        memory = self.memory or self.facts.memory
        return None if memory is None else memory.total_bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One look; ``problem`` is set, and there are no devices, when NVML cannot be read at all."""

    at: float
    driver_version: str = ""
    devices: tuple[DeviceSample, ...] = ()
    problem: str | None = None


@dataclass(slots=True)
class _DeviceReadings:
    facts: DeviceProperties
    vitals: Vitals = Vitals()
    load: Load = Load()
    busy: dict[int, float | None] | None = None  # by pid; None: the driver cannot tell
    busy_since_us: int = 0
    slow_at: float = float("-inf")

    def busy_ratio(self, pid: int) -> float | None:
        """Of a process; where the driver tells of none, that of a device on which nothing ran."""
        told = None if self.busy is None else self.busy.get(pid, 0.0)
        return 0.0 if told is None and self.load.busy_ratio == 0.0 else told


class Sampler:
    """Looks when told to; not to be called from two threads."""

    def __init__(
        self, driver: Driver, procfs: ProcFS, health: Health, *, unified_memory_mib: int = 0
    ) -> None:
        """``unified_memory_mib``: of devices that share the machine's memory; 0: not configured."""
        self._driver = driver
        self._procfs = procfs
        self._health = health
        self._unified_memory_mib = unified_memory_mib
        self._reopen_at = float("-inf")  # inf: NVML is open and all is readable
        self._version = ""
        self._known: dict[str, _DeviceReadings] = {}
        self._numbers: dict[str, int] = {}  # index by UUID, as of the last opening
        self._xids: dict[str, Counter[int]] = {}  # by UUID and code

    def sample(self, now: float) -> Sample:
        """Look once; never raises for what the driver does."""
        try:
            if now >= self._reopen_at:
                self._open(now)
            plausible.count(self._driver.count())
            events = plausible.xids(self._driver.xids())
        except Exception as error:
            self._reopen_at = now
            return Sample(now, problem=f"NVML: {_said('driver', error)}")
        for event in events:
            self._count(event)
            reason = self._health.xid(event)
            log.warning("XID %d on %s: %s", event.code, event.uuid, reason or "not a reason")
        devices = tuple(self._device(uuid, known, now) for uuid, known in self._known.items())
        if not all(device.readable for device in devices):
            self._reopen_at = min(self._reopen_at, now + REOPEN_SECONDS)
        in_order = sorted(devices, key=lambda device: device.facts.index)
        return Sample(now, self._version, tuple(in_order))

    def close(self) -> None:
        """Let go of the driver."""
        self._reopen_at = float("-inf")
        self._driver.close()

    def _open(self, now: float) -> None:
        """Open NVML and see which device has which number now: a lost one shifts the others."""
        self._driver.open()
        self._reopen_at = float("inf")
        self._version = plausible.text(self._driver.version(), _VERSION_LENGTH)
        self._numbers = {}
        for index in range(plausible.count(self._driver.count())):
            try:
                facts = self._facts(index)
            except Exception as error:
                said = _said(f"device {index}", error)
                log.warning("device %d cannot be read: %s", index, said)
                self._reopen_at = now + REOPEN_SECONDS
                continue
            self._numbers[facts.uuid] = index
            known = self._known.setdefault(facts.uuid, _DeviceReadings(facts))
            known.facts = facts
            known.slow_at = float("-inf")

    def _device(self, uuid: str, known: _DeviceReadings, now: float) -> DeviceSample:
        index = self._numbers.get(uuid)
        try:
            if index is None:
                raise DriverError("the driver does not list the device any more")
            memory = plausible.memory(self._driver.memory(index))
            if now - known.slow_at >= SLOW_SECONDS:
                self._look_closer(index, known)
                known.slow_at = now
            processes = tuple(
                DeviceProcess(
                    p.pid, p.used_bytes, self._procfs.process(p.pid), known.busy_ratio(p.pid)
                )
                for p in plausible.processes(self._driver.processes(index))
            )
        except Exception as error:
            known.slow_at = float("-inf")
            message = self._health.unreadable(uuid, _said(uuid, error))
            return DeviceSample(known.facts, message, readable=False, xids=self._counted(uuid))
        return DeviceSample(
            known.facts,
            self._health.message(uuid, known.vitals),
            memory,
            known.load,
            processes,
            vitals=known.vitals,
            xids=self._counted(uuid),
        )

    def _count(self, event: Xid) -> None:
        if event.uuid not in self._known:
            return
        counts = self._xids.setdefault(event.uuid, Counter())
        if event.code in counts or len(counts) < _MOST_CODES:
            counts[event.code] += 1

    def _counted(self, uuid: str) -> Mapping[int, int]:
        return dict(self._xids.get(uuid, ()))

    def _look_closer(self, index: int, known: _DeviceReadings) -> None:
        known.facts = self._facts(index)
        known.vitals = plausible.vitals(self._driver.vitals(index))
        known.load = plausible.load(self._driver.load(index))
        busy, newest = self._driver.busy_by_pid(index, known.busy_since_us)
        known.busy = None if busy is None else plausible.busy(busy)
        known.busy_since_us = plausible.whole(newest, _MOST_US) or 0

    def _facts(self, index: int) -> DeviceProperties:
        found = replace(plausible.facts(self._driver.facts(index)), index=index)
        return with_configured_memory(found, self._unified_memory_mib)


def with_configured_memory(facts: DeviceProperties, unified_memory_mib: int) -> DeviceProperties:
    """The facts, with the configured size where a device shares the machine's memory."""
    if facts.memory is not None or not unified_memory_mib:
        return facts
    return replace(facts, memory=DeviceMemory(unified_memory_mib * MIB, 0, 0))


def _said(about: str, error: Exception) -> str:
    """The driver's own words, or what went wrong with an answer that nobody foresaw."""
    if isinstance(error, DriverError):
        return str(error)
    unexpected("sampler", about, error)
    return f"an answer that cannot be used ({type(error).__name__})"
