"""The pages of the documentation as text: blocks of code, headings, and what a heading is called.

A page is read in two places, a code host's viewer and the site, which make anchors of headings by
rules of their own. Used by the tests beside it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)


def pages() -> list[Path]:
    """Every page that is written by hand, or generated, for people."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Language and text of each block of code, without the indent of a list."""
    for indent, language, body in _FENCE.findall(text):
        yield language, re.sub(rf"^{indent}", "", body, flags=re.M)


def prose(text: str) -> str:
    """The page without its blocks of code."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Targets of the links on a page; what stands in code is none."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))


def headings(text: str) -> list[tuple[int, str]]:
    """Level and words of each heading."""
    found = re.findall(r"^(#{1,6}) +(.+?) *$", prose(text), re.M)
    return [(len(marks), words) for marks, words in found]


def host_anchor(words: str) -> str:
    """What a code host calls a heading."""
    return re.sub(r"[^\w\- ]", "", _plain(words).lower()).replace(" ", "-")


def site_anchor(words: str) -> str:
    """What the site calls it: as Python-Markdown does, which joins several hyphens to one."""
    kept = re.sub(r"[^\w\s-]", "", _plain(words)).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)


def _plain(words: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("`", "").replace("*", "")
