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
_OF_TENANTS = "namespace"  # the label of whatever says something of a tenant's work


@dataclass(frozen=True, slots=True)
class _Read:
    """Metrics as they were; in the place of a registry."""

    metrics: tuple[Metric, ...]
    of_tenants: bool

    def collect(self) -> Iterable[Metric]:
        return self.metrics if self.of_tenants else filter(None, map(_public, self.metrics))


def _public(metric: Metric) -> Metric | None:
    """What of it names no tenant's namespace; None: nothing."""
    samples = list(metric.samples)  # walked once: some are made by who walks them
    shown = [sample for sample in samples if _OF_TENANTS not in sample.labels]
    if len(shown) == len(samples):
        return metric
    if not shown:
        return None
    found = Metric(metric.name, metric.documentation, metric.type)
    found.samples = shown
    return found


class Exposition:
    """The text of one registry."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        *,
        of_tenants: bool = True,
    ) -> None:
        """Nothing is read before somebody asks; ``of_tenants``: what names a namespace as well."""
        self._registry = registry
        self._of_tenants = of_tenants
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
            read = _Read(tuple(self._registry.collect()), self._of_tenants)
            return await asyncio.to_thread(generate_latest, read)
        except Exception:
            unexpected("metrics", "/metrics")
            raise  # whoever asked is answered 500, and the next one tries anew


def _failed(made: asyncio.Task[bytes]) -> bool:
    return made.cancelled() or made.exception() is not None
