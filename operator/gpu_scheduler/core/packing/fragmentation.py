"""The fragmentation term: how much free GPU of a node typical pods cannot use.

F_n(m) is all free GPU of node n when m cannot run there or wants no GPU, else the free GPU on the
devices whose share is below what m asks of one. F_n is the mean over the mix. Source: Weng et al.,
"Beware of Fragmentation", USENIX ATC 2023, section 4.
"""

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.packing.policy import WEIGHT

Small = npt.NDArray[np.int32]


def fragmented(scraps: Small, seats: Small, count: Small, total: Small, weight: Small) -> Small:
    """F_n of some states of nodes, in milli-GPU times WEIGHT.

    Args:
        scraps: [states, needs] free milli on devices below the need.
        seats: [states, needs] devices that meet the need.
        count: [needs] devices that a pod with this need takes.
        total: [states] free milli.
        weight: [states, needs] of the shapes with this need for which the CPU is enough.
    """
    usable = (total[:, None] - scraps) * (seats >= count)
    found: Small = total * WEIGHT - np.einsum("ij,ij->i", usable, weight)
    return found
