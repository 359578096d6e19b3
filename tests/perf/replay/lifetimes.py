"""Streams of pods that come and go: Poisson arrivals, exponential lifetimes.

Time is counted in mean lifetimes. The load is the GPU demand that would be there if nobody were
turned away, over what the cluster has. The cluster starts empty, so figures are taken from the
second lifetime on. Ours, not published. The seed decides everything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from gpu_scheduler.core.model.request import PodShape

COUNTED_FROM, ENDS = 2.0, 5.0  # in mean lifetimes


@dataclass(frozen=True, slots=True)
class LifetimeEvent:
    """Pod ``number`` arrives (with its kind), or leaves (without)."""

    time: float
    number: int
    pod_shape: PodShape | None


def coming_and_going(
    pods: Sequence[PodShape], capacity_milli: int, load: float, random: Random
) -> Iterator[LifetimeEvent]:
    """Events in the order of time until five lifetimes are over."""
    mean_milli = sum(pod.nominal_milli for pod in pods) / len(pods)
    rate = load * capacity_milli / mean_milli
    leaving: list[tuple[float, int]] = []
    time, number = 0.0, 0
    while (time := time + random.expovariate(rate)) <= ENDS:
        while leaving and leaving[0][0] <= time:
            when, who = heappop(leaving)
            yield LifetimeEvent(when, who, None)
        yield LifetimeEvent(time, number, random.choice(pods))
        heappush(leaving, (time + random.expovariate(1.0), number))
        number += 1
