"""Amounts of memory as Kubernetes writes them: ``20Gi``, ``1.5G``, ``1e9``, ``1048576``.

Exact, through Decimal; what the API server accepts as a quantity is accepted here.
"""

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([EPTGMk]i?|Ki|[mun]|[eE][+-]?[0-9]+)?")
_BINARY = {f"{letter}i": Decimal(1 << 10 * (i + 1)) for i, letter in enumerate("KMGTPE")}
_DECIMAL = {letter: Decimal(10) ** (3 * (i + 1)) for i, letter in enumerate("kMGTPE")}
_SMALL = {"m": Decimal("1e-3"), "u": Decimal("1e-6"), "n": Decimal("1e-9"), "": Decimal(1)}
_SUFFIX = _BINARY | _DECIMAL | _SMALL


def bytes_from_quantity(text: str) -> int:
    """Bytes of a quantity, rounded up.

    Raises:
        ValueError: not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity; write for example 20Gi")
    number, suffix = Decimal(match[1]), match[2] or ""
    exact = number * _SUFFIX[suffix] if suffix in _SUFFIX else number.scaleb(int(suffix[1:]))
    return int(exact.to_integral_value(rounding="ROUND_CEILING"))
