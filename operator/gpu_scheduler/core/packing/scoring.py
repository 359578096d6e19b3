"""From what a pod would leave behind to a key, by policy.

Gets the outcomes of many placements at once and says in whole buckets how bad each is, what counts
as left on the device and on the node. Called by ``column`` and ``row``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.load import KindLoad
from gpu_scheduler.core.packing.outcome import Described, Outcomes
from gpu_scheduler.core.packing.policy import BUCKET_MILLI, COPIES_PERCENT, UNIT, Packing
from gpu_scheduler.core.packing.published import SCALE, left_over, sigmoid_points
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scoring:
    """A policy, and the largest node of the cluster, against which some measure."""

    packing: Packing
    most_cpu: int
    most_gpu: int

    @property
    def weighs(self) -> bool:
        """Whether outcomes have to be described."""
        return self.packing in (Packing.FRAGMENTATION, Packing.FGD)

    def keys(
        self, load: KindLoad, described: Described | None, after: Outcomes, devices: int
    ) -> Ints:
        """The key of each outcome on nodes with so many devices."""
        left, node = after.left, after.total
        if described is not None and self.packing is Packing.FRAGMENTATION:
            bucket = growth(load, described, after.state, COPIES_PERCENT) + after.scarce * UNIT
            bucket = bucket // (BUCKET_MILLI * UNIT) * after.gpu  # without a GPU: least free GPU
        elif described is not None:
            bucket = sigmoid_points(growth(load, described, after.state, 0) // 100)
        elif self.packing is Packing.BEST_FIT:
            bucket = left_over(after.cpu, self.most_cpu, after.total, self.most_gpu)
        else:
            room = np.where(after.gpu, after.total, after.cpu)
            most = np.where(after.gpu, max(1, devices * DEVICE_MILLI), max(1, self.most_cpu))
            bucket = -(room * SCALE // most)
            left, node = keys.MOST_LEFT - left, keys.MOST_LEFT - node
        return keys.pack(after.size, bucket, left, node)

    def first(self, row: Ints) -> int:
        """The node to take, by the keys of all nodes; among equals the first.

        The published FGD knows no best fit between nodes, only their order. That decides which
        models are used up: best fit fills small nodes first, and the scarce models are there.
        """
        if self.packing is Packing.FGD:
            row = keys.without_ties(row)
        return int(row.argmin())

    def left_of(self, key: int) -> int:
        """What a key says is left on the devices."""
        left = keys.left_of(key)
        return keys.MOST_LEFT - left if self.packing is Packing.SPREAD else left


def growth(load: KindLoad, described: Described, state: Ints, copies_percent: int) -> Ints:
    """By how much the cost of the node grows, in UNITs of a milli-GPU."""
    nodes, total = described.nodes, described.total
    part = load.fragmentation(nodes, total, described.ranks[described.cpu_at])
    cost = part.astype(np.int64) * (100 - copies_percent)
    if copies_percent:
        by_cpu = described.by_cpu[described.cpu_at]
        cost += load.unused(nodes, total, by_cpu).astype(np.int64) * copies_percent
    states = len(nodes) - len(state)
    found: Ints = cost[states:] - cost[state]
    return found
