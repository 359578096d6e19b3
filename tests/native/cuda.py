"""The CUDA driver by ctypes, as far as tests need it: `Cuda().cuMemAlloc_v2(pointer, 1 << 20)`.

Every function returns its CUresult as a number; `ok` insists on 0. Plain integers are passed as 64
bits, which is right for every integer argument on x86-64 and aarch64.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED = 0, 1, 2, 3
NO_DEVICE, INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = 100, 101, 201, 400, 500
CONTEXT_IS_DESTROYED, UNKNOWN = 709, 999
MIB = 1 << 20
_SLEEP_CALLS = {"35", "230", "101", "115"}  # nanosleep, clock_nanosleep of x86-64, of aarch64


class Number(ctypes.c_uint64):
    """A place for a result: a pointer, a handle, a size."""

    def __int__(self) -> int:
        return int(self.value)


def wide(argument: Any) -> Any:
    """An argument as ctypes passes it."""
    if isinstance(argument, int):
        return ctypes.c_uint64(argument & (1 << 64) - 1)
    if isinstance(argument, Number):
        return ctypes.byref(argument)
    return argument


class Cuda:
    """The driver that this process finds as libcuda.so.1; a Number is passed by its address."""

    def __init__(self, *, context: bool = True) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        if context:
            self.ok("cuInit", 0)
            self.ok("cuCtxCreate_v2", Number(), 0, 0)

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(self.library, name)
        return lambda *arguments: int(function(*map(wide, arguments)))

    def ok(self, name: str, *arguments: Any) -> None:
        """Call and insist on success."""
        result = getattr(self, name)(*arguments)
        assert result == SUCCESS, f"{name}: CUresult {result}"

    def allocate(self, mib: float) -> int:
        """Allocate with cuMemAlloc; the pointer."""
        pointer = Number()
        self.ok("cuMemAlloc_v2", pointer, int(mib * MIB))
        return int(pointer)

    def free_mib(self) -> float:
        """What cuMemGetInfo says is free."""
        free = Number()
        self.ok("cuMemGetInfo_v2", free, None)
        return int(free) / MIB

    def get(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument is the place of its result."""
        result = Number()
        self.ok(name, result, *arguments)
        return int(result)


def wait_until_delayed(thread: threading.Thread) -> None:
    """Until a thread is where the pretended driver takes its time, or has ended."""
    called = Path(f"/proc/self/task/{thread.native_id}/syscall")
    while thread.is_alive() and called.read_text().split()[0] not in _SLEEP_CALLS:
        time.sleep(0.001)
