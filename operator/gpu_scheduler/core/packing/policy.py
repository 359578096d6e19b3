"""The packing policies and their constants.

``fragmentation`` is the default. ``fgd`` and ``best-fit`` score like the baselines of "Beware of
Fragmentation" (Weng et al., USENIX ATC 2023), so that the simulator can be held against published
values. Where the constants come from is told in docs/packing.md.
"""

from enum import StrEnum


class Packing(StrEnum):
    """How a node and its devices are chosen among those that fit."""

    FRAGMENTATION = "fragmentation"  # least growth of free GPU that typical pods cannot use
    BEST_FIT = "best-fit"  # least CPU and GPU left on the node, least left on the device
    SPREAD = "spread"  # most GPU left on the node, most left on the device
    FGD = "fgd"  # Fragmentation Gradient Descent as published


BUCKET_MILLI = 40
"""Scores closer than this are equal, and best fit decides: a finer score follows noise."""

COPIES_PERCENT = 8
"""Part of the copies term in the score; the rest is fragmentation."""

OPENING_MILLI = 1000
"""What it costs to take part of a GPU that is free while another node may have one in use: as
much as that GPU, whatever pods are typical. On a scarce node any part of a GPU costs as much, or
fractions would fill what is in use there rather than open a GPU of a node that nobody misses.
It is so many whole buckets."""

COVER_PERCENT = 95
"""Share of recent pods that the typical pod shapes stand for, as in FGD."""

WEIGHT = 10_000
"""The weights of the typical pod shapes sum to this."""

UNIT = 100 * WEIGHT
"""Costs are kept in this part of a milli-GPU, so that they stay integers."""
