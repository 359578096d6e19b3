"""Where the local cluster keeps what outlives a checkout: programs and run folders.

`GPU_SCHEDULER_CACHE` moves everything, so that tests and several users of one
machine can be kept apart. Nothing is written outside this folder.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The root of everything that the local cluster writes."""
    own = os.environ.get("GPU_SCHEDULER_CACHE")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gpu-scheduler"


def programs_folder() -> Path:
    """Programs, fetched or built, one folder per module and key."""
    return cache_folder() / "bin"


def clusters_folder() -> Path:
    """Run folders of clusters, one per name."""
    return cache_folder() / "clusters"


def cluster_folder(name: str) -> Path:
    """The run folder of the cluster `name`; it exists only while the cluster does."""
    return clusters_folder() / name


def lock_file(name: str) -> Path:
    """The file that the lock called `name` is held by; it is outside run folders."""
    return clusters_folder() / ".locks" / name
