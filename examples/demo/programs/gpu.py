"""Works on a GPU as far as anybody can see: holds memory, and is as busy as FAKEGPU_BUSY says.

GIB: memory that it takes. LOADER: how much of its time its CPU is busy, from 0 to 1, as that of a
program is whose data come too slowly.
"""

import ctypes
import os
import time

STEP_SECONDS = 5.0
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """Call a function of the driver; any error ends the program."""
    code = getattr(cuda, name)(*arguments)
    if code:
        raise SystemExit(f"{name}: error {code}")


def start(gib):
    """Take a GPU, and memory on it."""
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(int(gib * 2**30)))


def load(share):
    """Keep the CPU busy for that much of a step, and sleep for the rest."""
    end = time.monotonic() + STEP_SECONDS
    while (left := end - time.monotonic()) > 0:
        if share:
            until = time.process_time() + 0.05 * share
            while time.process_time() < until:
                pass
        time.sleep(min(left, 0.05 * (1 - share) if share else left))


def main():
    """Work until somebody ends it."""
    start(float(os.environ.get("GIB", "1")))
    share, step = float(os.environ.get("LOADER", "0")), 0
    while True:
        step += 1
        print(f"step {step}, loss {1 / (1 + step / 40):.4f}", flush=True)
        load(share)


if __name__ == "__main__":
    main()
