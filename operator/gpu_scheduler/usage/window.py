"""Fifteen minutes of one container's share of a device, as the statistics that advice needs.

Made by the agent from its looks, every ten seconds; judged by the leader. Ratios are 0 to 1. None:
nobody knows, which is never 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import msgspec

WARM_UP_SECONDS = 300
WINDOW_SECONDS = 900
MOST_WINDOWS = 4
"""The last hour is what is judged."""

COMPUTES = 0.02  # of its share: below it a look has nothing that could be slow
LOW, HIGH = 0.25, 0.7  # of its share


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen at one moment.

    Attributes:
        busy: share of time with a kernel of this container.
        memory_mib: that it holds on the device.
        device_busy: share of time with a kernel of anybody.
        neighbours_above: sum over the others on the device of what each uses above its share.
        tensor: activity of the device's tensor cores; None too while a neighbour computes.
        throttled: whether heat or a power brake held the device back.
        refused: allocations that were refused for its cap since the look before.
        cpu: CPU used, of its limit.
        ram: memory of the machine used, of its limit.
        io_stalled: share of time in which all of it waited for disks.
    """

    busy: float | None = None
    memory_mib: float | None = None
    device_busy: float | None = None
    neighbours_above: float | None = None
    tensor: float | None = None
    throttled: bool | None = None
    refused: int = 0
    cpu: float | None = None
    ram: float | None = None
    io_stalled: float | None = None


class Window(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Statistics of the looks of fifteen minutes.

    Attributes:
        looks: in which its use was known, of 90.
        busy_median: and the others with this prefix: of time with a kernel of its own.
        computing: share of looks in which it used more than ``COMPUTES`` of its share.
        low: share of looks below ``LOW`` of its share.
        swings: how often it fell from above ``HIGH`` of its share to below ``LOW``.
        device_busy_median: of the device, by anybody.
        neighbours_above: median of what neighbours use above their shares.
        memory_min_mib: least that it held on the device.
        memory_max_mib: most.
        tensor_median: while it computed alone.
        throttled: share of looks in which heat or a power brake held the device back.
        refused: allocations that its cap refused.
        cpu_median: of its limit.
        ram_max: of its limit.
        io_stalled: mean.
    """

    looks: int = 0
    busy_mean: float | None = None
    busy_median: float | None = None
    busy_p95: float | None = None
    busy_max: float | None = None
    computing: float | None = None
    low: float | None = None
    swings: int = 0
    device_busy_median: float | None = None
    neighbours_above: float | None = None
    memory_min_mib: float | None = None
    memory_max_mib: float | None = None
    tensor_median: float | None = None
    throttled: float | None = None
    refused: int = 0
    cpu_median: float | None = None
    ram_max: float | None = None
    io_stalled: float | None = None


def window(looks: Sequence[Look], share: float) -> Window:
    """The statistics of these looks, of a container that holds so much of the device (0 to 1).

    Each statistic is of the looks in which its figure was known, and None where it never was.
    """
    busy = _known(look.busy for look in looks)
    memory = _known(look.memory_mib for look in looks)
    computing = [look for look in looks if look.busy is not None and look.busy > COMPUTES * share]
    return Window(
        looks=len(busy),
        busy_mean=_mean(busy),
        busy_median=_median(busy),
        busy_p95=percentile(busy, 95),
        busy_max=max(busy, default=None),
        computing=len(computing) / len(busy) if busy else None,
        low=_mean([each < LOW * share for each in busy]),
        swings=_swings(busy, share),
        device_busy_median=_median(_known(look.device_busy for look in looks)),
        neighbours_above=_median(_known(look.neighbours_above for look in looks)),
        memory_min_mib=min(memory, default=None),
        memory_max_mib=max(memory, default=None),
        tensor_median=_median(_known(look.tensor for look in computing)),
        throttled=_mean(_known(look.throttled for look in looks)),
        refused=sum(look.refused for look in looks),
        cpu_median=_median(_known(look.cpu for look in looks)),
        ram_max=max(_known(look.ram for look in looks), default=None),
        io_stalled=_mean(_known(look.io_stalled for look in looks)),
    )


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The least of the values that so many percent of them are not above; None of none."""
    return sorted(values)[-(-len(values) * percent // 100) - 1] if values else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [each for each in values if each is not None]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _swings(busy: Sequence[float], share: float) -> int:
    """What lies between the two bounds ends no swing and begins none."""
    sides = [each > HIGH * share for each in busy if not LOW * share <= each <= HIGH * share]
    return sum(before and not after for before, after in pairwise(sides))
