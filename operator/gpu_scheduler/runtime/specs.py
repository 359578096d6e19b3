"""Specs of GPUJobs, read and judged once for each text: one template makes thousands of jobs.

A spec is never changed once it is read: models are frozen, and whoever needs another one makes a
copy (``ClassBook.resolve``, rendering). So one object serves all jobs that say the same. Only what
was read lately is kept; records keep what they need. Called by ``custom_resources``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gpu_scheduler.api import requests
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.validate import read, spec_problems

_UNREADABLE = (
    "spec: is nested more than 250 levels deep, or has a number that no field can hold; remove that"
)
_MOST = 200  # texts: with large templates these are megabytes


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What a text says; ``spec`` is None where it cannot be used, ``problem`` says why."""

    spec: GPUJobSpec | None
    min_compute: tuple[int, int] = (0, 0)
    problem: str = ""


class Specs:
    """What was read lately."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[bytes, ReadSpec] = {}

    def read(self, raw: Mapping[str, Any]) -> ReadSpec:
        """What a spec says, whatever its object is called."""
        try:
            text = orjson.dumps(raw)
        except orjson.JSONEncodeError:
            try:
                raw = _floats(raw)
                text = orjson.dumps(raw)
            except (orjson.JSONEncodeError, RecursionError, OverflowError):
                return ReadSpec(None, problem=_UNREADABLE)
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[text] = _read(raw)
        return found


def _floats(value: Any) -> Any:
    """JSON with whole numbers of more than 64 bits as the API server keeps them: as floats."""
    if isinstance(value, Mapping):
        return {key: _floats(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_floats(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    return value


def _read(raw: Mapping[str, Any]) -> ReadSpec:
    spec = read(GPUJobSpec, raw)
    if isinstance(spec, tuple):
        return ReadSpec(None, problem=str(spec[0]))
    if found := spec_problems(spec):
        return ReadSpec(None, problem=str(found[0]))
    return ReadSpec(spec, requests.compute_capability(spec))
