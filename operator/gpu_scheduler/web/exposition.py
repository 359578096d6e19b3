"""The text of ``/metrics``: made at most once a second, and shared by all who ask.

What takes long is looked at first, in pieces. Then the figures are read on the event loop, where
the state may be read; the text is made of that copy in a thread, which takes five times as long. So
the loop is held up by the reading alone, once a second at most, however many ask.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.shared_look import SharedLook

SECONDS = 1.0  # that a text may be old
_OF_TENANTS = frozenset({"namespace", "project"})  # labels of what says something of a tenant


@dataclass(frozen=True, slots=True)
class _Read:
    """Metrics as they were; in the place of a registry."""

    metrics: tuple[Metric, ...]
    of_tenants: bool

    def collect(self) -> Iterable[Metric]:
        return self.metrics if self.of_tenants else filter(None, map(_public, self.metrics))


def _public(metric: Metric) -> Metric | None:
    """What of it names no tenant; None: nothing."""
    samples = list(metric.samples)  # walked once: some are made by who walks them
    shown = [sample for sample in samples if _OF_TENANTS.isdisjoint(sample.labels)]
    if len(shown) == len(samples):
        return metric
    if not shown:
        return None
    found = Metric(metric.name, metric.documentation, metric.type)
    found.samples = shown
    return found


async def nothing() -> None:
    """There is nothing to look at first."""


class Exposition:
    """The text of one registry."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        *,
        of_tenants: bool = True,
        look: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        """Nothing is read before somebody asks.

        Args:
            registry: whose text.
            clock: monotonic seconds.
            of_tenants: what names a tenant as well: a namespace, a project.
            look: comes before the figures are read.
        """
        self._registry = registry
        self._of_tenants = of_tenants
        self._look = look
        self.text = SharedLook(self._make, SECONDS, clock)
        """In the format of Prometheus."""

    async def _make(self) -> bytes:
        try:
            await self._look()
            read = _Read(tuple(self._registry.collect()), self._of_tenants)
            return await asyncio.to_thread(generate_latest, read)
        except Exception:
            unexpected("metrics", "/metrics")
            raise  # whoever asked is answered 500, and the next one tries anew
