"""How the pod kinds asked about look on one kind of node: alike ones are one class.

Pod kinds that differ in memory, in models or in what nodes they choose often ask a node of one kind
for the same CPU and devices; they are scored once. What all states of nodes share is worked out
here, when a pod kind is added. Called by ``rows``, used by ``column``.
"""

from dataclasses import dataclass

import numpy as np

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.packing.load import NEVER

PICKED = NEVER + 1  # instead of milli: ``Chooser`` has to pick the devices
MOST_AMOUNTS = 4_000  # of free CPU, remembered


@dataclass(slots=True)
class Classes:
    """Classes of pod kinds on nodes of one kind.

    Attributes:
        milli: per device; NEVER where the kind does not serve, PICKED where ``Chooser`` picks.
        count: devices; 0 for pods without a GPU.
        size: rank of the device, for requests in MiB.
        cpu_milli: what they want of the node.
        least_scarce: scarcity of the least scarce node that they could use.
        steps: distinct amounts of CPU, 0 first.
        step_of: [classes] where their CPU stands in ``steps``.
        hard: class and row of each pod kind for which ``Chooser`` picks.
        of_row: [rows] the class of each pod kind.
    """

    milli: Ints
    count: Ints
    size: Ints
    cpu_milli: Ints
    least_scarce: Ints
    steps: Ints
    step_of: Ints
    hard: list[tuple[int, int]]
    of_row: Ints


def classify(milli: Ints, count: Ints, size: Ints, wants: tuple[Ints, Ints]) -> Classes:
    """The classes of pod kinds on a kind of node; ``wants``: CPU and scarcity, per pod kind."""
    rows = np.arange(1, len(milli) + 1)
    serves = milli != NEVER
    columns = np.stack(
        [milli, count, size, *(want * serves for want in wants), rows * (milli == PICKED)]
    )
    classes, of_row = np.unique(columns, axis=1, return_inverse=True)
    of_row = of_row.ravel()
    milli, count, size, cpu, least, row = np.ascontiguousarray(classes)
    steps, step_of = np.unique(np.append(0, cpu), return_inverse=True)
    return Classes(
        milli=milli,
        count=count,
        size=size,
        cpu_milli=cpu,
        least_scarce=least,
        steps=steps,
        step_of=step_of.ravel()[1:],
        hard=[(int(at), int(row[at]) - 1) for at in np.flatnonzero(row)],
        of_row=of_row,
    )
