"""Builds the docs site into build/site, or says what is wrong with it: ``make docs``.

A warning of Zensical is an error, and so is everything that ``checks`` finds.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import python_environment
from cluster.errors import ClusterError
from docs_site import checks, staging
from docs_site.errors import SiteError

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PAGES = ROOT / "build" / "pages"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r"Warning: (.+)\n\s*╭─\[ (\S+):(\d+):(\d+) \]")


def build() -> Path:
    """Build the site, and return its folder.

    Raises:
        SiteError: what is wrong, a line each.
    """
    try:
        python = python_environment.ensure("docs", "Zensical, which makes the docs site")
    except ClusterError as error:
        raise SiteError(str(error)) from error
    staging.stage(ROOT, PAGES)
    shutil.rmtree(SITE, ignore_errors=True)
    _run(python, ROOT, PAGES)
    if found := checks.defects(SITE, ROOT / "docs", ROOT / "mkdocs.yml"):
        raise SiteError("\n".join(found))
    return SITE


def _run(python: Path, root: Path, pages: Path) -> None:
    """Run Zensical on ``root/mkdocs.yml``; what it complains of is told in a line each.

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


def main() -> int:
    """Build; 1 when there is a defect."""
    try:
        site = build()
    except SiteError as error:
        print(f"docs: the site was not built:\n{error}", file=sys.stderr)
        return 1
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site.relative_to(ROOT)}/index.html and {pages - 1} pages more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
