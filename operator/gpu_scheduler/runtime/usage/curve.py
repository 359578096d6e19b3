"""A life in sixty points: where there are more, each two become one for twice as long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, NamedTuple, TypeVar

from gpu_scheduler.api.gpuusage import POINTS, Curve

STEP_SECONDS = 60
UNKNOWN = -1
MOST_RANKS = 64

T = TypeVar("T")


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
class _Series(Generic[T]):
    """One point for each so many ticks."""

    step_seconds: int = STEP_SECONDS
    points: list[T] = field(default_factory=list)
    _waiting: list[T] = field(default_factory=list)  # of the point that is not full

    def add(self, point: T) -> None:
        """One more minute."""
        self._waiting.append(point)
        if len(self._waiting) * STEP_SECONDS < self.step_seconds:
            return
        self.points.append(self._one(self._waiting))
        self._waiting = []
        if len(self.points) > POINTS:
            self._halve()

    def _halve(self) -> None:
        odd = len(self.points) % 2
        last = self.points[-odd:] if odd else []
        whole = range(0, len(self.points) - odd, 2)
        self.points = [self._one(self.points[at : at + 2]) for at in whole]
        self._waiting = last * (self.step_seconds // STEP_SECONDS)
        self.step_seconds *= 2

    def _one(self, points: Sequence[T]) -> T:
        """Of several."""
        raise NotImplementedError


@dataclass(slots=True)
class LifeCurve(_Series[Point]):
    """Of a workload."""

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

    def _one(self, points: Sequence[Point]) -> Point:
        """Of these: means, and the most memory."""
        busy, memory, cpu = zip(*points, strict=True)
        return Point(_mean(busy), max(memory), _mean(cpu))


@dataclass(slots=True)
class RankCurves(_Series[tuple[int, ...]]):
    """Of pods that wait for each other the use of their GPUs in percent, as one leader saw it.

    Attributes:
        began: when the first point begins, epoch seconds; 0: there is none.
        pods: whose columns these are, in the order in which they were seen first.
    """

    began: float = 0.0
    pods: list[str] = field(default_factory=list)

    def look(self, busy: Mapping[str, float | None], now: float) -> None:
        """One more minute: shares of time, by pod; None: not known."""
        self.began = self.began or now - STEP_SECONDS
        self.pods += [pod for pod in busy if pod not in self.pods][: MOST_RANKS - len(self.pods)]
        known = (busy.get(pod) for pod in self.pods)
        self.add(tuple(UNKNOWN if each is None else round(100 * each) for each in known))

    def shown(self) -> Mapping[str, tuple[int, ...]]:
        """The points of each pod."""
        columns = zip_longest(*self.points, fillvalue=UNKNOWN)
        return dict(zip(self.pods, columns, strict=False))

    def _one(self, points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(_mean(each) for each in zip_longest(*points, fillvalue=UNKNOWN))


def _mean(values: Sequence[int]) -> int:
    known = [each for each in values if each != UNKNOWN]
    return round(sum(known) / len(known)) if known else UNKNOWN
