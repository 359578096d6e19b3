"""Nodes on which a job's pods could not be placed or started: avoided for a while, and why.

Each time it goes wrong there again the job keeps away for twice as long, so that every other node
has its turn. What was said stays as long as the node is avoided, how often it went wrong as long as
the job is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.backoff import Backoff

_MOST_TIMES = 64  # as long as at first a job avoids a node
_MOST_CHARS = 300  # of what was said


@dataclass(slots=True)
class _Failure:
    times: int = 0
    until: float | None = None  # monotonic seconds; None = it may be used again
    why: str = ""


class FailedNodes:
    """By job and node."""

    def __init__(self) -> None:
        """Start empty."""
        self._failures: dict[JobKey, dict[str, _Failure]] = {}

    def note(self, key: JobKey, node: str, now: float, seconds: float, why: str) -> None:
        """It went wrong; ``seconds``: how long the node is avoided the first time.

        A new leader learns of earlier times one after the other, in any order.
        """
        failure = self._failures.setdefault(key, {}).setdefault(node, _Failure())
        until = now + Backoff(seconds, _MOST_TIMES * seconds).delay_seconds(failure.times)
        failure.until = max(until, failure.until or until)
        failure.times += 1
        failure.why = why if len(why) <= _MOST_CHARS else f"{why[:_MOST_CHARS]}…"

    def of(self, key: JobKey) -> Mapping[str, str]:
        """The nodes that a job avoids now, and why; empty where nothing was said."""
        failures = self._failures.get(key, {})
        return {node: each.why for node, each in failures.items() if each.until is not None}

    def has_others(self, key: JobKey, node: str) -> bool:
        """Whether it went wrong on other nodes, or here before this one was avoided."""
        failures = self._failures.get(key, {})
        return any(other != node or each.until is None for other, each in failures.items())

    def expire(self, now: float) -> set[JobKey]:
        """Let go of nodes whose time is over; the jobs that may use one again."""
        over: set[JobKey] = set()
        for key, failures in self._failures.items():
            for each in failures.values():
                if each.until is not None and each.until <= now:
                    each.until = None
                    each.why = ""
                    over.add(key)
        return over

    def next_expiry(self) -> float | None:
        """When the next node may be used again, monotonic seconds."""
        each = (e.until for failures in self._failures.values() for e in failures.values())
        return min((until for until in each if until is not None), default=None)

    def forget(self, gone: Callable[[JobKey], bool]) -> None:
        """Forget jobs that are gone."""
        for key in [key for key in self._failures if gone(key)]:
            del self._failures[key]
