"""What a sweep searches: named parameters, and the kinds of values that they take.

The order of the parameters is that of their names, whatever order they were written in: an API
server sorts the keys of an object, so no other order would survive being applied. Numbers are
canonical too (32.0 is 32), since JSON on its way through the API server does not tell them apart.
Called by ``trials``, and by whoever reads a spec.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool
Parameters: TypeAlias = dict[str, Value]

_LARGEST_INT = 2**63  # from here on JSON numbers are doubles in the API server


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any number from low to high, each as likely."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Any number from low to high, each order of magnitude as likely; both above 0."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class IntRange:
    """low, low + step … up to high, which is included when a step hits it."""

    low: int
    high: int
    step: int = 1

    def __len__(self) -> int:
        return (self.high - self.low) // self.step + 1

    def __getitem__(self, index: int) -> int:
        return self.low + self.step * index


@dataclass(frozen=True, slots=True)
class Values:
    """One of these."""

    options: tuple[Value, ...]

    def __len__(self) -> int:
        return len(self.options)

    def __getitem__(self, index: int) -> Value:
        return self.options[index]


@dataclass(frozen=True, slots=True)
class Constant:
    """Always this."""

    value: Value

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Value:
        return self.value


Discrete: TypeAlias = IntRange | Values | Constant
Continuous: TypeAlias = Uniform | LogUniform
Parameter: TypeAlias = Discrete | Continuous


class Space:
    """Parameters by name, in the order of their names."""

    __slots__ = ("parameters",)

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters: dict[str, Parameter] = {n: parameters[n] for n in sorted(parameters)}

    def __iter__(self) -> Iterator[tuple[str, Parameter]]:
        return iter(self.parameters.items())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, sorted."""
        return tuple(self.parameters)

    @property
    def searched(self) -> tuple[str, ...]:
        """Names of those that are not constant."""
        return tuple(name for name, each in self if not isinstance(each, Constant))

    def grid_size(self) -> int | None:
        """How many combinations there are; None when a parameter is continuous."""
        counts = [None if isinstance(p, Uniform | LogUniform) else len(p) for _, p in self]
        if None in counts:
            return None
        return prod(count for count in counts if count is not None)


def canonical(value: Value) -> Value:
    """The value as it is after a journey through JSON in an API server: 32.0 becomes 32.

    Raises:
        OverflowError: an integer past all doubles.
    """
    if isinstance(value, bool | str):
        return value
    if abs(value) >= _LARGEST_INT:
        return float(value)  # written without a point or an exponent it still is a double
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(value: Value) -> str:
    """A value as a program gets it: the shortest digits that give the same number, true, false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def values_of(parameters: Mapping[str, Value], names: Sequence[str]) -> tuple[Value, ...]:
    """Values in the order of ``names``."""
    return tuple(parameters[name] for name in names)
