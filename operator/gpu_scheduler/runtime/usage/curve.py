"""A life in sixty points: where there are more, each two become one for twice as long."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from gpu_scheduler.api.gpuusage import POINTS, Curve

STEP_SECONDS = 60
UNKNOWN = -1


class Point(NamedTuple):
    """Of one step; ``UNKNOWN`` where nobody knows.

    Attributes:
        busy: use of its GPUs in percent.
        memory: MiB.
        cpu: in percent of one core.
    """

    busy: int = UNKNOWN
    memory: int = UNKNOWN
    cpu: int = UNKNOWN


@dataclass(slots=True)
class LifeCurve:
    """One point for each so many ticks."""

    step_seconds: int = STEP_SECONDS
    points: list[Point] = field(default_factory=list)
    _waiting: list[Point] = field(default_factory=list)  # of the point that is not full

    def add(self, point: Point) -> None:
        """One more minute."""
        self._waiting.append(point)
        if len(self._waiting) * STEP_SECONDS < self.step_seconds:
            return
        self.points.append(_one(self._waiting))
        self._waiting = []
        if len(self.points) > POINTS:
            self._halve()

    def shown(self) -> Curve | None:
        """As the object has it; None: there is no point yet."""
        if not self.points:
            return None
        busy, memory, cpu = (list(each) for each in zip(*self.points, strict=True))
        known = any(each != UNKNOWN for each in cpu)
        return Curve(
            step_seconds=self.step_seconds,
            busy_percent=busy,
            memory_mib=memory,
            cpu_percent=cpu if known else None,
        )

    @classmethod
    def of(cls, shown: Curve | None) -> "LifeCurve":
        """Going on from what an object has."""
        if shown is None or shown.step_seconds % STEP_SECONDS:
            return cls()
        count = min(len(shown.busy_percent), len(shown.memory_mib))
        columns = shown.busy_percent, shown.memory_mib, shown.cpu_percent or ()
        rows = zip_longest(*(column[:count] for column in columns), fillvalue=UNKNOWN)
        return cls(shown.step_seconds, [Point(*row) for row in rows])

    def _halve(self) -> None:
        odd = len(self.points) % 2
        last = self.points[-odd:] if odd else []
        whole = range(0, len(self.points) - odd, 2)
        self.points = [_one(self.points[at : at + 2]) for at in whole]
        self._waiting = last * (self.step_seconds // STEP_SECONDS)
        self.step_seconds *= 2


def _one(points: Sequence[Point]) -> Point:
    """Of these: means, and the most memory."""
    busy, memory, cpu = zip(*points, strict=True)
    return Point(_mean(busy), max(memory), _mean(cpu))


def _mean(values: Sequence[int]) -> int:
    known = [each for each in values if each != UNKNOWN]
    return round(sum(known) / len(known)) if known else UNKNOWN
