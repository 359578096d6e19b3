"""What was asked for beside the page: parts of the address and parameters, as text."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

RequestParameters = Mapping[str, str]
Row = TypeVar("Row")
MOST_ROWS = 200
_MOST_DIGITS = 7


class BadQuestionError(ValueError):
    """A parameter that cannot be understood; says which, and what it may be."""


def number(asked: RequestParameters, name: str, otherwise: int, most: int) -> int:
    """A whole number of 0 to ``most``.

    Raises:
        BadQuestionError: it is none.
    """
    text = asked.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS) or int(text) > most:
        raise BadQuestionError(f"{name}: {text[:40]!r} is no number of 0 to {most:,}")
    return int(text)


def one_of(asked: RequestParameters, name: str, words: Sequence[str]) -> str:
    """One of these words; the first where nothing was said.

    Raises:
        BadQuestionError: it is none of them.
    """
    text = asked.get(name, "") or words[0]
    if text not in words:
        raise BadQuestionError(f"{name}: {text[:40]!r} is none of {', '.join(words)}")
    return text


def page_of(rows: Sequence[Row], asked: RequestParameters) -> tuple[int, tuple[Row, ...]]:
    """The rows from ``offset`` on, at most ``limit``, and that offset.

    Raises:
        BadQuestionError: one of them is no number.
    """
    offset = number(asked, "offset", 0, 10**_MOST_DIGITS - 1)
    limit = number(asked, "limit", MOST_ROWS, MOST_ROWS)
    return offset, tuple(rows[offset : offset + limit])
