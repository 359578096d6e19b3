"""The sentences of a page: of paragraphs, items of lists, and a row of a table as one."""

import re

from tests.unit.docs.pages import prose

_MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_LABEL = re.compile(r"\*\*([^*]+)\.\*\* ")
_END = re.compile(r"(?<=[.!?]) (?=[A-Z`\d])")
_RULE = re.compile(r"\|[|\s:-]*")


def sentences(text: str) -> list[str]:
    """In their order, without marks of Markdown, headings and heads of tables."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", prose(text)):
        for part in _parts(block):
            words = _plain(part)
            found += [words] if part.startswith("|") else [w for w in _END.split(words) if w]
    return [words.replace("`", "") for words in found]


def _parts(block: str) -> list[str]:
    """Items and rows of a block apart from each other."""
    parts: list[str] = []
    for line in block.splitlines():
        if line.startswith("#"):
            continue
        if _RULE.fullmatch(line):
            parts = parts[:-1]  # what stands above is the head
        elif line.startswith(("|", "- ")) or not parts or parts[-1].startswith("|"):
            parts.append(line)
        else:
            parts[-1] += f" {line}"
    return parts


def _plain(text: str) -> str:
    """``**Label.** Words`` becomes ``Label: Words``, of which a sentence is made as of others."""
    text = _LABEL.sub(r"\1: ", _MARKS.sub(r"\1", text.removeprefix("- ").strip("| ")))
    return re.sub(r"\s+", " ", text.replace("**", "")).strip()
