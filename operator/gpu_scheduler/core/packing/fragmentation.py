"""The fragmentation term: how much free GPU of a node typical pods cannot use.

F_n(m) is all free GPU of node n when m cannot run there or wants no GPU, else the free GPU on the
devices whose share is below what m asks of one. F_n is the mean over the target workload. What is
worked out here is the rest, what they can use. Source: Weng et al., "Beware of Fragmentation",
USENIX ATC 2023, section 4.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Small


def usable(seated: Small, seats: Small, count: Small, weight: Small) -> Small:
    """Free GPU of states of nodes less their F_n, in milli-GPU times WEIGHT.

    Args:
        seated: [states, needs] free milli on the devices that meet the need; needs of one device
            come first.
        seats: [states, the others] how many devices meet a need of several.
        count: [the others] how many it takes.
        weight: [states, needs] of the pod shapes with this need for which the CPU is enough.
    """
    if len(count):
        seated = seated.copy()
        seated[:, -len(count) :] *= seats >= count
    found: Small = np.einsum("ij,ij->i", seated, weight)
    return found
