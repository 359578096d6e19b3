"""Programs out of Debian's packages, unpacked into the cache and never installed on the machine.

So nobody has to be root, and no package starts a daemon of its own.
"""

import os
import shutil
from pathlib import Path

from cache_folder import cache_folder
from cluster.commands import run
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.progress import say


def unpacked(package: str, file: str) -> Path:
    """A file of a package, which is fetched the first time.

    Args:
        package: its name.
        file: relative to the root of the machine.

    Raises:
        ClusterError: apt-get cannot fetch it, or it has no such file.
    """
    folder = cache_folder() / package
    found = folder / file
    with exclusive(cache_folder() / f"{package}.lock"):
        if not found.exists():
            say(f"fetching {package} (once)")
            _fetch(package, folder)
    if not found.exists():
        raise ClusterError(f"Debian's package {package} has no {file}")
    return found


def program(name: str, package: str) -> Path:
    """A program of the machine, else of a package.

    Raises:
        ClusterError: there is none; with the way out.
    """
    if there := shutil.which(name):
        return Path(there)
    try:
        return unpacked(package, f"usr/bin/{name}")
    except ClusterError as error:
        raise ClusterError(
            f"{error}\n{name} is needed: install {package} (as Debian calls it), or put the "
            "program on the PATH"
        ) from error


def _fetch(package: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("apt-get") is None:
        raise ClusterError(f"{package} cannot be fetched: there is no apt-get here")
    download = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package]
    done = run(download, check=False, cwd=folder)
    if done.returncode and os.geteuid() == 0:  # a fresh machine has no package lists yet
        run(["apt-get", "update", "-qq"], check=False, cwd=folder)
        done = run(download, check=False, cwd=folder)
    packages = sorted(folder.glob("*.deb"))
    if done.returncode or not packages:
        raise ClusterError(f"apt-get could not fetch {package}: {done.stderr.strip()}")
    last = packages[-1]
    run(["dpkg-deb", "--extract", last.name, "."], last.name, cwd=folder)
    last.unlink()
