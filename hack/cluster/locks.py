"""Exclusive locks between processes, held by an open file.

The kernel drops a lock when its holder dies, however it dies, so a crashed run never
blocks the next one. A holder deletes its lock file; who waited for that file sees that it
is gone and takes the lock of the one that is there now.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def exclusive(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds the lock `path`; calls `on_wait` once if somebody else holds it now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _open(path)
    try:
        while not _take(descriptor, path):
            if on_wait is not None:
                on_wait()
                on_wait = None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.close(descriptor)
            descriptor = _open(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _take(descriptor: int, path: Path) -> bool:
    """Whether the lock was free and the locked file is still the one at `path`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
