"""How many reviews the API server answers, by its own metrics: samples, and sums of minutes."""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from cluster import Running

KINDS = ("tokenreviews", "subjectaccessreviews")
_LINE = re.compile(r'^apiserver_request_total\{[^}]*resource="(\w+)"[^}]*\} (\S+)$', re.MULTILINE)
_SECONDS = 5.0
_MINUTE = 60.0


@dataclass(slots=True)
class Reviews:
    """Samples: when, and how many of each kind there were until then."""

    running: Running
    samples: list[tuple[float, dict[str, float]]] = field(default_factory=list)

    async def run(self) -> NoReturn:
        """Look for ever."""
        while True:
            text = await asyncio.to_thread(self._text)
            self.samples.append((time.monotonic(), counts(text)))
            await asyncio.sleep(_SECONDS)

    def _text(self) -> str:
        return self.running.kubectl("get", "--raw", "/metrics").stdout


def counts(text: str) -> dict[str, float]:
    """Requests for reviews of each kind in the API server's metrics."""
    found = dict.fromkeys(KINDS, 0.0)
    for kind, value in _LINE.findall(text):
        if kind in found:
            found[kind] += float(value)
    return found


def a_minute(
    samples: Sequence[tuple[float, dict[str, float]]], begin: float, end: float
) -> dict[str, dict[str, float]]:
    """Of each kind, of a span: the rate in a minute, and the most that came within one."""
    there = [each for each in samples if begin <= each[0] <= end]
    if len(there) < 2:
        return {}
    (first, before), (last, after) = there[0], there[-1]
    return {
        kind: {
            "mean": round(60 * (after[kind] - before[kind]) / (last - first), 1),
            "most": max(
                b[kind] - a[kind]
                for number, (at, a) in enumerate(there)
                for when, b in there[number:]
                if when - at <= _MINUTE + _SECONDS
            ),
        }
        for kind in KINDS
    }
