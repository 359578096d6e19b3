"""What a running trial reports: a step and the objective at that step.

``parse_report`` takes the body of a request as it came and never fails otherwise than with a
sentence for the program's author. NaN and infinities are values here: they say that a trial goes
wrong, and early stopping takes them for the worst.
"""

import json
from dataclasses import dataclass

from gpu_scheduler.api.search import MAX_REPORT_BYTES, Objective
from gpu_scheduler.sweeps.core.outcome import excerpt
from gpu_scheduler.sweeps.core.results import as_float

_MAX_STEP = 2**53
_EXAMPLE = '{"step": 3, "metrics": {"METRIC": 0.5}}'


class BadReportError(ValueError):
    """The body is no report; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class TrialReport:
    """A value of the objective at a step."""

    step: int
    value: float


def parse_report(body: bytes, objective: Objective) -> TrialReport:
    """The report in a request's body.

    Raises:
        BadReportError: too long, no JSON, no step, or without the objective as a number.
    """
    example = _EXAMPLE.replace("METRIC", objective.metric)
    if len(body) > MAX_REPORT_BYTES:
        raise BadReportError(f"a report has at most {MAX_REPORT_BYTES:,} bytes: {example}")
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise BadReportError(f"a report is a JSON object such as {example}") from None
    metrics = parsed.get("metrics") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or not isinstance(metrics, dict):
        raise BadReportError(f"a report is a JSON object such as {example}")
    step = parsed.get("step")
    if isinstance(step, float) and step.is_integer():
        step = int(step)
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < _MAX_STEP:
        raise BadReportError(f"step must be a whole number from 0: {example}")
    if objective.metric not in metrics:
        there = excerpt(", ".join(sorted(metrics))) or "nothing"
        raise BadReportError(f"metrics has no {objective.metric}; it has {there}")
    value = as_float(metrics[objective.metric])
    if value is None:
        raise BadReportError(f"{objective.metric} must be a number: {example}")
    return TrialReport(step, value)
