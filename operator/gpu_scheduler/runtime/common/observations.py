"""What the runtime reports of itself as it goes; metrics implement it."""

from collections.abc import Sequence
from typing import Protocol


class Observations(Protocol):
    """Durations, in seconds."""

    def bind_seconds(self, seconds: float) -> None:
        """One placing write, answer included."""

    def queue_wait_seconds(self, seconds: float, work_type: str) -> None:
        """From the beginning of work until its first GPU."""

    def job_run_seconds(self, seconds: float, work_type: str) -> None:
        """From the first GPU of a GPUJob that is over until its last."""

    def cycle_seconds(self, seconds: float, steps: Sequence[float]) -> None:
        """One planning cycle, and each step of its plan (``core.steps``), or none of them."""
