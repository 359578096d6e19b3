"""What a release is made from: a commit's files, with the same modes and times everywhere.

A tree with changes is refused, unless the maker says otherwise; then its files are taken as they
are, and the version says `+dirty`.
"""

import io
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from cluster.commands import run
from release import version
from release.errors import ReleaseError


@dataclass(frozen=True, slots=True)
class Source:
    """An export.

    Attributes:
        root: its folder.
        version: as stated in it.
        epoch: the commit's time, in seconds since 1970.
        commit: its full name.
    """

    root: Path
    version: str
    epoch: int
    commit: str


def changed(repository: Path) -> list[str]:
    """Files of the working tree that are not as committed."""
    return _git(repository, "status", "--porcelain", "--untracked-files=normal").splitlines()


def export(repository: Path, folder: Path, *, allow_dirty: bool = False) -> Source:
    """Write the files of a release below `folder`, which must not exist.

    Raises:
        ReleaseError: the tree has changes, and `allow_dirty` is false.
    """
    changes = changed(repository)
    if changes and not allow_dirty:
        listed = "\n".join(changes[:10])
        raise ReleaseError(
            "the working tree has changes, so nobody could make this release again. Commit "
            f"them, or say ALLOW_DIRTY=1 for one that is marked +dirty:\n{listed}"
        )
    folder.mkdir(parents=True, mode=0o755)
    if changes:
        _copy(repository, folder)
        version.set_version(folder, version.stated(folder) + "+dirty")
    else:
        _unpack(repository, folder)
    epoch = int(_git(repository, "log", "-1", "--format=%ct"))
    _settle(folder, epoch)
    commit = _git(repository, "rev-parse", "HEAD").strip()
    return Source(folder, version.stated(folder), epoch, commit)


def _unpack(repository: Path, folder: Path) -> None:
    done = subprocess.run(["git", "archive", "HEAD"], cwd=repository, capture_output=True)
    if done.returncode:
        raise ReleaseError(f"git archive: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(folder, filter="data")


def _copy(repository: Path, folder: Path) -> None:
    listed = _git(repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (repository / name).is_file():  # not one that was deleted
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, folder / name)


def _settle(folder: Path, epoch: int) -> None:
    """Modes and times that depend on neither umask nor clock."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            continue
        runs = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if runs else 0o644)
        os.utime(path, (epoch, epoch))


def _git(repository: Path, *arguments: str) -> str:
    return run(["git", *arguments], f"git {arguments[0]}", cwd=repository).stdout
