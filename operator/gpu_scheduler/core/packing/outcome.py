"""Placements that are possible, before they are scored: what a pod takes and what it leaves.

Built by ``column`` (many pod kinds on one node) and by ``row`` (one of them on many nodes), scored
by ``scoring``.
"""

from dataclasses import dataclass

from gpu_scheduler.core.model.arrays import Ints, Small
from gpu_scheduler.core.packing.load import Allowed


@dataclass(slots=True)
class Outcomes:
    """Placements, one per row.

    Attributes:
        fixed: what ``Scoring.fixed`` says of rank, device and what the pod takes.
        state: number of the node's state in the batch.
        total: milli-GPU free on the node before, one for each placement or the same for all.
        taken: milli-GPU that the pod takes.
        cpu: milli-CPU left on the node.
        gpu: 1 when the pod takes a device, else 0.
        scarce: milli-GPU to pay for the node's scarcity.
    """

    fixed: Ints
    state: Ints | int
    total: Ints | int
    taken: Ints
    cpu: Ints
    gpu: Ints
    scarce: Ints


@dataclass(slots=True)
class Described:
    """The states of a batch, and after them the outcomes, as ``KindLoad`` describes nodes."""

    nodes: Small
    allowed: Allowed


@dataclass(slots=True)
class Picked:
    """A placement worked out by ``Chooser``: free milli of the node afterwards, left, size."""

    at: int  # number of the class, in a column
    free_milli: list[int]
    left: int
    size: int
