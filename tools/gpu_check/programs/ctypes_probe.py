"""The probe with functions that ctypes found: ``python ctypes_probe.py LIBRARY``.

As the C program does, but the driver is opened and its symbols are looked up by Python. Runs in a
process of its own, by path, so it imports nothing of this package.
"""

import ctypes
import sys
from typing import Any

RESOLVER = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64
)


def main(library: str) -> None:
    """Find the functions and obey until standard input ends."""
    driver = ctypes.CDLL("libcuda.so.1")
    probe: Any = ctypes.CDLL(library)

    def by_ctypes(symbol: bytes, _name: bytes, _version: int, _flags: int) -> int | None:
        function = getattr(driver, symbol.decode(), None)
        return ctypes.cast(function, ctypes.c_void_p).value if function else None

    resolver = RESOLVER(by_ctypes)
    probe.resolve_all(resolver)
    probe.serve()


if __name__ == "__main__":
    main(sys.argv[1])
