"""The virtual environment that a release is made with: requirements/release.txt, checked by hashes.

Not the one of development: what it holds ends up in the stand-alone programs.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from release.contents import Component, python_component
from release.errors import ReleaseError

REQUIREMENTS = Path("requirements/release.txt")


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with a virtual environment in it."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def prepare(self, root: Path) -> None:
        """Make it, unless it has just what `root` pins.

        Raises:
            ReleaseError: with what pip said.
        """
        pinned = (root / REQUIREMENTS).read_bytes()
        stamp = self.folder / ".requirements"
        wanted = hashlib.sha256(pinned + sys.version.encode()).hexdigest()
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        _run([sys.executable, "-m", "venv", "--clear", str(self.folder)], root, {})
        install = ("--disable-pip-version-check", "install", "--quiet", "--require-hashes")
        self.run(["-m", "pip", *install, "--only-binary=:all:", "-r", str(root / REQUIREMENTS)])
        stamp.write_text(wanted)

    def distributions(self) -> list[Component]:
        """The packages in it, in order."""
        found = self.folder.glob("lib/python*/site-packages/*.dist-info/METADATA")
        return sorted(python_component(path.read_text(encoding="utf-8")) for path in found)

    def run(
        self,
        arguments: Sequence[str],
        *,
        folder: Path | None = None,
        given: str = "",
        **variables: str,
    ) -> str:
        """Run Python in it, with `given` to read; what it printed.

        Raises:
            ReleaseError: it failed; the message ends with what it said.
        """
        return _run([str(self.python), *arguments], folder or self.folder, variables, given)


def _run(command: Sequence[str], folder: Path, variables: dict[str, str], given: str = "") -> str:
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment = {**kept, "PYTHONHASHSEED": "0", **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise ReleaseError(f"{' '.join(command[:4])} failed:\n{said}")
    return done.stdout
