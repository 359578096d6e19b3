"""Runs Zensical, and says what it complains of in a line each: file, line, what, and the link."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from docs_site.errors import SiteError

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"Warning: (.+)\n\s*╭─\[ (\S+):(\d+):(\d+) \]")


def run(python: Path, root: Path, pages: Path) -> None:
    """Build the site that ``root/mkdocs.yml`` describes.

    Args:
        python: an interpreter that has Zensical.
        root: of the repository.
        pages: the folder of Markdown.

    Raises:
        SiteError: it warned of something, or failed.
    """
    command = [str(python), "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said = _COLOUR.sub("", done.stdout + done.stderr)
    if complaints := list(_complaints(said, pages)):
        raise SiteError("\n".join(complaints))
    if done.returncode:
        raise SiteError(said.strip())


def _complaints(said: str, pages: Path) -> Iterator[str]:
    for what, name, line, column in _WARNING.findall(said):
        text = (pages / name).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        link = text[int(column) - 1 :].partition(")")[0]
        yield f"docs/{name}:{line}: {what}: {link}"
