"""Opens the driver in an unusual way and takes pieces of memory: ``opening.py WAY FINDS MIB``.

FINDS is a library that opens the driver that FINDS_DRIVER names and looks its functions up by
itself, as NVIDIA's runtime does. Prints how many pieces were got; of ``reopened`` (the driver is
closed, and opened again elsewhere) before and after, or ``stays`` where it cannot be closed.
Imports nothing of this package.
"""

import _ctypes
import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DRIVER = "libcuda.so.1"
NEW_NAMESPACE = -1  # LM_ID_NEWLM
MOST = 64


def main(way: str, finds: str, mib: int) -> None:
    """Print one line."""
    if way == "reopened":
        print(*_reopened(mib))
        return
    with tempfile.TemporaryDirectory() as folder:
        if way in ("link", "copy", "descriptor"):
            os.environ["FINDS_DRIVER"] = _other_name(way, Path(folder))
        take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(_symbol(_open(way, finds)))
        print(take(mib))


def _other_name(way: str, folder: Path) -> str:
    driver = ctypes.CDLL(DRIVER) if way == "descriptor" else None
    path = _path_of_driver()
    other = folder / "libother.so"
    if way == "link":
        other.symlink_to(path)
    elif way == "copy":
        shutil.copy(path, other)
    else:
        assert driver
        return f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"
    return str(other)


def _path_of_driver() -> str:
    """Of the file; another process looks, so that this one has not opened it."""
    words = (
        "import ctypes; ctypes.CDLL('libcuda.so.1'); print(next(l.split()[-1] for l in "
        "open('/proc/self/maps') if '/libcuda.so' in l))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _open(way: str, file: str) -> int:
    libc: Any = ctypes.CDLL(None)  # not libc's own: what any caller finds
    libc.dlopen.restype = libc.dlmopen.restype = ctypes.c_void_p
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if way == "deepbind" else 0)
    if way == "dlmopen":
        handle = libc.dlmopen(ctypes.c_long(NEW_NAMESPACE), file.encode(), mode)
    else:
        handle = libc.dlopen(file.encode(), mode)
    if not handle:
        libc.dlerror.restype = ctypes.c_char_p
        sys.exit(f"{file}: {libc.dlerror().decode()}")
    return int(handle)


def _symbol(handle: int) -> int:
    libc: Any = ctypes.CDLL(None)
    libc.dlsym.restype = ctypes.c_void_p
    return int(libc.dlsym(ctypes.c_void_p(handle), b"take_pieces"))


def _reopened(mib: int) -> tuple[int, int | str]:
    driver: Any = ctypes.CDLL(DRIVER, mode=os.RTLD_NOW)
    first = _take(driver, mib)
    _ctypes.dlclose(driver._handle)
    if DRIVER.removesuffix(".1") in Path("/proc/self/maps").read_text():
        return first, "stays"
    with mmap.mmap(-1, 64 << 20):  # where it was, most likely
        return first, _take(ctypes.CDLL(DRIVER, mode=os.RTLD_NOW), mib)


def _take(driver: Any, mib: int) -> int:
    context, pointer, count = ctypes.c_void_p(), ctypes.c_uint64(), 0
    if (
        driver.cuInit(0)
        or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        or driver.cuCtxSetCurrent(context)
    ):
        return -1
    while count < MOST and not driver.cuMemAlloc_v2(
        ctypes.byref(pointer), ctypes.c_size_t(mib << 20)
    ):
        count += 1
    return count


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
