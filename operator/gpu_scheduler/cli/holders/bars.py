"""Bars and lines of ``top``: text with styles, which is folded to the width of a terminal.

A bar has a segment for each holder; segments differ in glyph as well as in colour, so that they
can be told apart without. Where it is known what is used of what is held, glyphs tell that, and
colours tell holders apart. Where the output knows no such glyphs there are others.
"""

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpu_scheduler.cli.shown import console, plain, say

WIDTH = 10  # glyphs of a whole GPU
_COLOURS = ("cyan", "yellow", "magenta", "green", "blue")
_GLYPHS, _FREE = ("█", "▓", "▒"), "░"
_PLAIN, _PLAIN_FREE = ("#", "=", "+"), "-"
_CURVE, _PLAIN_CURVE = "▁▂▃▄▅▆▇█", "012345678"


class Piece(NamedTuple):
    """Text that is not broken between lines, and how it looks."""

    text: str
    style: str = ""


class Part(NamedTuple):
    """What one holds, milli-GPU, and what of it is used; None: not known."""

    held: int
    used: int | None


Line = Sequence[Sequence[Piece]]  # groups with two spaces between; a group stays on one line


def bar(
    parts: Sequence[int], whole: int, *, width: int = WIDTH, partial: bool = False
) -> list[Piece]:
    """Segments of the parts, then what is free; who holds anything is seen, if there is room.

    ``partial``: others may hold of the rest, and it cannot be seen how much.
    """
    glyphs, free = _alphabet()
    pieces, drawn, total = [], 0, 0
    for number, part in enumerate(parts):
        total += part
        end = min(width, max(round(width * total / whole) if whole else 0, drawn + (part > 0)))
        if end > drawn:
            pieces.append(Piece(glyphs[number % 3] * (end - drawn), colour(number)))
            drawn = end
    rest = ("?" if partial else free) * (width - drawn)
    return [*pieces, Piece(rest, "dim")] if rest else pieces


def use_bar(
    parts: Sequence[Part], whole: int, *, width: int = WIDTH, partial: bool = False
) -> list[Piece]:
    """What is used within what is held, in the glyphs that ``legend`` explains; then what is free.

    ``partial``: others may hold of the rest, and it cannot be seen how much.
    """
    glyphs, free = _alphabet()
    used, unknown, unused = glyphs
    pieces, drawn, total = list[Piece](), 0, 0
    for number, part in enumerate(parts):
        total += part.held
        end = min(width, max(round(width * total / whole) if whole else 0, drawn + (part.held > 0)))
        length = max(0, end - drawn)
        drawn += length
        if part.used is None:
            pieces.append(Piece(unknown * length, colour(number)))
            continue
        full = round(length * part.used / part.held) if part.held else 0
        pieces.append(Piece(used * full, colour(number)))
        pieces.append(Piece(unused * (length - full), colour(number)))
    pieces.append(Piece(("?" if partial else free) * (width - drawn), "dim"))
    return [piece for piece in pieces if piece.text]


def legend(*, partial: bool = False) -> str:
    """What the glyphs of ``use_bar`` mean; ``partial`` as there."""
    (used, unknown, unused), free = _alphabet()
    rest = "? free or of others, not shown" if partial else f"{free} free"
    return f"{used} used  {unused} held, not used  {unknown} held, use not known  {rest}"


def curve_glyphs() -> str:
    """From the least to the most, as the output knows them."""
    return _CURVE if _knows(_CURVE) else _PLAIN_CURVE


def colour(number: int) -> str:
    """Of the holder of this number."""
    return _COLOURS[number % len(_COLOURS)]


def print_lines(lines: Iterable[Line], *, indent: int = 4) -> None:
    """Print lines; what is too wide for a terminal goes on below, further in."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 0
    out = console() if terminal else None
    for line in lines:
        for row in fold(line, width, indent):
            if out is None:
                say("".join(piece.text for piece in row).rstrip())
                continue
            from rich.text import Text

            out.print(Text.assemble(*((plain(p.text), p.style) for p in row)), soft_wrap=True)


def print_text(text: str, *, indent: str = "") -> None:
    """Print a sentence, folded between words on a terminal; all its lines begin with the indent.

    A command is not folded: it is there to be copied.
    """
    if not sys.stdout.isatty() or text.startswith("kubectl "):
        say(f"{indent}{text}")
        return
    from textwrap import wrap

    width = shutil.get_terminal_size().columns
    lines = wrap(text, width, initial_indent=indent, subsequent_indent=indent)
    say("\n".join(lines))


def fold(line: Line, width: int, indent: int) -> list[list[Piece]]:
    """A line as rows of at most this width; 0: one row."""
    rows: list[list[Piece]] = [[]]
    used = 0
    for group in line:
        length = sum(len(piece.text) for piece in group)
        if used and width and used + 2 + length > width:
            rows.append([Piece(" " * indent)])
            used = indent
        elif used:
            rows[-1].append(Piece("  "))
            used += 2
        rows[-1] += group
        used += length
    return rows


def _alphabet() -> tuple[tuple[str, str, str], str]:
    """Glyphs of holders, and of what is free."""
    return (_GLYPHS, _FREE) if _knows("".join((*_GLYPHS, _FREE))) else (_PLAIN, _PLAIN_FREE)


def _knows(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
