"""The copies term: what stays unused when a node is filled with copies of one typical pod.

Fragmentation asks whether one more pod fits; this asks how many, and so sees a node run out of CPU
before it runs out of GPU. The mean over the target workload. What is worked out here is the rest,
what copies use. Ours; docs/packing.md says what it is worth.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Small


def used(by_gpu: Small, by_cpu: Small, gain: Small) -> Small:
    """Free GPU that copies use, in milli-GPU times WEIGHT.

    Args:
        by_gpu: [states, pod shapes] copies for which the devices are enough.
        by_cpu: [states, pod shapes] copies for which the CPU is enough.
        gain: [pod shapes] milli-GPU that one copy uses, times its weight; 0 for pods without a GPU.
    """
    found: Small = np.minimum(by_gpu, by_cpu) @ gain
    return found
