"""What `test_gpucap_arrays` lets processes of a container do."""

import ctypes
import sys
from itertools import product
from typing import Any

from tests.native.cuda import OUT_OF_MEMORY, Cuda, Number
from tests.native.cuda_layouts import ArrayDescriptor

BLOCKS = range(0x91, 0x9F)  # BC1 to BC7
NAMED = range(0xC0, 0xCC)  # UNORM_INT8X1 to SNORM_INT16X4
PLAIN = (0x01, 0x02, 0x03, 0x08, 0x09, 0x0A, 0x10, 0x20)
SHAPES = ((1, 0, 0), (65536, 0, 0), (1, 3000, 0), (1000, 700, 0), (129, 65, 17), (4097, 1025, 0))


def take_and_wait(width: int, height: int, depth: int, form: int, channels: int) -> None:
    """Once told to, take arrays of a shape until one is refused; keep them until told to end."""
    cuda = Cuda()
    _say("ready")
    sys.stdin.readline()
    what = ArrayDescriptor(width, height, depth, form, channels, 0)
    while (answer := cuda.cuArray3DCreate_v2(Number(), ctypes.byref(what))) == 0:
        pass
    assert answer == OUT_OF_MEMORY, answer
    _say("full")
    sys.stdin.readline()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def of_every_format(levels: int) -> list[Any]:
    """Format, shape, and what one costs by the view of the container, which is its ledger's."""
    cuda, found = Cuda(), []
    for form, shape in product((*PLAIN, *BLOCKS, *NAMED), SHAPES):
        what, made = ArrayDescriptor(*shape, form, 1 if form in PLAIN else 4, 0), Number()
        before = cuda.free_mib()
        if levels:
            cuda.ok("cuMipmappedArrayCreate", made, ctypes.byref(what), levels)
        else:
            cuda.ok("cuArray3DCreate_v2", made, ctypes.byref(what))
        found.append((form, shape, before - cuda.free_mib()))
        cuda.ok("cuMipmappedArrayDestroy" if levels else "cuArrayDestroy", int(made))
    return found
