"""Output for people: steps with their durations, headings, and colour where it is welcome.

Colour only on a terminal that has not asked for none (NO_COLOR); plain characters where the
encoding knows no blocks.
"""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from typing import TextIO

BOLD, DIM, GREEN, RED = "1", "2", "32", "31"
_ERASE = "\r\033[K"
# Of each step that has ended: its text, and how many seconds it took.
taken: list[tuple[str, float]] = []


def coloured() -> bool:
    """Whether standard output is a terminal that takes colour."""
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not dumb


def paint(text: str, *codes: str) -> str:
    """``text`` with SGR ``codes``, unchanged where there is no colour."""
    return f"\033[{';'.join(codes)}m{text}\033[0m" if coloured() else text


def symbol(unicode: str, plain: str) -> str:
    """``unicode`` if standard output can show it, else ``plain``."""
    try:
        unicode.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return plain
    return unicode


def heading(text: str, note: str = "") -> None:
    """A title with space above it."""
    print(f"\n{paint(text, BOLD)}" + (f"  {paint(note, DIM)}" if note else ""), flush=True)


@contextmanager
def step(text: str) -> Iterator[list[str]]:
    """Times a piece of work; what is appended to the list is added to its line."""
    live = coloured()
    if live:
        print(paint(f"{symbol('…', '.')} {text}", DIM), end="\r", flush=True)
    said: list[str] = []
    started = time.monotonic()
    try:
        with redirect_stderr(_Below(sys.stderr)) if live else nullcontext():
            yield said
    except BaseException:
        _finish(live, f"{paint(symbol('✗', 'x'), RED)} {text}")
        raise
    seconds = time.monotonic() - started
    taken.append((text, seconds))
    line = ", ".join([text, *said])
    _finish(live, f"{paint(symbol('✓', '+'), GREEN)} {line:<74} {paint(f'{seconds:5.1f} s', DIM)}")


def _finish(live: bool, line: str) -> None:
    print((_ERASE if live else "") + line, flush=True)


class _Below(io.TextIOBase):
    """Standard error while a step's line stands: what is written takes the line's place."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        written = self._stream.write(text if text == "\n" else _ERASE + text)
        self._stream.flush()
        return written
