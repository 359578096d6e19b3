"""What the steps of a plan take; the clock is passed in, and without one nothing is measured."""

from collections.abc import Callable

STEPS = (
    "line-up",
    "reservations",
    "nominal",
    "reserved-nodes",
    "borrowing",
    "preemption",
    "consolidation",
    "new-reservations",
    "reasons",
)
"""Those of ``core.plan``, in order."""


class StepTimes:
    """Seconds of each step, all attempts of one plan together."""

    __slots__ = ("_clock", "_last", "seconds")

    def __init__(self, clock: Callable[[], float] = float) -> None:
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """A new plan."""
        self.seconds = [0.0] * len(STEPS)
        self._last = self._clock()

    def done(self, number: int) -> None:
        """The step with this number, from 1, is done."""
        now = self._clock()
        self.seconds[number - 1] += now - self._last
        self._last = now
