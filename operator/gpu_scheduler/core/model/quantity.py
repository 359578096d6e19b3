"""Kubernetes quantities ("500m", "2Gi", "1e3"), parsed exactly and rounded up.

Grammar and rounding (away from zero) follow apimachinery's ``resource.Quantity``, and like it
amounts saturate: whatever somebody writes, sums over 100,000 pods and what scores make of them stay
within 64 bits. Integers all the way, no float. A cluster holds few different quantities, so results
are cached. Called where requests of pods and capacities of nodes are read.
"""

import re
from collections.abc import Callable
from fractions import Fraction

from gpu_scheduler.limits.bounded import quoted, remembered

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<unit>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
MOST_CPU_MILLI = 1 << 40  # a billion CPUs; scores multiply it by up to 2**17
MOST = 1 << 46  # 64 TiB, or as many of anything else
_DECIMAL_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_UNITS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@remembered(4096, chars=64)
def parse(text: str) -> Fraction:
    """The exact value of a quantity.

    Raises:
        ValueError: it is not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f'{quoted(text)} is not a quantity (such as "500m", "1.5" or "2Gi")')
    part = match["part"] or ""
    value = int(f"{match['sign']}{match['whole']}{part}")
    unit = match["unit"] or ""
    exponent = int(match["exponent"] or _DECIMAL_UNITS.get(unit, 0)) - len(part)
    value <<= _BINARY_UNITS.get(unit, 0)
    return Fraction(value * 10**exponent) if exponent >= 0 else Fraction(value, 10**-exponent)


@remembered(4096, chars=64)
def cpu_milli(text: str) -> int:
    """Milli-CPU of a quantity of CPUs, rounded up ("0.1" -> 100, "100n" -> 1).

    Between -MOST_CPU_MILLI and MOST_CPU_MILLI.

    Raises:
        ValueError: it is not a quantity.
    """
    return _away_from_zero(parse(text) * 1000, MOST_CPU_MILLI)


@remembered(4096, chars=64)
def whole(text: str) -> int:
    """A quantity as an integer, rounded up: bytes of memory, counts ("2Gi", "110").

    Between -MOST and MOST.

    Raises:
        ValueError: it is not a quantity.
    """
    return _away_from_zero(parse(text), MOST)


@remembered(4096, chars=64)
def asked_cpu_milli(text: str) -> int:
    """Milli-CPU that a pod asks for; what cannot be read asks for more than any node has."""
    return _asked(cpu_milli, text, MOST_CPU_MILLI)


@remembered(4096, chars=64)
def asked(text: str) -> int:
    """The same of bytes and counts."""
    return _asked(whole, text, MOST)


def _asked(read: Callable[[str], int], text: str, most: int) -> int:
    try:
        return max(0, read(text))
    except ValueError:
        return most


def _away_from_zero(value: Fraction, most: int) -> int:
    size = min(most, -(-abs(value.numerator) // value.denominator))
    return size if value >= 0 else -size
