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
from gpu_scheduler.web.work_samples import samples_of_work

SECONDS = 1.0  # that a text may be old
_OF_TENANTS = frozenset({"namespace", "project"})  # labels of what says something of a tenant


@dataclass(frozen=True, slots=True)
class _Read:
    """Metrics as they were; in the place of a registry."""

    metrics: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def _public(metric: Metric) -> Metric | None:
    """What of it names no tenant; None: nothing."""
    if samples_of_work(metric) is not None:
        return None
    samples = metric.samples
    shown = [sample for sample in samples if _OF_TENANTS.isdisjoint(sample.labels)]
    if len(shown) == len(samples):
        return metric
    if not shown:
        return None
    found = Metric(metric.name, metric.documentation, metric.type)
    found.samples = shown
    return found


def _text(metrics: Iterable[Metric]) -> bytes:
    """In the format of Prometheus; samples that write themselves do so."""
    found = []
    for metric in metrics:
        own = samples_of_work(metric)
        if own is not None:
            metric = Metric(metric.name, metric.documentation, metric.type)
        found.append(generate_latest(_Read((metric,))))
        if own is not None:
            found.append(own.text().encode())
    return b"".join(found)


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
            read = tuple(self._registry.collect())
            return await asyncio.to_thread(self._written, read)
        except Exception:
            unexpected("metrics", "/metrics")
            raise  # whoever asked is answered 500, and the next one tries anew

    def _written(self, read: tuple[Metric, ...]) -> bytes:
        return _text(read if self._of_tenants else filter(None, map(_public, read)))
