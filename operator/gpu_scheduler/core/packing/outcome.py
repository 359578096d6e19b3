"""Placements that are possible, before they are scored: what a pod takes and what it leaves.

Built by ``column`` (many shapes on one node) and by ``row`` (one shape on many nodes), scored by
``scoring``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]


@dataclass(slots=True)
class Outcomes:
    """Placements, one per row.

    Attributes:
        state: number of the node's state in the batch.
        total: milli-GPU left on the node.
        left: milli left on the devices that the pod takes.
        cpu: milli-CPU left on the node.
        gpu: 1 when the pod takes a device, else 0.
        scarce: milli-GPU to pay for the node's scarcity.
        size: rank of the device, for requests in MiB.
    """

    state: Ints
    total: Ints
    left: Ints
    cpu: Ints
    gpu: Ints
    scarce: Ints
    size: Ints


@dataclass(slots=True)
class Described:
    """The states of a batch, and after them the outcomes, as ``KindLoad`` describes nodes.

    ``cpu_at`` points into ``ranks`` and ``by_cpu``, where each amount of free CPU stands once.
    """

    nodes: Small
    total: Small
    cpu_at: Ints
    ranks: Ints
    by_cpu: Small


@dataclass(slots=True)
class Picked:
    """A placement worked out by ``Chooser``: free milli of the node afterwards, left, size."""

    at: int  # number of the class, in a column
    free_milli: list[int]
    left: int
    size: int
