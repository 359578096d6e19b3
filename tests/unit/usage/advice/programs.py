"""How programs use a GPU, as far as looks every ten seconds show it.

Works out what a training loop does from how long its parts take. Nothing here knows a rule, or a
bound of one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.unit.usage.advice.seen import DEVICE_MIB, STEP, USABLE

from gpu_scheduler.usage.window import Look


@dataclass(frozen=True)
class Loop:
    """A training loop; seconds are of one step on a GPU of its own.

    Attributes:
        kernels: seconds of kernels.
        code: seconds between kernels, of the program's own thread.
        loading: CPU seconds that a batch takes to be made.
        reading: seconds that a batch waits for disks.
        workers: loaders beside the program; 0: the program itself loads.
        cores: limit of CPU.
        spins: the program's thread burns CPU while kernels run.
    """

    kernels: float = 1.0
    code: float = 0.05
    loading: float = 0.0
    reading: float = 0.0
    workers: int = 4
    cores: float = 8.0
    spins: bool = True

    @property
    def step(self) -> float:
        """Seconds from one batch to the next."""
        own = self.kernels + self.code
        if not self.workers:
            return own + self.loading + self.reading
        supply = (self.loading + self.reading) / self.workers
        return max(own, supply, self.loading / self.cores)

    @property
    def cost(self) -> float:
        """Share of its time that loaders which keep up would save."""
        return 1.0 - min((self.kernels + self.code) / self.step, 1.0)

    def steady(self) -> "Pace":
        """What is seen of it on a GPU that nobody else uses."""
        cpu = self.code + self.loading + (self.kernels if self.spins else 0.0)
        waits = max(self.step - self.kernels - self.code, 0.0) / self.step
        disk = self.reading / (self.reading + self.loading) if self.reading else 0.0
        return Pace(
            busy=self.kernels / self.step,
            cpu=min(cpu / self.step / self.cores, 1.0),
            io=waits * disk,
        )


@dataclass(frozen=True)
class Pace:
    """What is seen while a program does the same all the time; ratios 0 to 1."""

    busy: float
    cpu: float
    io: float = 0.0


@dataclass
class Watch:
    """Looks at one container: what surrounds it, and how well it is seen.

    Attributes:
        rng: of this trace.
        share: of the device.
        memory: of its cap.
        ram: of its limit.
        noise: standard deviation of use from look to look.
        wander: of its slow ups and downs, as a part of it: longer sequences, other layers.
        blind: share of looks in which its use is not known.
        neighbours: use of the device by others.
        above: of these, beyond their shares.
        always: fields of every look.
    """

    rng: Random
    share: float = 1.0
    memory: float = 0.8
    ram: float = 0.3
    noise: float = 0.03
    wander: float = 0.0
    blind: float = 0.0
    neighbours: float = 0.0
    above: float = 0.0
    always: dict[str, Any] = field(default_factory=dict)
    level: float = 0.0

    @property
    def cap_mib(self) -> float:
        """What its share may hold."""
        return self.share * USABLE * DEVICE_MIB

    def look(self, pace: Pace, **fields: Any) -> Look:
        """At a program at this pace."""
        rng = self.rng
        self.level = 0.95 * self.level + rng.gauss(0.0, 0.31 * self.wander)
        level = pace.busy * (1.0 + self.level)
        busy = self._near(level, self.noise) if pace.busy > 0 else 0.0
        others = self._near(self.neighbours, 0.02) if self.neighbours else 0.0
        seen: dict[str, Any] = {
            "busy": None if rng.random() < self.blind else busy,
            "memory_mib": self.memory * self.cap_mib,
            "device_busy": min(busy + others, 1.0),
            "neighbours_above": max(self._near(self.above, 0.02), 0.0) if self.neighbours else 0.0,
            "throttled": rng.random() < 0.01,
            "cpu": self._near(pace.cpu, 0.02),
            "ram": self._near(self.ram, 0.01),
            "io_stalled": self._near(pace.io, 0.02) if pace.io else 0.0,
        }
        return Look(**(seen | self.always | fields))

    def steady(self, pace: Pace, seconds: float, **fields: Any) -> list[Look]:
        """For so long."""
        return [self.look(pace, **fields) for _ in range(int(seconds // STEP))]

    def mixed(self, phases: Iterator[tuple[float, Pace]], seconds: float) -> list[Look]:
        """Phases one after the other, each so many seconds long: a look sees their mean."""
        looks: list[Look] = []
        length, pace = next(phases)
        for _ in range(int(seconds // STEP)):
            left, parts = float(STEP), []
            while left > 0:
                part = min(left, length)
                parts.append((part, pace))
                left -= part
                length -= part
                if length <= 0:
                    length, pace = next(phases)
            mean = Pace(
                sum(part * each.busy for part, each in parts) / STEP,
                sum(part * each.cpu for part, each in parts) / STEP,
                sum(part * each.io for part, each in parts) / STEP,
            )
            looks.append(self.look(mean))
        return looks

    def _near(self, value: float, deviation: float) -> float:
        return min(max(self.rng.gauss(value, deviation), 0.0), 1.0)
