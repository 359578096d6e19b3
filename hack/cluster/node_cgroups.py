"""The real node's cgroup in every hierarchy of the machine (v1, v2 or both).

All containers of the node live below it, so it also answers which processes are theirs.
"""

import os
from pathlib import Path

from cluster.mounts import mounted
from cluster.node_layout import CGROUP

# Of CPU time, by the file that says so in v1 and in v2. All pods together would otherwise get as
# much of a busy machine as one process of a developer's, and their probes and leases time out.
_CPU = {"cpu.shares": "8192", "cpu.weight": "800"}


def create() -> None:
    """Create the node's cgroup; the kubelet insists that its root exists."""
    for root in _roots():
        root.mkdir(exist_ok=True)
        _delegate(root.parent)
        for name, value in _CPU.items():
            if (root / name).exists():
                (root / name).write_text(value)


def processes() -> list[int]:
    """Pids of the node's container processes."""
    pids: set[int] = set()
    for root in _roots():
        for folder in _folders(root):
            try:
                pids.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
            except OSError:
                continue  # removed meanwhile
    pids.discard(0)  # how processes of another pid namespace read
    return sorted(pids)


def remove() -> list[Path]:
    """Remove the empty cgroups, leaves first; returns the roots that would not go."""
    for root in _roots():
        for folder in sorted(_folders(root), key=lambda path: -len(path.parts)):
            try:
                folder.rmdir()
            except OSError:
                continue
    return [root for root in _roots() if root.exists()]


def _folders(root: Path) -> list[Path]:
    """``root`` and all below; those that go away meanwhile are left out (rglob would raise)."""
    return [Path(folder) for folder, _, _ in os.walk(root)]


def _roots() -> list[Path]:
    points = [point for point, kind in mounted() if kind in ("cgroup", "cgroup2")]
    return [point / CGROUP for point in dict.fromkeys(points)]


def _delegate(parent: Path) -> None:
    """In v2, hand the controllers that the parent has to its children."""
    control = parent / "cgroup.subtree_control"
    if not control.exists():
        return
    for controller in (parent / "cgroup.controllers").read_text().split():
        try:
            control.write_text(f"+{controller}")
        except OSError:
            continue  # threaded or in use by v1: the kubelet says so if it needs this one
