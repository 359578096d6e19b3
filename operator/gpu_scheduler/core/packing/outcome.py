"""Placements that are possible, before they are scored: what a pod takes and what it leaves.

Built by ``column`` (many pod shapes on one node) and by ``row`` (one of them on many nodes), scored
by ``scoring``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpu_scheduler.core.model.arrays import Ints, Small
from gpu_scheduler.core.packing.load import Allowed


@dataclass(slots=True)
class Outcomes:
    """Placements, one per row.

    Attributes:
        fixed: what ``Scoring.fixed`` says of rank, device and what the pod takes.
        state: number of the node's state in the batch; one for all where there is but one.
        total: milli-GPU free on the node before; so here.
        taken: milli-GPU that the pod takes; so here.
        cpu: milli-CPU left on the node.
        gpu: 1 when the pod takes a device, else 0; so here.
        paid: milli-GPU to pay for the node's scarcity; None where no node is scarce.
    """

    fixed: Ints
    state: Ints | int
    total: Ints | int
    taken: Ints | int
    cpu: Ints
    gpu: Ints | int
    paid: Ints | None


@dataclass(slots=True)
class Described:
    """The states of a batch, and after them the outcomes, as ``ShapeLoad`` describes nodes."""

    nodes: Small
    allowed: Allowed


class AllocationOutcome(NamedTuple):
    """A placement on devices that were picked.

    Attributes:
        free_milli: of the devices of the node afterwards; in any order where they are alike.
        left: milli left on those that the pod has.
        size: rank of the devices, for requests in MiB.
    """

    free_milli: Sequence[int]
    left: int
    size: int
