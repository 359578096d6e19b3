"""``spec.sweep``: a search over parameters, whose trials are the indexes of a GPUJob.

What the fields mean for trial i is worked out in ``sweeps.core``; ``search`` and ``objective`` turn
the spec into the values used there. Numbers are taken in one canonical form, because JSON does not
tell 32 from 32.0, and a preview on a laptop must show what the operator will do.
"""

from enum import StrEnum
from functools import cached_property
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from gpu_scheduler.api import search, sweep_rules
from gpu_scheduler.api.model import SET, ApiModel, rules
from gpu_scheduler.api.search import MAX_ALSO, Algorithm, Goal, Objective, Search, Space, Value

MAX_PARAMETERS = 64
MAX_VALUES = 1000
MAX_LISTED = 10_000
MAX_TEXT = 1024  # characters of a text value
NO_DOUBLE = (
    "must be a number that a JSON reader can hold: 0, or between 4.9e-324 and 1.8e308 on either "
    "side of it; write a text where the program reads more"
)
_EXACT = 2**53  # integers up to here are exact in JSON readers that only know doubles


def _scalar(value: object) -> Value:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("must be a number, a text, true or false")
    if isinstance(value, str) and (len(value) > MAX_TEXT or "\0" in value):
        raise ValueError(f"must have at most {MAX_TEXT} characters, none of them NUL")
    try:
        number = search.canonical(value)
    except OverflowError:
        number = float("inf")
    if isinstance(number, float) and not isfinite(number):
        raise ValueError(NO_DOUBLE)
    return number


def _finite(value: float) -> float:
    if not isfinite(value):
        raise ValueError(NO_DOUBLE)
    return value


_ANY: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema(_ANY)]
"""A number, a text, true or false."""

# Null in a list stays there, and CEL cannot compare what has it unless it may be: no status could
# be written any more, not even that it is wrong.
_NullableScalar = Annotated[
    Any, BeforeValidator(_scalar), WithJsonSchema(_ANY | {"nullable": True})
]

Bounds = Annotated[
    list[Annotated[float, AfterValidator(_finite)]], Field(min_length=2, max_length=2)
]
MetricName = Annotated[str, Field(min_length=1, max_length=63)]


