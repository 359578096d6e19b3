"""Where the local cluster keeps what outlives a checkout: programs and run folders.

`GPU_SCHEDULER_CACHE` moves everything, so that tests and several users of one
machine can be kept apart. Nothing is written outside this folder.
"""

from pathlib import Path

from cache_folder import cache_folder


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
