"""What a sweep tries to make small or large, and the numbers that its trials report of it."""

from dataclasses import dataclass
from enum import StrEnum


class Goal(StrEnum):
    """Which values of the objective are better."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric, its direction, and the value at which the search may end."""

    metric: str
    goal: Goal = Goal.MINIMIZE
    target: float | None = None
    also: tuple[str, ...] = ()  # other metrics that are kept

    def cost(self, value: float) -> float:
        """The value turned so that less is better."""
        return value if self.goal is Goal.MINIMIZE else -value

    def reached(self, value: float) -> bool:
        """Whether the value is as good as the target, or better."""
        return self.target is not None and self.cost(value) <= self.cost(self.target)
