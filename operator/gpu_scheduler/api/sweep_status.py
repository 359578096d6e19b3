"""``status.sweep``: what has come of a search so far, in constant size.

The best trial with all its parameters, the next ones and the latest failures in short; the whole
table is in the results ConfigMaps (``kubectl gpu sweep trials JOB``). Written by the operator.
"""

from pydantic import Field

from gpu_scheduler.api.condition import Sentence
from gpu_scheduler.api.model import ApiModel
from gpu_scheduler.api.search import ERRORS, TOP


class TrialCounts(ApiModel):
    """Trials by state; those that are not counted wait for their turn."""

    running: int = Field(0, description="Trials that hold GPUs.")
    succeeded: int = Field(0, description="Trials with a result.")
    pruned: int = Field(0, description="Trials that were stopped early.")
    failed: int = Field(0, description="Trials that used up their retries.")
    result_missing: int = Field(
        0, description="Trials that ended well without a usable result; they count as failed."
    )
    objective_not_finite: int = Field(
        0, description="Trials whose objective is NaN or infinite; they count as failed."
    )


class RankedTrial(ApiModel):
    """A trial that succeeded."""

    trial: int = Field(description="Its number, from 0.")
    value: float = Field(description="Its objective.")
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What it was given; long values are cut."
    )


class TrialError(ApiModel):
    """A trial that failed, or gave no usable result."""

    trial: int = Field(description="Its number, from 0.")
    state: str = Field(max_length=63, description="Failed, ResultMissing or ObjectiveNotFinite.")
    message: str = Field("", max_length=1024, description="Why.")


class SweepStatus(ApiModel):
    """Where a search stands."""

    trials: int = Field(description="Trials in all.")
    counts: TrialCounts = Field(description="Trials by state.")
    best: RankedTrial | None = Field(
        None, description="The best trial so far; of equal ones that with the lowest number."
    )
    top: list[RankedTrial] = Field(
        default_factory=list, max_length=TOP, description="The best ten, the best first."
    )
    errors: list[TrialError] = Field(
        default_factory=list,
        max_length=ERRORS,
        description="Failed trials with the highest numbers, the highest first.",
    )
    lost_results: Sentence = Field(
        "", description="What of the results is lost, with numbers; empty when nothing is."
    )
    target_reached: bool = Field(False, description="A trial is as good as objective.target.")
