"""Where a cluster's etcd keeps its data: in memory where the machine has /dev/shm.

A write to disk waits for whatever else is written there; while images are built and imported that
was ten seconds and more, in which every write to the API server hung. A cluster that dies is made
anew, so nothing is lost. The cluster's folder has a link to it.
"""

import hashlib
import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
NAME = "etcd"  # in the cluster's folder


def create(folder: Path, *, memory: Path = MEMORY) -> None:
    """Make an empty place for the data of the cluster in ``folder``."""
    target = _target(folder, memory)
    shutil.rmtree(target, ignore_errors=True)
    if memory.is_dir() and os.access(memory, os.W_OK):
        target.mkdir(mode=0o700)
        (folder / NAME).symlink_to(target)


def remove(folder: Path, *, memory: Path = MEMORY) -> None:
    """Forget the data of the cluster in ``folder``, which may be gone already."""
    shutil.rmtree(_target(folder, memory), ignore_errors=True)


def _target(folder: Path, memory: Path) -> Path:
    return memory / f"gpu-scheduler-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
