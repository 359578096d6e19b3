"""The Debian packages that the real node and its images need, installed when they are missing.

What counts is the program, not the package: a machine that has containerd from elsewhere keeps
it. Needs root and apt-get to install; says what to do where these are missing.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.progress import say


class PackagesMissing(ClusterError):
    """Programs are missing and could not be installed; the message names the way out."""


@dataclass(frozen=True, slots=True)
class Package:
    """A Debian package and the files that show, any one of them, that its program is there."""

    name: str
    shown_by: tuple[str, ...]

    def found(self) -> Path | None:
        """The first of the files that exists; bare names are looked up in the usual folders."""
        for file in self.shown_by:
            hit = file if Path(file).is_file() else shutil.which(file, path=PATH)
            if hit is not None:
                return Path(hit)
        return None


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CONTAINERD = Package("containerd", ("containerd",))
RUNC = Package("runc", ("runc",))
CNI = Package("containernetworking-plugins", ("/usr/lib/cni/bridge", "/opt/cni/bin/bridge"))
IP = Package("iproute2", ("ip",))
UTIL_LINUX = Package("util-linux", ("setsid",))
BUILDAH = Package("buildah", ("buildah",))
MMDEBSTRAP = Package("mmdebstrap", ("mmdebstrap",))
KEYRING = Package("debian-archive-keyring", ("/usr/share/keyrings/debian-archive-keyring.gpg",))

NODE = (CONTAINERD, RUNC, CNI, IP, UTIL_LINUX)
IMAGE_BUILD = (BUILDAH, MMDEBSTRAP, KEYRING)


def ensure_packages(packages: Sequence[Package] = NODE) -> None:
    """Install what is missing, with one visible line.

    Raises:
        PackagesMissing: without root or apt-get, or when apt-get fails.
    """
    missing = [package.name for package in packages if package.found() is None]
    if not missing:
        return
    names = " ".join(missing)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise PackagesMissing(
            f"missing: {names}. Install these Debian packages (or what your distribution calls "
            "them) as root, then try again."
        )
    say(f"installing {names} (apt-get, once per machine)")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
    ):
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        # A failed update (one dead mirror among many) matters only if the install then fails.
        if done.returncode and command[1] == "install":
            raise PackagesMissing(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
    still = [package.name for package in packages if package.found() is None]
    if still:
        raise PackagesMissing(f"installed, but their programs are not there: {' '.join(still)}")


def program(package: Package) -> Path:
    """The program (or first file) of a package that is there.

    Raises:
        PackagesMissing: when it is not.
    """
    path = package.found()
    if path is None:
        raise PackagesMissing(f"missing: {package.name}")
    return path
