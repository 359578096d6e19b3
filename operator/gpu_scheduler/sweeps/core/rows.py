r"""The outcomes of one segment as text, one trial a line: what is kept and read back.

The first line says version, segment and the names of metrics and parameters; the others are
``[trial, state, value, [other metrics], message, [parameters]]``, cut after the last that is not
empty. Parameters are there for adaptive searches alone: those of others are computed. A segment of
1,000 trials stays below ``MAX_BYTES``: were it to pass, messages are cut to a few words. Who may
edit the object may write anything: ``decode`` answers only what could be written again.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState

VERSION = 1
MAX_BYTES = 1_000_000  # one object of the store holds a mebibyte, names and header included

_MESSAGE_BYTES = 400
_SHORT_BYTES = 40


class BadRowsError(ValueError):
    """The text is not one that this product wrote; the message says which line."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the rows of a segment have in common."""

    segment: int
    metrics: tuple[str, ...] = ()  # the objective first
    parameters: tuple[str, ...] = ()  # of adaptive searches


class SegmentRows:
    """The outcomes of one segment; a row is written once, however often the text is asked for."""

    def __init__(self, header: Header, outcomes: Iterable[Outcome] = ()) -> None:
        self._header = header
        self._outcomes: dict[int, Outcome] = {}
        self._lines: dict[int, str] = {}
        for outcome in outcomes:
            self.put(outcome)

    def put(self, outcome: Outcome) -> None:
        """Add an outcome, or replace that of the same trial."""
        self._outcomes[outcome.trial] = outcome
        self._lines[outcome.trial] = _row(outcome, _MESSAGE_BYTES)

    def text(self) -> str:
        """All rows by trial, below ``MAX_BYTES``."""
        order = sorted(self._lines)
        text = "\n".join([self._first(), *(self._lines[trial] for trial in order), ""])
        if len(text.encode()) <= MAX_BYTES:
            return text
        short = (_row(self._outcomes[trial], _SHORT_BYTES) for trial in order)
        return "\n".join([self._first(), *short, ""])

    def _first(self) -> str:
        header = self._header
        first = {"v": VERSION, "segment": header.segment, "metrics": list(header.metrics)}
        return _json(first | ({"parameters": list(header.parameters)} if header.parameters else {}))


def encode(header: Header, outcomes: Iterable[Outcome]) -> str:
    """The text of a segment, by trial."""
    return SegmentRows(header, outcomes).text()


def decode(text: str) -> tuple[Header, list[Outcome]]:
    """Header and outcomes of a segment.

    Raises:
        BadRowsError: another version, or a line that is no outcome.
    """
    at = 1
    try:
        first, *rows = text.removesuffix("\n").split("\n")
        head = json.loads(first)
        if head["v"] != VERSION:
            raise BadRowsError(f"results of version {head['v']}, expected {VERSION}")
        header = Header(
            int(head["segment"]), tuple(head["metrics"]), tuple(head.get("parameters", ()))
        )
        outcomes = []
        for row in rows:
            at += 1
            outcomes.append(_outcome(json.loads(row)))
            if "\\u" in row:  # half of a surrogate pair can be read, but not written
                _json(json.loads(row)).encode()
    except BadRowsError:
        raise
    except (
        *(ValueError, KeyError, TypeError, IndexError),
        *(AttributeError, OverflowError, RecursionError),
    ) as error:
        raise BadRowsError(f"results, line {at}: {error}") from error
    return header, outcomes


def _row(outcome: Outcome, message_bytes: int) -> str:
    cells: list[Any] = [
        outcome.trial,
        outcome.state.value,
        outcome.value,
        list(outcome.also),
        _cut(outcome.message, message_bytes),
        list(outcome.parameters or ()),
    ]
    while cells[-1] is None or cells[-1] in ("", []):
        cells.pop()
    return _json(cells)


def _outcome(cells: list[Any]) -> Outcome:
    absent: list[Any] = [None, [], "", []]
    trial, state, *rest = cells
    value, also, message, parameters = rest + absent[len(rest) :]
    if type(trial) is not int or trial < 0 or not isinstance(message, str):
        raise ValueError("no number of a trial, or no message")
    for each in parameters:
        if not isinstance(each, str | bool | int) and _finite(each) is None:
            raise ValueError("a parameter without a value")
    outcome = Outcome(
        trial, TrialState(state), _finite(value), tuple(_finite(each) for each in also), message
    )
    return replace(outcome, parameters=tuple(parameters)) if parameters else outcome


def _finite(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not isfinite(number):
        raise ValueError(f"{number} is not finite")
    return number


def _cut(message: str, most: int) -> str:
    """The message in at most ``most`` bytes of JSON, quotes not counted."""
    if len(_json(message).encode()) - 2 <= most:
        return message
    size, kept = 3, []  # the ellipsis has three bytes
    for character in message:
        size += len(_json(character).encode()) - 2
        if size > most:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
