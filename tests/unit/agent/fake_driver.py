"""A driver that says what a test tells it to."""

from dataclasses import dataclass, field, replace

from gpu_scheduler.agent.driver import (
    DeviceMemory,
    DeviceProperties,
    DriverError,
    GpuProcess,
    Load,
    Vitals,
    Xid,
)

MIB = 1024 * 1024


def gpu(index: int) -> str:
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def facts(index: int = 0, total_mib: int = 40960, reserved_mib: int = 512) -> DeviceProperties:
    memory = DeviceMemory(total_mib * MIB, reserved_mib * MIB, reserved_mib * MIB)
    return DeviceProperties(gpu(index), index, "NVIDIA A100-PCIE-40GB", "8.0", memory)


@dataclass
class FakeDriver:
    """Fields are the state; errors by device, or for everything."""

    devices: list[DeviceProperties] = field(default_factory=lambda: [facts(0), facts(1)])
    on: dict[str, list[GpuProcess]] = field(default_factory=dict)
    errors: dict[str, DriverError] = field(default_factory=dict)
    broken: DriverError | None = None
    vital: dict[str, Vitals] = field(default_factory=dict)
    events: list[Xid] = field(default_factory=list)
    gauges: Load = Load(0.5, 250.0, 60.0)
    busy: dict[int, float] | None = field(default_factory=dict)
    opened: int = 0
    closed: int = 0
    listed: list[DeviceProperties] = field(default_factory=list)

    def open(self) -> None:
        self._check()
        self.opened += 1
        self.listed = list(self.devices)

    def close(self) -> None:
        self.closed += 1

    def version(self) -> str:
        return "570.86.15"

    def count(self) -> int:
        self._check()
        return len(self.listed)

    def facts(self, index: int) -> DeviceProperties:
        found = self._at(index)
        return replace(found, index=index)

    def memory(self, index: int) -> DeviceMemory | None:
        return self._at(index).memory

    def processes(self, index: int) -> list[GpuProcess]:
        return list(self.on.get(self._at(index).uuid, ()))

    def load(self, index: int) -> Load:
        return self.gauges

    def busy_by_pid(self, index: int, since_us: int) -> tuple[dict[int, float] | None, int]:
        return None if self.busy is None else dict(self.busy), since_us + 1

    def vitals(self, index: int) -> Vitals:
        return self.vital.get(self._at(index).uuid, Vitals())

    def xids(self) -> list[Xid]:
        taken, self.events = self.events, []
        return taken

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken

    def _at(self, index: int) -> DeviceProperties:
        self._check()
        found = self.listed[index]
        if found.uuid in self.errors:
            raise self.errors[found.uuid]
        return found
