"""From what a pod would leave behind to a key, by policy.

Gets the outcomes of many placements at once and says in whole buckets how bad each is, what counts
as left on the device and on the node.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.load import ShapeLoad
from gpu_scheduler.core.packing.outcome import Described, Outcomes
from gpu_scheduler.core.packing.policy import (
    BUCKET_MILLI,
    OPENING_MILLI,
    UNIT,
    Packing,
    ScoringInput,
)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A policy, and the largest node of the cluster, against which some measure."""

    packing: Packing
    most_cpu: int
    most_gpu: int

    @property
    def weighs(self) -> bool:
        """Whether outcomes have to be described."""
        return self.packing.policy.weighs

    @property
    def shares_first(self) -> bool:
        """Whether a pod takes part of a free GPU only if none in use on the node holds it."""
        return self.packing.policy.shares_first

    def fixed(self, size: Ints | int, taken: Ints | int) -> Ints | int:
        """The part of a key that does not depend on the node: with nothing left on the devices.

        Args:
            size: rank of the device, for requests in MiB.
            taken: milli that the pod takes of the node.
        """
        if self.packing.policy.emptiest:
            return keys.pack(size, 0, keys.MOST_LEFT, keys.MOST_LEFT + taken)
        return keys.pack(size, 0, 0, -taken)

    def placed(self, fixed: Ints | int, left: Ints, opens: Flags | None) -> Ints:
        """The same with so many milli left on the devices that the pod takes.

        Args:
            fixed: what ``fixed`` says.
            left: on the devices.
            opens: whether more GPUs of the node are used in part than before, where described.
        """
        found: Ints
        if self.packing.policy.emptiest:
            found = fixed - (left << keys.NODE_BITS)
        else:
            found = fixed + (left << keys.NODE_BITS)
        if opens is not None and self.packing.policy.shares_first:
            found = keys.in_bucket(found, opens * (OPENING_MILLI // BUCKET_MILLI))
        return found

    def keys(
        self, load: ShapeLoad, described: Described | None, after: Outcomes, devices: int
    ) -> Ints:
        """The key of each outcome on nodes with so many devices."""
        policy = self.packing.policy
        bucket = policy.bucket(
            ScoringInput(
                after.cpu,
                after.total,
                after.taken,
                after.gpu,
                devices * DEVICE_MILLI,
                self.most_gpu,
                self.most_cpu,
                after.paid,
                partial(growth, load, described, after),
            )
        )
        total = -after.total if policy.emptiest else after.total
        return keys.in_bucket(after.fixed + total, bucket)

    def first(self, row: Ints) -> int:
        """The node to take, by the keys of all nodes; among equals the first."""
        if self.packing.policy.ties_by_order:
            row = keys.without_ties(row)
        return int(row.argmin())

    def left_of(self, key: int) -> int:
        """What a key says is left on the devices."""
        left = keys.left_of(key)
        return keys.MOST_LEFT - left if self.packing.policy.emptiest else left


def to_pay(scarcer: Ints, for_part: Ints | int) -> Ints:
    """[placements] Milli-GPU for what a node is scarcer than need be.

    Args:
        scarcer: by how much; what is less than 0 counts as 0.
        for_part: what is paid on top where it is scarcer at all.
    """
    found: Ints = (scarcer + for_part) * (scarcer > 0)
    return found


def for_part(taken: Ints | int) -> Ints:
    """What a pod that opens no GPU pays on top on a scarce node, of what it takes in all."""
    return np.where(taken % DEVICE_MILLI, OPENING_MILLI, 0)


def growth(
    load: ShapeLoad, described: Described | None, after: Outcomes, copies_percent: int
) -> Ints:
    """By how much the cost of the node grows, in UNITs of a milli-GPU.

    What it costs is what of its free GPU is of no use; so the cost grows by what use is lost,
    less what the pod itself takes.
    """
    assert described is not None, "only a policy that weighs asks"
    nodes, allowed = described.nodes, described.allowed
    use = load.usable(nodes, allowed.weight).astype(np.int64) * (100 - copies_percent)
    if copies_percent:
        use += load.used(nodes, allowed.copies).astype(np.int64) * copies_percent
    states = len(nodes) - len(after.fixed)
    found: Ints = use[after.state] - use[states:] - after.taken * UNIT
    return found
