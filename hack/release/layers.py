"""The layers of an image as bytes that depend on their contents alone.

What a build leaves of itself goes: its times, names of owners, access times, the order of files,
and files that tell of the machine that built it. A file of the base keeps its time, which is never
later than the base's suite; what the build wrote gets the commit's, whenever it was built.
"""

import posixpath
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cluster.images_operator import BASE_EPOCH

# The container's runtime mounts its own over the first two; the others tell from where packages
# came, or when.
DROPPED = {
    "etc/hostname",
    "etc/resolv.conf",
    "etc/apt/sources.list",
    "etc/machine-id",
    "var/cache/ldconfig/aux-cache",
    "var/lib/dbus/machine-id",
}
DROPPED_BELOW = ("var/cache/apt/", "var/lib/apt/lists/", "var/log/", "run/", "tmp/")


def dropped(name: str) -> bool:
    """Does this path of a layer stay out of a release?"""
    return name in DROPPED or name.startswith(DROPPED_BELOW)


def settled(
    source: Path, target: Path, epoch: int, seen: Callable[[str, IO[bytes]], None] | None = None
) -> None:
    """Write a layer anew.

    Args:
        source: a tar.
        target: where the other one goes.
        epoch: the time of what is later than the base, in seconds since 1970.
        seen: called with each file's name and contents.
    """
    with (
        tarfile.open(source) as before,
        tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as after,
    ):
        for entry in sorted(before.getmembers(), key=_order):
            entry.name = _clean(entry.name)
            if not entry.name or dropped(entry.name):
                continue
            kept = _settled(entry, epoch)
            data = before.extractfile(entry) if entry.isreg() else None
            after.addfile(kept, data)
            if data is not None and seen is not None:
                data.seek(0)
                seen(kept.name, data)


def _order(entry: tarfile.TarInfo) -> tuple[bool, str]:
    """By name, and hard links behind all that they may be links to."""
    return entry.islnk(), _clean(entry.name)


def _clean(name: str) -> str:
    return posixpath.normpath("/" + name).lstrip("/")


def _settled(entry: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    kept = tarfile.TarInfo(entry.name)
    kept.type, kept.size, kept.mode = entry.type, entry.size, entry.mode
    kept.uid, kept.gid = entry.uid, entry.gid
    kept.linkname = _clean(entry.linkname) if entry.islnk() else entry.linkname
    kept.devmajor, kept.devminor = entry.devmajor, entry.devminor
    kept.mtime = int(entry.mtime) if entry.mtime <= BASE_EPOCH else epoch
    # Capabilities of files, as of ping; no access times.
    kept.pax_headers = {k: v for k, v in entry.pax_headers.items() if k.startswith("SCHILY.xattr.")}
    return kept
