"""The Markdown that the generated pages have in common.

An entry is a heading of its own, so it has an anchor and the site's search leads to it. Names have
only letters, digits, dots and underscores: their anchors are the same on the site and elsewhere.
"""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")
_PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")


class Undescribed(Exception):
    """Something has no description; the message says what, and where it is to be written."""


def prose(text: str) -> str:
    """A description as Markdown that reads the same.

    What stands in backticks stays code; names of pages become links.
    """
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    escaped = re.sub(r"([*\\])", r"\\\1", text).replace("<", "&lt;")
    return _PAGE.sub(r"[\1](../\1.md)", escaped)


def sentence(text: str) -> str:
    """With a full stop."""
    text = text.strip()
    return text if text.endswith((".", "…")) else f"{text}."


def code(value: object) -> str:
    """As code, in a line."""
    text = " ".join(str(value).split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cell(text: str) -> str:
    """In a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, without the line break at its end."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def entry(level: int, name: str, facts: Iterable[str], text: str, notes: Iterable[str] = ()) -> str:
    """A heading, one line of facts, what it is, and paragraphs of what else is to be known."""
    parts = [f"{'#' * level} {name}", " · ".join(filter(None, facts)), prose(sentence(text))]
    parts += notes
    return "\n\n".join(filter(None, parts)) + "\n"
