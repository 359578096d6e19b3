"""A release made twice, in ways that must not matter: other folders, umask, zone, language, caches.

The second one shares nothing with the first but the compiled programs (helm): base images, images
and the release's environment are made anew.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster.cache import programs_folder
from cluster.mounts import mounts_below
from cluster.progress import say
from release import checksums, source
from release.errors import ReleaseError


def twice(repository: Path, target: Path) -> list[str]:
    """Make a release at `target` and another one elsewhere.

    Returns:
        Names of the files that differ; none when the two are equal.

    Raises:
        ReleaseError: the tree has changes, or one could not be made; what it said was shown.
    """
    if source.changed(repository):
        raise ReleaseError("the working tree has changes: commit them, and both are made of that")
    folder = Path(tempfile.mkdtemp(prefix="gpu-scheduler-second-release-"))
    cache = folder / "another" / "cache"
    cache.mkdir(parents=True)
    (cache / "bin").symlink_to(programs_folder())
    first = {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
    second = {
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C",
        "TMPDIR": str(folder / "another"),
        "GPU_SCHEDULER_CACHE": str(cache),
    }
    try:
        # Of clones, so that the tree may change meanwhile.
        one, other = _clone(repository, folder / "one"), _clone(repository, cache.parent / "other")
        _make(one, target, 0o022, first)
        _make(other, folder / "dist", 0o077, second)
        sums = [(each / checksums.NAME).read_text() for each in (target, folder / "dist")]
        differing = checksums.differing(*sums)
        for name in differing:
            kept = target.parent / "dist-second" / name
            kept.parent.mkdir(exist_ok=True)
            if (folder / "dist" / name).exists():
                shutil.copy(folder / "dist" / name, kept)
        return differing
    finally:
        for point in reversed(mounts_below(folder)):  # buildah leaves its storage mounted on itself
            subprocess.run(["umount", str(point)], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _clone(repository: Path, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(repository), str(folder)], check=True)
    return folder


def _make(repository: Path, target: Path, umask: int, variables: dict[str, str]) -> None:
    say(f"a release with {variables}, umask {umask:03o}")
    command = [sys.executable, "-m", "release", "build", f"--target={target.absolute()}"]
    done = subprocess.run(
        command,
        cwd=repository,
        umask=umask,
        env={**os.environ, **variables, "PYTHONPATH": str(repository / "hack")},
    )
    if done.returncode:
        raise ReleaseError("a release could not be made; see above")