class ParameterSpec(ApiModel):
    """One parameter: exactly one kind of values."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "maxProperties": 1,
            **rules(*sweep_rules.PARAMETER),
        }
    )

    uniform: Bounds | None = Field(
        None, description="Any number of [low, high], each as likely: [0, 0.5]."
    )
    log_uniform: Bounds | None = Field(
        None, description="Any number of [low, high], each order of magnitude as likely."
    )
    integers: (
        Annotated[
            list[Annotated[int, Field(ge=-_EXACT, le=_EXACT)]], Field(min_length=2, max_length=3)
        ]
        | None
    ) = Field(None, alias="int", description="A whole number of [low, high] or [low, high, step].")
    values: Annotated[list[_NullableScalar], Field(min_length=1, max_length=MAX_VALUES)] | None = (
        Field(None, description="One of these: numbers, texts, true or false.")
    )
    constant: Scalar | None = Field(None, description="Always this.")

    def parameter(self) -> search.Parameter:
        """The parameter as the core knows it; for a spec without problems."""
        if self.uniform is not None:
            return search.Uniform(*self.uniform)
        if self.log_uniform is not None:
            return search.LogUniform(*self.log_uniform)
        if self.integers is not None:
            return search.IntRange(*self.integers)
        if self.values is not None:
            return search.Values(tuple(self.values))
        value: Any = self.constant  # checked by _scalar
        return search.Constant(value)


class ObjectiveSpec(ApiModel):
    """What makes one trial better than another."""

    metric: MetricName = Field(description="Name of the number in the trial's result.")
    goal: Goal = Field(Goal.MINIMIZE, description="minimize or maximize.")
    target: float | None = Field(
        None, description="A value as good as this ends the search: no further trial starts."
    )
    additional_metrics: list[MetricName] | None = Field(
        None,
        max_length=MAX_ALSO,
        description="Other numbers of the result to keep beside the objective.",
    )


class StoppingType(StrEnum):
    """How hopeless trials are told from others."""

    MEDIAN = "median"
    ASHA = "asha"


class EarlyStoppingSpec(ApiModel):
    """Ends trials that are hopeless, by what they report while they run."""

    model_config = ConfigDict(json_schema_extra=rules(*sweep_rules.EARLY_STOPPING))

    type: StoppingType = Field(
        description="median: worse than the median of the others so far; asha: not among the best "
        "1/reductionFactor at steps minResource, minResource x reductionFactor …"
    )
    min_trials: int | None = Field(
        None, ge=1, le=1000, description="median: not before so many have succeeded. Default 5."
    )
    warmup_steps: int | None = Field(
        None, ge=0, le=_EXACT, description="median: not before this step. Default 0."
    )
    min_resource: int | None = Field(
        None,
        ge=1,
        le=_EXACT,
        description="asha: the first step at which trials compare. Default 1.",
    )
    reduction_factor: int | None = Field(
        None, ge=2, le=100, description="asha: one of so many goes on. Default 3."
    )
    grace_seconds: int = Field(
        30,
        ge=0,
        le=86_400,
        description="A trial that was told to stop and still runs after this long is ended.",
    )


class ResultFrom(ApiModel):
    """Where the result is, if the program cannot write $GPUJOB_RESULT_FILE."""

    log_regex: str = Field(
        min_length=1,
        max_length=500,
        description="Regular expression (RE2) for a line at the end of the log; its first group is "
        "the objective, groups with names are metrics. The last line that matches counts.",
    )


class SweepSpec(ApiModel):
    """A search: every trial is one pod with parameters of its own."""

    model_config = ConfigDict(json_schema_extra=rules(*sweep_rules.SWEEP))

    algorithm: Algorithm = Field(
        description="grid (all combinations), random, halton (random but even), list (trials says "
        "them all) or tpe (learns from results; not reproducible)."
    )
    seed: int = Field(
        0,
        ge=0,
        le=_EXACT,
        description="Another seed gives other random values; the same, the same.",
    )
    objective: ObjectiveSpec | None = Field(
        None, description="The number to make small or large, out of each trial's result."
    )
    parameters: dict[str, ParameterSpec] | None = Field(
        None,
        description="Parameters by name, in alphabetical order; a grid turns the last one fastest.",
        json_schema_extra={
            "minProperties": 1,
            "maxProperties": MAX_PARAMETERS,
            **rules(*sweep_rules.PARAMETERS),
        },
    )
    trials: (
        list[Annotated[dict[str, Scalar], WithJsonSchema({"type": "object", **_ANY})]] | None
    ) = Field(
        None,
        min_length=1,
        max_length=MAX_LISTED,
        description="For list: the parameters of each trial by name, the same names in all.",
    )
    early_stopping: EarlyStoppingSpec | None = Field(
        None, description="Ends hopeless trials, which report to $GPUJOB_REPORT_URL."
    )
    max_failed_trials: int | None = Field(
        None,
        ge=0,
        le=100_000,
        description="More failed trials fail the sweep and end what runs. Absent: any number may "
        "fail, if another succeeds.",
    )
    fail_fast_exit_codes: list[Annotated[int, Field(ge=1, le=255)]] | None = Field(
        None,
        max_length=32,
        description="Exit codes that mean that no trial can succeed: they fail the sweep at once.",
        json_schema_extra=SET,
    )
    result_from: ResultFrom | None = Field(
        None, description="Takes the result from the log, for images that cannot be changed."
    )

    def search(self) -> Search:
        """The search as the core knows it; for a spec without problems."""
        each = {name: spec.parameter() for name, spec in (self.parameters or {}).items()}
        return Search(self.algorithm, Space(each), self.seed, tuple(self.trials or ()))

    def core_objective(self) -> Objective | None:
        """The objective as the core knows it."""
        if (o := self.objective) is None:
            return None
        return Objective(o.metric, o.goal, o.target, tuple(o.additional_metrics or ()))

    def total(self, completions: int | None) -> int:
        """Trials in all: completions, but no more than a grid or list has; 0 where not known."""
        if completions is None:
            return self._size
        return min(completions, self._size or completions)

    @cached_property
    def _size(self) -> int:
        return self.search().size() or 0
