"""What the runtime reports of itself as it goes; metrics implement it."""

from collections.abc import Sequence
from typing import Protocol


class Observations(Protocol):
    """Durations, in seconds."""

    def bind_seconds(self, seconds: float) -> None:
        """One placing write, answer included."""

    def cycle_seconds(self, seconds: float, steps: Sequence[float]) -> None:
        """One planning cycle, and each step of its plan (``core.steps``), or none of them."""
