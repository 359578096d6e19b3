"""The virtual environment that a release is made with: requirements/release.txt, checked by hashes.

Not the one of development: what it holds ends up in the stand-alone programs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import python_environment
from cluster.commands import run
from release.contents import Component, python_component
from release.errors import ReleaseError


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder with a virtual environment in it."""

    folder: Path

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
        kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
        environment = {**kept, "PYTHONHASHSEED": "0", **variables}
        command, where = [str(self.folder / "bin" / "python"), *arguments], folder or self.folder
        done = run(command, check=False, cwd=where, env=environment, input=given)
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-3000:]
            raise ReleaseError(f"{' '.join(command[:4])} failed:\n{said}")
        return done.stdout


def prepared() -> Environment:
    """That with just what is pinned.

    Raises:
        ClusterError: with what pip said.
    """
    made = python_environment.ensure("release", "what makes a release", "--only-binary=:all:")
    return Environment(made.parents[1])
