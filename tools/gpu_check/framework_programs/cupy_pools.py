"""CuPy: its own pool (default), the driver's pool (async), managed memory (managed)."""

import importlib
import json
import sys
from typing import Any

cupy: Any = importlib.import_module("cupy")


def main(way: str, piece_mib: int, most: int) -> None:
    """Take pieces and print what came of it."""
    free, total = cupy.cuda.runtime.memGetInfo()
    if way == "async":
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    elif way == "managed":
        cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    held: list[object] = []
    error = None
    try:
        while len(held) < most:
            held.append(cupy.cuda.alloc(piece_mib << 20))
    except Exception as refusal:  # whatever the framework makes of it is what is to be reported
        refused = "cudaErrorMemoryAllocation" in str(refusal)
        error = "OutOfMemoryError" if refused else type(refusal).__name__
    seen = {"free_mib": free / (1 << 20), "total_mib": total / (1 << 20)}
    print(json.dumps({**seen, "got_mib": len(held) * piece_mib, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
