"""Applies many jobs as fast as the API server takes them.

A bounded number of requests is in flight, over connections that stay open. The answer of each is
timed, for figures are counted from the last one. Called by the scenes of ``queues``.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client

IN_FLIGHT = 32


@dataclass(frozen=True, slots=True)
class Applied:
    """When what was answered, in monotonic seconds.

    Attributes:
        began: when the first request was sent.
        answered: by name of the job.
    """

    began: float
    answered: dict[str, float]

    @property
    def last(self) -> float:
        """When the last one was answered."""
        return max(self.answered.values())

    def to_json(self) -> dict[str, float]:
        """How fast they were taken."""
        seconds = self.last - self.began
        return {
            "jobs": len(self.answered),
            "seconds": round(seconds, 2),
            "jobs_per_second": round(len(self.answered) / seconds, 1),
        }


async def apply(client: Client, jobs: Iterable[tuple[str, Any]]) -> Applied:
    """Create all of them; each has a path and a body with a name of its own.

    Raises:
        ApiError: one was refused, or not answered; the others are given up.
    """
    left, answered, began = iter(jobs), dict[str, float](), time.monotonic()
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(IN_FLIGHT):
                tasks.create_task(_work(client, left, answered))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return Applied(began, answered)


async def _work(client: Client, left: Iterator[tuple[str, Any]], into: dict[str, float]) -> None:
    for path, body in left:
        try:
            await client.create(path, orjson.dumps(body))
        except errors.Conflict as error:
            if not error.maybe_applied:  # else an attempt of ours whose answer was lost
                raise
        into[body["metadata"]["name"]] = time.monotonic()
