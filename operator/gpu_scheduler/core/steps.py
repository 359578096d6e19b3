"""The steps of ``core.plan``, and how long each took by a clock that is read between them."""

from collections.abc import Sequence
from itertools import chain, pairwise

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
_TRIED = 6  # steps of an attempt that is given up


def step_seconds(readings: Sequence[float]) -> list[float]:
    """Seconds of each step, all attempts together; one reading more than steps were taken."""
    attempts = (len(readings) - 1 - len(STEPS)) // _TRIED
    numbers = chain(*[range(_TRIED)] * attempts, range(len(STEPS)))
    seconds = [0.0] * len(STEPS)
    for number, (begin, end) in zip(numbers, pairwise(readings), strict=True):
        seconds[number] += end - begin
    return seconds
