"""The parameters of trial i: a pure function of the search, its seed and i.

Nothing is stored, so a hundred thousand trials cost what one costs, and a retry, a resumed job, a
restarted operator and a preview on a laptop see the same values. Logarithms are decimal, because
those of C libraries differ in the last digit. Adaptive searches (tpe) are not here: their values
depend on results.
"""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import lru_cache
from hashlib import blake2b
from itertools import count

from gpu_scheduler.api.search import (
    Algorithm,
    Constant,
    LogUniform,
    Parameter,
    Parameters,
    Search,
    Space,
    Uniform,
    Value,
)

_BITS = 53  # of a double's fraction
_PERSON = b"sweep-trial"  # keeps these hashes apart from others with the same key
_DIGITS = 34  # of decimal logarithms: twice a double's, so that rounding is the only error


class NoSuchTrialError(IndexError):
    """The search has fewer trials, or its trials are not known in advance."""


def parameters_of(search: Search, trial: int) -> Parameters:
    """The parameters of a trial, by name in the order of the names.

    Raises:
        NoSuchTrialError: the trial is negative or past the last, or the search is adaptive.
    """
    if search.adaptive:
        raise NoSuchTrialError("values of an adaptive search are known when a trial starts")
    size = search.size()
    if trial < 0 or (size is not None and trial >= size):
        raise NoSuchTrialError(f"trial {trial}: the search has {size} trials, from 0")
    match search.algorithm:
        case Algorithm.GRID:
            return _grid(search.space, trial)
        case Algorithm.RANDOM:
            return {n: draw(p, _hashed(search.seed, trial, n)) for n, p in search.space}
        case Algorithm.HALTON:
            return _halton(search.space, search.seed, trial)
        case _:
            return {name: search.listed[trial][name] for name in sorted(search.listed[trial])}


def draw(parameter: Parameter, u: float) -> Value:
    """The value at the place ``u``, 0 <= u < 1, of what the parameter can be."""
    match parameter:
        case Uniform(low, high):
            return min(max(low * (1 - u) + high * u, low), high)  # high - low may be infinite
        case LogUniform(low, high):
            return _logarithmic(low, high, u)
        case _:
            return parameter[min(int(u * len(parameter)), len(parameter) - 1)]


def _grid(space: Space, trial: int) -> Parameters:
    """Digits of the trial's number, the last parameter's turning fastest: itertools.product."""
    found: Parameters = {}
    for name in reversed(space.names):
        parameter = space.parameters[name]
        assert not isinstance(parameter, Uniform | LogUniform), "a grid has discrete parameters"
        trial, digit = divmod(trial, len(parameter))
        found[name] = parameter[digit]
    return {name: found[name] for name in space.names}


def _halton(space: Space, seed: int, trial: int) -> Parameters:
    """Point ``trial`` + 1 of the Halton sequence, moved round by what the seed says per name.

    A prime base per parameter that is searched (Halton 1960); the shift modulo 1 is that of
    Cranley and Patterson (1976). Point 0 would be the shift itself in every base.
    """
    found: Parameters = {}
    primes = _primes()
    for name, parameter in space:
        if isinstance(parameter, Constant):
            found[name] = parameter.value
            continue
        u = _radical_inverse(trial + 1, next(primes)) + _hashed(seed, -1, name)
        found[name] = draw(parameter, u % 1.0)
    return found


def _hashed(seed: int, trial: int, name: str) -> float:
    """A number in [0, 1) that looks random and depends on these three alone."""
    key = seed.to_bytes(8, "big", signed=True)
    digest = blake2b(f"{trial}\0{name}".encode(), digest_size=8, key=key, person=_PERSON).digest()
    return (int.from_bytes(digest, "big") >> (64 - _BITS)) / (1 << _BITS)


def _radical_inverse(index: int, base: int) -> float:
    """The digits of ``index`` mirrored at the point, as a number in [0, 1)."""
    numerator, denominator = 0, 1
    while index:
        index, digit = divmod(index, base)
        numerator, denominator = numerator * base + digit, denominator * base
    return numerator / denominator


def _primes() -> Iterator[int]:
    found: list[int] = []
    for number in count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number


def _logarithmic(low: float, high: float, u: float) -> float:
    first, width = _logarithms(low, high)
    with localcontext(prec=_DIGITS):
        value = float((first + Decimal(u) * width).exp())
    return min(max(value, low), high)


@lru_cache(maxsize=256)
def _logarithms(low: float, high: float) -> tuple[Decimal, Decimal]:
    """Logarithm of the lower bound, and the distance to that of the upper one."""
    with localcontext(prec=_DIGITS):
        first = Decimal(low).ln()
        return first, Decimal(high).ln() - first
