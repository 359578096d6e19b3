"""Large frameworks on the pretended driver: ``python large_cases.py NAME PIECE_MIB`` prints JSON.

Each is loaded, after NVIDIA's runtime was opened as Julia opens libraries, and asked for devices;
then the driver is asked for memory in the same process, as by a framework that got further. Run by
``large_clients`` with an interpreter that has the packages of requirements/clients-large.txt.
"""

import ctypes
import importlib
import json
import sys
from collections.abc import Callable

MIB, MOST = 1 << 20, 99


def cupy() -> str:
    """Its module loads the runtime that it is linked with."""
    runtime = importlib.import_module("cupy").cuda.runtime
    try:
        return f"{runtime.getDeviceCount()} devices"
    except runtime.CUDARuntimeError as error:
        return str(error)


def torch() -> str:
    """Its first call that needs a device."""
    cuda = importlib.import_module("torch").cuda
    try:
        cuda.init()
    except (RuntimeError, AssertionError) as error:
        return str(error)
    return f"{cuda.device_count()} devices"


def tensorflow() -> str:
    """Its list of devices."""
    config = importlib.import_module("tensorflow").config
    return f"{len(config.list_physical_devices('GPU'))} devices"


FRAMEWORKS: dict[str, Callable[[], str]] = {
    "CuPy": cupy,
    "PyTorch": torch,
    "TensorFlow": tensorflow,
}


def pieces(size: int) -> int:
    """How many the driver gives until it refuses one."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer, count = ctypes.c_void_p(), ctypes.c_uint64(), 0
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    while count < MOST and not cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)):
        count += 1
    return count


def main(name: str, piece_mib: int) -> None:
    """What the runtime and the framework say, and what the driver gives afterwards."""
    runtime = importlib.import_module("runtime_cases").count_devices("deepbind")
    del sys.path[0]  # where modules of ours have names of theirs
    found = {"runtime": runtime, "said": FRAMEWORKS[name](), "pieces": pieces(piece_mib * MIB)}
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
