"""Amounts of memory as Kubernetes writes them: ``20Gi``, ``1.5G``, ``1e9``, ``1048576``.

Exact: fractions, no floats. What the API server accepts as a quantity is accepted here.
"""

import re
from fractions import Fraction
from math import ceil

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?P<suffix>[KMGTPE]i|[kMGTPE]|[num])?(?P<power>[eE][+-]?[0-9]{1,3})?"
)
_BINARY = {f"{letter}i": Fraction(1 << 10 * (i + 1)) for i, letter in enumerate("KMGTPE")}
_DECIMAL = {letter: Fraction(10) ** (3 * (i + 1)) for i, letter in enumerate("kMGTPE")}
_SMALL = {letter: Fraction(1, 1000 ** (i + 1)) for i, letter in enumerate("mun")}
_FACTOR = _BINARY | _DECIMAL | _SMALL


def bytes_from_quantity(text: str) -> int:
    """Bytes of a quantity, rounded up.

    Raises:
        ValueError: not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or (match["suffix"] and match["power"]):
        raise ValueError(f"{text!r} is not a quantity; write for example 20Gi")
    factor = _FACTOR.get(match["suffix"] or "", Fraction(1))
    power = int((match["power"] or "e0")[1:])
    number = match["number"]
    return ceil(Fraction(number) * factor * Fraction(10) ** power)
