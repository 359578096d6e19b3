"""What came of one trial.

``STARTED`` exists for adaptive searches alone: it keeps the values of a trial that runs, which
nobody could compute again. Every other state is final: a trial whose pod is tried again has no
outcome yet.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpu_scheduler.api.search import Value

MESSAGE_CHARS = 200  # of what a program wrote, kept with a trial


class TrialState(StrEnum):
    """How a trial ended."""

    STARTED = "Started"
    SUCCEEDED = "Succeeded"
    PRUNED = "Pruned"  # stopped early, as hopeless
    FAILED = "Failed"  # its program failed, and no retry was left
    RESULT_MISSING = "ResultMissing"  # the program ended well, but said no usable result
    NOT_FINITE = "ObjectiveNotFinite"  # it said NaN or infinity


FAILURES = frozenset({TrialState.FAILED, TrialState.RESULT_MISSING, TrialState.NOT_FINITE})


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trial's end. ``value`` is the objective, finite or None."""

    trial: int
    state: TrialState
    value: float | None = None
    also: tuple[float | None, ...] = ()  # the objective's other metrics, in its order
    message: str = ""
    parameters: tuple[Value, ...] | None = None  # of adaptive searches, by sorted name

    @property
    def failed(self) -> bool:
        """Whether it counts as a failed trial."""
        return self.state in FAILURES


def excerpt(text: str) -> str:
    """The beginning of what a program wrote, on one line and fit for a status."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * MESSAGE_CHARS])
    shown = " ".join(shown.split())
    return shown if len(shown) <= MESSAGE_CHARS else shown[: MESSAGE_CHARS - 1] + "…"
