"""Amounts as people read them. Pure; None, which is not known, is ``-``."""

from collections.abc import Sequence
from datetime import datetime

UNKNOWN = "-"
_GIB = 1024


def percent(value: int | None) -> str:
    """``85 %``."""
    return UNKNOWN if value is None else f"{value} %"


def gib(mib: int | None) -> str:
    """``18.0 GiB``, and MiB below one."""
    if mib is None:
        return UNKNOWN
    return f"{mib / _GIB:.1f} GiB" if mib >= _GIB else f"{mib} MiB"


def cores(milli: int | None) -> str:
    """``3.2``, ``8``."""
    return UNKNOWN if milli is None else f"{milli / 1000:.1f}".removesuffix(".0")


def gib_pair(used_mib: int | None, most_mib: int | None) -> str:
    """``18.0/20.0Gi``; ``-`` where neither is known."""
    if used_mib is None and most_mib is None:
        return UNKNOWN
    used, most = _short(used_mib), _short(most_mib)
    return f"{used}/{most}Gi" if most_mib is not None else f"{used}Gi/{most}"


def cores_pair(used_milli: int | None, most_milli: int | None) -> str:
    """``3.2/8``; ``-`` where neither is known."""
    if used_milli is None and most_milli is None:
        return UNKNOWN
    return f"{cores(used_milli)}/{cores(most_milli)}"


def hours(value: float | None) -> str:
    """``4.33``."""
    return UNKNOWN if value is None else f"{value:.2f}"


def duration(seconds: float | None) -> str:
    """``2 h 10 min``: the largest unit and the next smaller one."""
    if seconds is None:
        return UNKNOWN
    minutes, rest = divmod(round(seconds), 60)
    hour, minutes = divmod(minutes, 60)
    days, hour = divmod(hour, 24)
    parts = [(days, "d"), (hour, "h"), (minutes, "min"), (rest, "s")]
    first = next((number for number, (amount, _) in enumerate(parts) if amount), len(parts) - 1)
    shown = [f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount]
    return " ".join(shown) or "0 s"


def between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds, never less than 0; None: one of the times is not known."""
    return None if start is None or end is None else max(0.0, (end - start).total_seconds())


def sparkline(values: Sequence[int | None], most: int, *, glyphs: str) -> str:
    """A character for each value, from the first glyph at 0 to the last at ``most``.

    A value that is not known is a blank.
    """
    top = len(glyphs) - 1
    return "".join(
        " " if value is None else glyphs[min(top, value * top // most if most else 0)]
        for value in values
    )


def _short(mib: int | None) -> str:
    return UNKNOWN if mib is None else f"{mib / _GIB:.1f}"
