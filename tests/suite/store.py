"""Where runs of the tests leave what the next ones read: below the cache of the local cluster."""

import os
import tempfile
from pathlib import Path

from cache_folder import cache_folder


def folder() -> Path:
    """The folder, made if it is not there."""
    found = cache_folder() / "tests"
    found.mkdir(parents=True, exist_ok=True)
    return found


def replace(path: Path, text: str) -> None:
    """Write a file whole: who reads meanwhile finds the one before or this one."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)
