"""Finds the leaf cgroup of a container on the node, by its id or by a process in it.

Only cgroup version 2, where there is one tree; the kubelet's part of it begins with a folder named
kubepods, wherever that hangs.
"""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_DEPTH = 8  # nested nodes (kind) put a few levels above kubepods


def is_v2(root: Path = ROOT) -> bool:
    """Whether the tree is of version 2."""
    return (root / "cgroup.controllers").is_file()


def leaf_of_container(container_id: str, root: Path = ROOT) -> Path | None:
    """The folder of a container; None before it was created or after it ended."""
    if not container_id:
        return None
    for folder in _pod_folders(root):
        if container_id in folder.name and "conmon" not in folder.name:
            return folder
    return None


def leaf_of_process(pid: int, root: Path = ROOT) -> Path | None:
    """The folder of the container that a process is in."""
    wanted = str(pid)
    for folder in _pod_folders(root):
        try:
            inside = (folder / "cgroup.procs").read_text().split()
        except OSError:
            continue
        if wanted in inside:
            return folder
    return None


def _pod_folders(root: Path) -> Iterator[Path]:
    """Every folder below a folder named kubepods."""
    base = str(root)
    for path, folders, _ in os.walk(base):
        below = path[len(base) :]
        depth = below.count("/")
        if depth >= _DEPTH:
            folders.clear()
        if "kubepods" in below:
            yield Path(path)
        elif depth >= 4:
            # Outside of kubepods nothing is of interest, however deep it goes.
            folders[:] = [name for name in folders if "kubepods" in name]
