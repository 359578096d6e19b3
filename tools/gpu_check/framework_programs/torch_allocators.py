"""PyTorch: its allocator (native), growing segments (expandable), the driver's pool (async).

The allocator is chosen by an environment variable that torch reads when it is imported.
"""

import importlib
import json
import os
import sys
from typing import Any

SETTINGS = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}


def main(way: str, piece_mib: int, most: int) -> None:
    """Take pieces and print what came of it."""
    if way in SETTINGS:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS[way]
    torch: Any = importlib.import_module("torch")

    free, total = torch.cuda.mem_get_info()
    held: list[object] = []
    error = None
    try:
        while len(held) < most:
            held.append(torch.empty(piece_mib << 20, dtype=torch.uint8, device="cuda"))
    except Exception as refusal:  # whatever the framework makes of it is what is to be reported
        error = type(refusal).__name__
    seen = {"free_mib": free / (1 << 20), "total_mib": total / (1 << 20)}
    print(json.dumps({**seen, "got_mib": len(held) * piece_mib, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
