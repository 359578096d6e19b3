"""The text of ``/metrics``: made at most once a second, and shared by all who ask.

The figures are read on the event loop, where the state may be read; the text is made of that copy
in a thread, which takes five times as long. So the loop is held up by the reading alone, once a
second at most, however many ask.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from gpu_scheduler.kube.unexpected import unexpected

SECONDS = 1.0  # that a text may be old


@dataclass(frozen=True, slots=True)
class _Read:
    """Metrics as they were; in the place of a registry."""

    metrics: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


class Exposition:
    """The text of one registry."""

    def __init__(
        self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is read before somebody asks."""
        self._registry = registry
        self._clock = clock
        self._made: asyncio.Task[bytes] | None = None
        self._at = 0.0

    async def text(self) -> bytes:
        """In the format of Prometheus; whoever asks while it is being made gets the same."""
        made = self._made
        if made is None or (made.done() and (self._old() or _failed(made))):
            self._at = self._clock()
            made = self._made = asyncio.create_task(self._make())
        return await asyncio.shield(made)  # one who goes away must not take it from the others

    def _old(self) -> bool:
        return self._clock() - self._at >= SECONDS

    async def _make(self) -> bytes:
        try:
            read = _Read(tuple(self._registry.collect()))
            return await asyncio.to_thread(generate_latest, read)
        except Exception:
            unexpected("metrics", "/metrics")
            raise  # whoever asked is answered 500, and the next one tries anew


def _failed(made: asyncio.Task[bytes]) -> bool:
    return made.cancelled() or made.exception() is not None
