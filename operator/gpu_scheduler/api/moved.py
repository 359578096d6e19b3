"""When the pods of a Job last had to move (consolidation): annotations on the Job, one per index.

Written before the pod is evicted, so that no leader forgets it. A mark names the pod that had to
go: while that one is still there, it has not moved. Written by ``jobs.evict``, read by the state.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gpu_scheduler.api.names import MOVED_PREFIX
from gpu_scheduler.api.numbers import number
from gpu_scheduler.core.model.request import PodUID

NEVER: Mapping[int, "Mark"] = {}
MOST = 128  # moves of a Job that are known, the latest
_MOST_CHARS = 64  # of a uid


class Mark(NamedTuple):
    """A move: when it was decided, epoch seconds, and of which pod."""

    at: float
    pod: PodUID


def annotation(index: int) -> str:
    """The key under which the move of an index stands."""
    return f"{MOVED_PREFIX}{index}"


def text(time: str, pod: PodUID) -> str:
    """A mark as it is written; ``time``: RFC 3339."""
    return f"{time} {pod}"


def marks(annotations: Mapping[str, str]) -> Mapping[int, Mark]:
    """The moves that a Job's annotations tell of; what cannot be read was never written by us."""
    keys = [key for key in annotations if key.startswith(MOVED_PREFIX)]
    if not keys:
        return NEVER
    read = ((number(key.removeprefix(MOVED_PREFIX)), _mark(annotations[key])) for key in keys)
    known = {i: mark for i, mark in read if i is not None and mark is not None}
    if len(known) <= MOST:
        return known
    return dict(sorted(known.items(), key=lambda each: each[1].at)[-MOST:])


def _mark(value: str) -> Mark | None:
    time, _, pod = value.partition(" ")
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    if at.tzinfo is None or len(pod) > _MOST_CHARS:
        return None
    return Mark(at.timestamp(), PodUID(pod))
