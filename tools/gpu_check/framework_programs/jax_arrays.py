"""JAX: memory taken at the start (preallocate), or as it is needed (on-demand)."""

import ctypes
import importlib
import json
import os
import sys
from typing import Any


def memory() -> tuple[int, int]:
    """Free and total bytes before JAX takes any; asked of the driver, because JAX does not tell."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
    return free.value, total.value


def main(way: str, piece_mib: int, most: int) -> None:
    """Take pieces and print what came of it."""
    os.environ["JAX_PLATFORMS"] = "cuda"
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true" if way == "preallocate" else "false"
    free, total = memory()
    jax: Any = importlib.import_module("jax")
    numpy: Any = importlib.import_module("numpy")
    held: list[object] = []
    error = None
    piece = numpy.zeros(piece_mib << 20, numpy.uint8)
    try:
        while len(held) < most:
            held.append(jax.device_put(piece).block_until_ready())
    except Exception as refusal:  # whatever the framework makes of it is what is to be reported
        out_of_memory = "RESOURCE_EXHAUSTED" in str(refusal)
        error = "RESOURCE_EXHAUSTED" if out_of_memory else type(refusal).__name__
    seen = {"free_mib": free / (1 << 20), "total_mib": total / (1 << 20)}
    print(json.dumps({**seen, "got_mib": len(held) * piece_mib, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
