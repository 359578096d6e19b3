"""A life in sixty points: where there are more, each two become one for twice as long."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_scheduler.api.gpuusage import POINTS, Curve

STEP_SECONDS = 60
UNKNOWN = -1


@dataclass(slots=True)
class LifeCurve:
    """Use in percent and memory in MiB, one point for each so many ticks."""

    step_seconds: int = STEP_SECONDS
    busy: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    _waiting: list[tuple[int, int]] = field(default_factory=list)  # of the point that is not full

    def add(self, busy: int, memory: int) -> None:
        """One more minute; ``UNKNOWN`` where nobody knows."""
        self._waiting.append((busy, memory))
        if len(self._waiting) * STEP_SECONDS < self.step_seconds:
            return
        self.busy.append(_mean([each for each, _ in self._waiting]))
        self.memory.append(max(each for _, each in self._waiting))
        self._waiting = []
        if len(self.busy) > POINTS:
            self._halve()

    def shown(self) -> Curve | None:
        """As the object has it; None: there is no point yet."""
        if not self.busy:
            return None
        return Curve(step_seconds=self.step_seconds, busy_percent=self.busy, memory_mib=self.memory)

    @classmethod
    def of(cls, shown: Curve | None) -> "LifeCurve":
        """Going on from what an object has."""
        if shown is None or shown.step_seconds % STEP_SECONDS:
            return cls()
        count = min(len(shown.busy_percent), len(shown.memory_mib))
        return cls(
            shown.step_seconds, list(shown.busy_percent[:count]), list(shown.memory_mib[:count])
        )

    def _halve(self) -> None:
        odd = len(self.busy) % 2
        last = list(zip(self.busy[-odd:], self.memory[-odd:], strict=True)) if odd else []
        whole = range(0, len(self.busy) - odd, 2)
        self.busy = [_mean(self.busy[at : at + 2]) for at in whole]
        self.memory = [max(self.memory[at : at + 2]) for at in whole]
        each = self.step_seconds // STEP_SECONDS
        self._waiting = last * each
        self.step_seconds *= 2


def _mean(values: Sequence[int]) -> int:
    known = [each for each in values if each != UNKNOWN]
    return round(sum(known) / len(known)) if known else UNKNOWN
