"""Builds the docs site into build/site, or says what is wrong with it: ``make docs``.

A warning of Zensical is an error, and so is everything that ``checks`` finds.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import python_environment
from docs_site import checks, staging, zensical
from docs_site.errors import SiteError

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PAGES = ROOT / "build" / "pages"


def build() -> Path:
    """Build the site, and return its folder.

    Raises:
        SiteError: what is wrong, a line each.
    """
    try:
        python = python_environment.ensure("docs", "Zensical, which makes the docs site")
    except subprocess.CalledProcessError as error:
        raise SiteError(f"Zensical cannot be installed: {error}") from error
    staging.stage(ROOT, PAGES)
    shutil.rmtree(SITE, ignore_errors=True)
    zensical.run(python, ROOT, PAGES)
    if found := checks.defects(SITE, ROOT / "docs", ROOT / "mkdocs.yml"):
        raise SiteError("\n".join(found))
    return SITE


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
