"""A trial's result out of what its program left behind.

``read_message`` takes a termination message: the last line that is a JSON object counts, and it
must hold the metric as a number. A node keeps the last 4,096 bytes of a message, so one of that
length may have lost its beginning, also in the middle of a character. ``read_log`` takes the end of
a log, of images that cannot be changed. Neither raises, whatever is in there.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.core.outcome import TrialState, excerpt

MAX_MESSAGE_BYTES = 4096
FILE = "$GPUJOB_RESULT_FILE"
TOO_DEAR = (
    "to search the end of its log took more than the time that a log gets: make "
    "spec.sweep.resultFrom.logRegex simpler (fewer counted repetitions such as {0,30}, text that "
    "only the right line has at its beginning), or print shorter lines"
)

_REPLACED = "\ufffd".encode()
_NUMBER = re.compile(
    r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
_MARK = "\ufeff"  # of a byte order, which some programs begin a file with

MetricTexts = Mapping[str, str]
"""Texts that a regular expression found on one line, by the names of the metrics."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: a result, or a state and a sentence that say why there is none."""

    state: TrialState
    value: float | None = None
    also: tuple[float | None, ...] = ()
    message: str = ""


def read_message(message: bytes | str | None, objective: Objective | None) -> Reading:
    """The result in a termination message; without an objective any message will do."""
    data = message.encode(errors="replace") if isinstance(message, str) else message or b""
    text = data.decode(errors="replace")
    if objective is None:
        return Reading(TrialState.SUCCEEDED)
    if not text.strip():
        return _missing(f"the program ended without writing to {FILE}", "")
    # The API server answers three bytes, U+FFFD, for each that was no part of a character.
    size = len(data) - data.count(_REPLACED) * (len(_REPLACED) - 1)
    if size > MAX_MESSAGE_BYTES:
        return _missing(f"the result has {size:,} bytes; {MAX_MESSAGE_BYTES:,} fit", text)
    for line in reversed(text.split("\n")):
        entries = _json_object(line)
        if entries is not None:
            return _judge(entries, objective, text)
    cut = f"; of a file above {MAX_MESSAGE_BYTES:,} bytes only the end is kept"
    why = f"{FILE} has no line that is a JSON object"
    return _missing(why + (cut if len(data) >= MAX_MESSAGE_BYTES else ""), text)


def read_log(
    tail: str,
    find: Callable[[str], MetricTexts | None],
    objective: Objective | None,
    spent: Callable[[], bool] = lambda: False,
) -> Reading:
    """The result in the end of a log: the last line on which ``find`` finds something counts.

    A carriage return ends a line too: what a progress bar wrote over has been there before. Empty
    lines are passed over. ``spent`` is asked before each other; once it is true the search ends.
    """
    if objective is None:
        return Reading(TrialState.SUCCEEDED)
    for line in _lines_from_the_end(tail.replace("\r", "\n")):
        if not line:
            continue
        if spent():
            return _missing(TOO_DEAR, "")
        found = find(line)
        if found is not None:
            return _judge({name: _number(text) for name, text in found.items()}, objective, line)
    return _missing("no line at the end of the log matches resultFrom.logRegex", tail)


def _lines_from_the_end(text: str) -> Iterator[str]:
    end = len(text)
    while end >= 0:
        begin = text.rfind("\n", 0, end)
        yield text[begin + 1 : end]
        end = begin if begin >= 0 else -1


def _judge(entries: Mapping[str, object], objective: Objective, text: str) -> Reading:
    if objective.metric not in entries:
        there = ", ".join(sorted(entries)) or "nothing"
        return _missing(f"the result has no {objective.metric}; it has {excerpt(there)}", text)
    value = entries[objective.metric]
    number = as_float(value)
    if number is None:
        return _missing(f"{objective.metric} is {_type_name(value)}, not a number", text)
    if not isfinite(number):
        return Reading(TrialState.NOT_FINITE, message=f"{objective.metric} is {number}")
    also = tuple(_finite(entries.get(name)) for name in objective.also)
    return Reading(TrialState.SUCCEEDED, number, also)


def _json_object(line: str) -> dict[str, object] | None:
    try:
        parsed = json.loads(line.removeprefix(_MARK))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def as_float(value: object) -> float | None:
    """A JSON number, integers past all doubles as infinity; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return float("inf") if value > 0 else float("-inf")


def _finite(value: object) -> float | None:
    number = as_float(value)
    return number if number is not None and isfinite(number) else None


def _number(text: str) -> object:
    """As JSON writes them, or with a point at an end; or no finite one. Else the text."""
    return float(text) if _NUMBER.fullmatch(text.strip()) else text


def _type_name(value: object) -> str:
    names: Iterable[tuple[type, str]] = (
        (bool, "true or false"),
        (str, "a string"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")


def _missing(reason: str, seen: str) -> Reading:
    shown = excerpt(seen)
    return Reading(
        TrialState.RESULT_MISSING, message=f"{reason}; it begins: {shown}" if shown else reason
    )
