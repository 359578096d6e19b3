"""Python environments of their own in the cache, for programs that are no part of development's.

Made once per user, Python and set of pins; hashes are checked.
"""

import hashlib
import shutil
import sys
from pathlib import Path

from cache_folder import cache_folder
from cluster.commands import run
from cluster.locks import exclusive

REQUIREMENTS = Path(__file__).parents[1] / "requirements"


def ensure(name: str, purpose: str, *options: str) -> Path:
    """The interpreter that has the packages of ``requirements/NAME.txt``.

    Args:
        name: of the requirements, and of the folder in the cache.
        purpose: what is said while they are installed.
        *options: further ones of pip.

    Raises:
        ClusterError: they cannot be had; with what pip said.
    """
    requirements = REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / name / f"{version}-{digest}"
    with exclusive(folder.parent / ".lock"):
        if not folder.is_dir():
            print(f"installing {purpose}, once", file=sys.stderr, flush=True)
            making = folder.with_name(f"{folder.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            what = f"{purpose} cannot be installed"
            run([sys.executable, "-m", "venv", making], what)
            pip = (making / "bin/python", "-m", "pip", "--disable-pip-version-check", "install")
            wanted = ("--quiet", "--require-hashes", *options, "--requirement", requirements)
            run([*pip, *wanted], what)
            making.rename(folder)  # its interpreter is a link, and found where it is now
    return folder / "bin/python"
