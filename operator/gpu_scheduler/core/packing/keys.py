"""A score as one integer: the smaller, the better; equal keys go to the first node.

From the highest bits down: rank of the device (only for requests in MiB, where the cheapest
that holds it wins), the bucket of the policy's score, what is left on the device, what is left on
the node. 62 bits, so a row of keys is searched by one ``argmin``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Ints

BUCKET_BITS, LEFT_BITS, NODE_BITS = 20, 17, 17
SIZE_SHIFT = BUCKET_BITS + LEFT_BITS + NODE_BITS
MOST_RANKS = (1 << (62 - SIZE_SHIFT)) - 1
MOST_LEFT = (1 << LEFT_BITS) - 1  # 131 GPUs: no node has more
BLOCKED = np.int64((1 << 63) - 1)  # does not fit now
_BIAS = 1 << (BUCKET_BITS - 1)


def pack(size: Ints | int, bucket: int, left: int, node: Ints | int) -> Ints | int:
    """Keys; a bucket is between -2**19 and 2**19, the others are not negative."""
    biased = bucket + _BIAS
    found: Ints | int = (((size << BUCKET_BITS | biased) << LEFT_BITS | left) << NODE_BITS) + node
    return found


def in_bucket(packed: Ints, bucket: Ints) -> Ints:
    """Keys that were packed with bucket 0, in another."""
    found: Ints = packed + (bucket << (LEFT_BITS + NODE_BITS))
    return found


def without_ties(key: Ints) -> Ints:
    """Keys in which what is left on device and node does not count."""
    found: Ints = key >> (LEFT_BITS + NODE_BITS)
    return found


def left_of(key: int) -> int:
    """What the key says is left on the device."""
    return (key >> NODE_BITS) & MOST_LEFT
