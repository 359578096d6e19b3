"""What `test_gpucap_pools` lets processes of a container do."""

import ctypes
import sys

from tests.native.cuda import MIB, Cuda, Number
from tests.native.cuda_layouts import PoolProps


def one_piece_of_each(pools: int) -> None:
    """Make pools and take a mebibyte from each, for as long as it works; then wait."""
    cuda, taken = Cuda(), 0
    say("ready")
    for _ in range(pools):
        pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, 1, 0)))
        if cuda.cuMemAllocFromPoolAsync(Number(), MIB, pool, 0):
            break
        taken += 1
    say(taken)


def say(word: object) -> None:
    """A line to the test, and wait for one from it."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
    sys.stdin.readline()
