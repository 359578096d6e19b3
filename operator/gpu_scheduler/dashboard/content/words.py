"""Amounts in sentences of pages."""

from collections.abc import Iterable, Sequence

from gpu_scheduler.dashboard.rows import LeadPiece

_SMALL = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip

Sentence = tuple[LeadPiece, ...]


def amount(gpus: float) -> str:
    """GPUs, to a hundredth: '31.4', '0.25', '4'."""
    text = f"{gpus:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def count(number: int) -> str:
    """In a sentence: 'three', '14'."""
    return _SMALL[number] if number < len(_SMALL) else f"{number:,}"


def many(number: int, one: str, more: str = "") -> str:
    """'one job', '14 jobs'."""
    return f"{count(number)} {one if number == 1 else more or f'{one}s'}"


def gpus(number: float) -> str:
    """'1 GPU', '31.4 GPUs'."""
    text = amount(number)
    return f"{text} GPU" if text == "1" else f"{text} GPUs"


def is_are(number: float) -> str:
    """The verb after so many: up to one is one thing."""
    return "is" if 0 < round(number, 2) <= 1 else "are"


def begin(text: str) -> str:
    """With a capital letter at its beginning, and nowhere else."""
    return text[:1].upper() + text[1:]


def duration(seconds: float) -> str:
    """In two steps: '40 s', '12 min', '2 h 10 min', '3 d 4 h'."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def percent(ratio: float) -> str:
    """'28 %'."""
    return f"{round(100 * min(max(ratio, 0.0), 1.0))} %"


def listed(items: Sequence[str], most: int = 3) -> str:
    """'a', 'a and b', 'a, b and 3 more'."""
    if len(items) > most:
        return f"{', '.join(items[: most - 1])} and {len(items) - most + 1} more"
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def sentence(*parts: str | tuple[str, str]) -> Sentence:
    """Of texts, and of pairs of a text and the page with the rows behind it."""
    pieces = (
        LeadPiece(text=part) if isinstance(part, str) else LeadPiece(text=part[0], to=part[1])
        for part in parts
    )
    return tuple(piece for piece in pieces if piece.text)


def text(pieces: Iterable[LeadPiece]) -> str:
    """As a terminal prints it."""
    return "".join(piece.text for piece in pieces)
