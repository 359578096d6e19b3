"""What Zensical's strict mode lets through: looked for in the HTML that it wrote.

Links and anchors inside the site that lead nowhere, assets that are missing, pages of docs/ that
the navigation does not list, and everything that a browser would ask another origin for. Links
that a reader may follow out of the site are none of these.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from docs_site.html import Page, read

_CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_MERMAID = re.compile(r"\s*[`~]{3,}\s*mermaid\b")
_OWN_SCHEMES = ("", "data", "mailto")


def defects(site: Path, docs: Path, config: Path) -> list[str]:
    """One line each.

    Args:
        site: the folder of HTML.
        docs: the folder of Markdown that it was made of.
        config: mkdocs.yml.
    """
    pages = {
        path.relative_to(site).as_posix(): read(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    return [
        *_of_navigation(docs, yaml.safe_load(config.read_text(encoding="utf-8"))["nav"]),
        *_undrawn(docs),
        *_dead_links(site, pages),
        *_foreign(site, pages),
    ]


def _of_navigation(docs: Path, nav: list[Any]) -> Iterator[str]:
    listed = list(_listed(nav))
    there = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    for page in sorted(there - set(listed)):
        yield f"mkdocs.yml: nav does not list docs/{page}"
    for page in listed:
        if page not in there:
            yield f"mkdocs.yml: nav lists {page}, which is not in docs/"
    for page in sorted({page for page in listed if listed.count(page) > 1}):
        yield f"mkdocs.yml: nav lists {page} twice"


def _listed(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for each in nav:
            yield from _listed(each)
    elif isinstance(nav, dict):
        yield from _listed(list(nav.values()))


def _undrawn(docs: Path) -> Iterator[str]:
    """Pictures in mermaid: they stay text here, and what would draw them is of another origin."""
    for path in sorted(docs.rglob("*.md")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _MERMAID.match(line):
                yield f"docs/{path.relative_to(docs).as_posix()}:{number}: mermaid is not drawn"


def _dead_links(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    for name, page in pages.items():
        for target in sorted({*page.links, *page.loads}):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = _resolved(name, parts.path)
            if path not in files:
                path = posixpath.normpath(f"{path}/index.html")  # what a server gives of a folder
            if path not in files:
                yield f"{name}: {target} leads to nothing"
            elif parts.fragment and path in pages:
                if unquote(parts.fragment) not in pages[path].anchors:
                    yield f"{name}: {target}: {path} has no such anchor"


def _resolved(name: str, path: str) -> str:
    if not path:
        return name
    if path.startswith("/"):
        return path[1:] or "index.html"
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path)))


def _foreign(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    """What would be asked for elsewhere as soon as a page is opened."""
    for name, page in pages.items():
        yield from _elsewhere(name, page.loads)
        if page.drawn_by_script:
            yield f"{name}: a picture in mermaid is drawn by a script of another origin"
        if page.repository:
            yield f"{name}: repo_url makes the page ask the repository's host for its figures"
    for path in (*sorted(site.rglob("*.css")), *sorted(site.rglob("*.svg"))):
        found = _CSS_URL.findall(path.read_text(encoding="utf-8"))
        name = path.relative_to(site).as_posix()
        yield from _elsewhere(name, (one or other for one, other in found))


def _elsewhere(name: str, targets: Iterable[str]) -> Iterator[str]:
    for target in targets:
        parts = urlsplit(target)
        if parts.netloc or parts.scheme not in _OWN_SCHEMES:
            yield f"{name}: would load {target} from another origin"
