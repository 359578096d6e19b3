"""The scores of the two baselines that the paper on FGD published results for.

Source: Weng et al., USENIX ATC 2023, and the simulator published with it: FGD turns the change of
fragmentation into whole points of a sigmoid, and of nodes with equal points takes the first in a
random order; best fit adds what is left of CPU and GPU, each as a share of the largest node.
docs/packing.md holds both against the published values.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.packing.policy import WEIGHT

SCALE = 1 << 17


def sigmoid_points(growth: Ints) -> Ints:
    """Points lost by a growth of F (milli-GPU times WEIGHT): 0 best, 100 worst."""
    points = 100.0 / (1.0 + np.exp(growth / (1000.0 * WEIGHT)))
    found: Ints = 100 - points.astype(np.int64)
    return found


def left_over(cpu_milli: Ints, most_cpu: int, gpu_milli: Ints | int, most_gpu: int) -> Ints:
    """CPU and GPU left on a node, each as a share of the largest node, in 1/SCALE."""
    found: Ints = cpu_milli * SCALE // max(1, most_cpu) + gpu_milli * SCALE // max(1, most_gpu)
    return found
