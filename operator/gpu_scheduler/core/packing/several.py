"""Devices of one node of alike ones for one pod, by free milli alone: best fit.

Takes for each request, in the order in which ``assign`` does, the devices with the least left: the
first thing that ``assign`` tries. Where that leads nowhere, or memory decides between two devices,
``UNSURE`` says that ``Chooser`` has to be asked. Invariant: what is found here is what ``Chooser``
finds on a regular node. Called by ``column`` and ``row``, and by ``table`` to look ahead.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from gpu_scheduler.core.packing.outcome import AllocationOutcome
from gpu_scheduler.core.packing.shapes import ShapeRequest, Steps

Free = tuple[int, ...]  # milli of the devices of a node, rising


# The devices for the pod shape of a row in a state, both by number; None where there are none.
Search = Callable[[int, int], AllocationOutcome | None]


class Unsure(Enum):
    """The type of ``UNSURE``."""

    UNSURE = 0


UNSURE: Final = Unsure.UNSURE


def best_fit(free: Free, ask: ShapeRequest) -> AllocationOutcome | Unsure | None:
    """Devices for all requests; None when there are none."""
    steps = ask.steps
    milli, count = steps[0]
    first = bisect_left(free, milli)
    rest = [*free[:first], *free[first + count :]]
    touched = [held - milli for held in free[first : first + count]]
    if len(touched) < count:
        return None
    for milli, count in steps[1:]:
        first, again = bisect_left(rest, milli), bisect_left(touched, milli)
        fitting = rest[first:]
        taken = fitting[:count]
        if again < len(touched):
            others = touched[again:]
            if not set(fitting).isdisjoint(others):
                return UNSURE  # which of them it is decides what is left
            taken = sorted(fitting + others)[:count]
        if len(taken) < count:
            return None if _too_few(free, steps) else UNSURE
        for held in taken:
            (rest if held in fitting else touched).remove(held)
        touched.extend([held - milli for held in taken])
        touched.sort()
    return AllocationOutcome(sorted(rest + touched), sum(touched), ask.size)


def picked(
    ask: ShapeRequest,
    row: int,
    cpu_milli: int,
    free: Sequence[Free],
    cpu: Sequence[int],
    search: Search,
) -> list[tuple[int, AllocationOutcome]]:
    """The states, by number, in which there are devices for a row that wants so much CPU."""
    known: dict[Free, AllocationOutcome | Unsure | None] = {}
    found = []
    for state, held in enumerate(free):
        if cpu[state] < cpu_milli:
            continue
        if held not in known:
            known[held] = best_fit(held, ask) if ask.steps else UNSURE
        devices = known[held]
        if devices is UNSURE:
            devices = search(state, row)
        if devices is not None:
            found.append((state, devices))
    return found


def _too_few(free: Free, steps: Steps) -> bool:
    """Whether a request would not find its devices if it were alone."""
    return any(len(free) - bisect_left(free, milli) < count for milli, count in steps)


def swapped(free: Free, held: int, left: int) -> Free:
    """The same when one device that held so much holds less."""
    now = list(free)
    now.remove(held)
    insort(now, left)
    return tuple(now)
