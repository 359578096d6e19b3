"""Specs of GPUJobs, read and judged once for each text: one template makes thousands of jobs.

A spec is never changed once it is read: models are frozen, and whoever needs another one makes a
copy (``ClassBook.resolve``, rendering). So one object serves all jobs that say the same, for as
long as one of them is there: nothing is kept here, and nothing of what is refused.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import orjson

from gpu_scheduler.api import requests
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.size import too_large, weight
from gpu_scheduler.api.validate import read, spec_problems
from gpu_scheduler.core.model.wording import clip

_UNREADABLE = (
    "spec: is nested more than 250 levels deep, or has a number that no field can hold; remove that"
)
_MOST_CHARS = 1000  # of a problem


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What a text says; ``spec`` is None where it cannot be used, ``problem`` says why.

    ``key`` tells texts apart; ``size``: bytes that keeping this one takes, about.
    """

    spec: GPUJobSpec | None
    min_compute: tuple[int, int] = (0, 0)
    problem: str = ""
    key: bytes = b""
    size: int = 0


class Specs:
    """Those that somebody holds."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: WeakValueDictionary[bytes, GPUJobSpec] = WeakValueDictionary()

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
        if problem := too_large(text):
            return ReadSpec(None, problem=problem)
        key = hashlib.blake2b(text, digest_size=16).digest()
        found = self._known.get(key)
        if found is None:
            read = _read(raw)
            if isinstance(read, str):
                return ReadSpec(None, problem=clip(read, _MOST_CHARS))
            found = self._known[key] = read
        return ReadSpec(found, requests.compute_capability(found), "", key, weight(text))


def _floats(value: Any) -> Any:
    """JSON with whole numbers of more than 64 bits as the API server keeps them: as floats."""
    if isinstance(value, Mapping):
        return {key: _floats(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_floats(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    return value


def _read(raw: Mapping[str, Any]) -> GPUJobSpec | str:
    """The spec, or why it cannot be used."""
    spec = read(GPUJobSpec, raw)
    if isinstance(spec, tuple):
        return str(spec[0])
    if found := spec_problems(spec):
        return str(found[0])
    return spec
