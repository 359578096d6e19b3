"""What is written behind flags of ``submit``: numbers of GPUs, durations, K=V, parameters.

Each says which flag was wrong and what would be right. Called by ``submit_job``.
"""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 64
_DURATION = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")
_UNITS = (86_400, 3600, 60, 1)
_EXACT = 2**53  # integers up to here are exact in JSON readers that only know doubles


def number(flag: str, text: str) -> int | float:
    """A number of GPUs.

    Raises:
        ValueError: it is none.
    """
    if not _NUMBER.fullmatch(text) or len(text) > _MOST_DIGITS:
        hint = (
            f"write {text.replace(',', '.')}" if _NUMBER.fullmatch(text.replace(",", ".")) else ""
        )
        right = hint or "write a share of one GPU (0.5), or whole GPUs (2)"
        raise ValueError(f"{flag} {text[:_MOST_DIGITS]!r} is no number of GPUs; {right}")
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def seconds(flag: str, text: str | None) -> int | None:
    """A duration: ``90``, ``90s``, ``1h30m``, ``2d``.

    Raises:
        ValueError: it is none.
    """
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    parts = _DURATION.fullmatch(text)
    if not text or parts is None:
        raise ValueError(
            f"{flag} {text[:_MOST_DIGITS]!r} is no duration; write 90s, 30m, 1h30m or 2d"
        )
    return sum(int(count or 0) * unit for count, unit in zip(parts.groups(), _UNITS, strict=True))


def pairs(flag: str, said: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` each; of two with the same key the last one.

    Raises:
        ValueError: one has no key, or no equals sign.
    """
    found = dict[str, str]()
    for text in said:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{flag} {text[:_MOST_DIGITS]!r}: write KEY=VALUE")
        found[key] = value
    return found


def parameter(text: str) -> tuple[str, list[Any]]:
    """``lr=0.1,0.01``: a parameter of a sweep and its values, with their types.

    Raises:
        ValueError: it has no name, or an empty value, or a number that no double holds.
    """
    name, equals, rest = text.partition("=")
    values = rest.split(",")
    if not equals or not name or not all(values):
        raise ValueError(
            f"--param {text[:_MOST_DIGITS]!r}: write NAME=VALUE,VALUE such as lr=0.1,0.01"
        )
    return name, [_value(name, value) for value in values]


def _value(name: str, text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= _MOST_DIGITS and abs(int(text)) < _EXACT:
        return int(text)
    if not _FLOAT.fullmatch(text):
        return text
    value = float(text)
    lost = value == 0 and re.search("[1-9]", re.split("[eE]", text)[0])
    if lost or not math.isfinite(value):
        raise ValueError(
            f"--param {name}: {text[:_MOST_DIGITS]} is a number that no reader of JSON can "
            "hold; it must be 0, or between 4.9e-324 and 1.8e308 on either side of it"
        )
    return value
