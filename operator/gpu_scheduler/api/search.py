"""A search as ``spec.sweep`` says it: parameters and their values, algorithm, objective, reasons.

The order of the parameters is that of their names, whatever order they were written in: an API
server sorts the keys of an object, so no other order would survive being applied. Numbers are
canonical too (32.0 is 32), since JSON on its way through the API server does not tell them apart.
Without pydantic, for these are also the values that trials are worked out from (``sweeps.core``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool
Parameters: TypeAlias = dict[str, Value]

MAX_ALSO = 5  # metrics kept beside the objective
MAX_ADAPTIVE = 20  # parameters of an adaptive search, whose values are stored
MAX_VALUES_BYTES = 600  # of JSON: all values of one trial of an adaptive search
MAX_REPORT_BYTES = 4096  # of what a running trial, or a pod with a checkpoint, posts
TOP, ERRORS = 10, 5  # trials in a status: the best, and those that failed last

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


class Goal(StrEnum):
    """Which values of the objective are better."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric, its direction, and the value at which the search may end."""

    metric: str
    goal: Goal = Goal.MINIMIZE
    target: float | None = None
    also: tuple[str, ...] = ()  # other metrics that are kept

    def cost(self, value: float) -> float:
        """The value turned so that less is better."""
        return value if self.goal is Goal.MINIMIZE else -value

    def reached(self, value: float) -> bool:
        """Whether the value is as good as the target, or better."""
        return self.target is not None and self.cost(value) <= self.cost(self.target)


class Algorithm(StrEnum):
    """How trials get their parameters."""

    GRID = "grid"
    RANDOM = "random"
    HALTON = "halton"
    LIST = "list"
    TPE = "tpe"


@dataclass(frozen=True, slots=True)
class Search:
    """A search as the spec says it; ``listed`` is for ``list``, ``space`` for all others."""

    algorithm: Algorithm
    space: Space
    seed: int = 0
    listed: tuple[Parameters, ...] = ()

    @property
    def adaptive(self) -> bool:
        """Whether values depend on results, so that they must be stored."""
        return self.algorithm is Algorithm.TPE

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, sorted."""
        if self.algorithm is Algorithm.LIST:
            return tuple(sorted(self.listed[0])) if self.listed else ()
        return self.space.names

    def size(self) -> int | None:
        """How many trials there are; None when there is no end of them."""
        if self.algorithm is Algorithm.LIST:
            return len(self.listed)
        return self.space.grid_size() if self.algorithm is Algorithm.GRID else None


class SweepReason(StrEnum):
    """Why a sweep has ended, or starts no more trials."""

    NONE = ""
    ALL_TRIALS_ENDED = "AllTrialsEnded"
    TARGET_REACHED = "TargetReached"
    FAIL_FAST = "FailFastExitCode"
    TOO_MANY_FAILED = "TooManyFailedTrials"
    NONE_SUCCEEDED = "NoTrialSucceeded"
