"""NVIDIA's runtime library as programs open it: ``python runtime_cases.py HOW`` says its answer.

``link``: as a library that needs it does; ``deepbind``: as Julia does; ``dlmopen``: in a namespace
of its own. Run with an interpreter that has the packages of requirements/clients.txt.
"""

import ctypes
import os
import site
import sys
from collections.abc import Callable
from pathlib import Path

RTLD_NOW, NEW_NAMESPACE = 2, -1


def path() -> str:
    """The library that PyTorch and CuPy come with."""
    for folder in site.getsitepackages():
        if found := sorted(Path(folder).glob("nvidia/cuda_runtime/lib/libcudart.so.*")):
            return str(found[0])
    raise FileNotFoundError("libcudart is in none of the environment's packages")


def _linked(name: str) -> int | None:
    return ctypes.CDLL(name)._handle


def _deepbind(name: str) -> int | None:
    return ctypes.CDLL(name, mode=os.RTLD_DEEPBIND | os.RTLD_NOW)._handle


def _namespace(name: str) -> int | None:
    libc = ctypes.CDLL(None)
    libc.dlmopen.restype = ctypes.c_void_p
    libc.dlmopen.argtypes = [ctypes.c_long, ctypes.c_char_p, ctypes.c_int]
    handle: int | None = libc.dlmopen(NEW_NAMESPACE, name.encode(), RTLD_NOW)
    return handle


OPENED: dict[str, Callable[[str], int | None]] = {
    "link": _linked,
    "deepbind": _deepbind,
    "dlmopen": _namespace,
}


def count_devices(how: str) -> int:
    """The cudaError of cudaGetDeviceCount."""
    handle = OPENED[how](path())
    assert handle, "it cannot be opened"
    libc = ctypes.CDLL(None)
    libc.dlsym.restype = ctypes.c_void_p
    libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    count = ctypes.c_int()
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    answer = function(libc.dlsym(handle, b"cudaGetDeviceCount"))(ctypes.addressof(count))
    return int(answer)


if __name__ == "__main__":
    sys.stdout.write(f"{count_devices(sys.argv[1])}\n")
