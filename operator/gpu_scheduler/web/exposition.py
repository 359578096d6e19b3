"""The text of ``/metrics``: made at most once a second, and shared by all who ask.

What takes long is looked at first, in pieces. Then the figures are read on the event loop, where
the state may be read, family by family; the text is made of that copy in a thread, which takes five
times as long. So the loop is held up by the reading alone, once a second at most, however many ask.
Whoever asks regularly finds the text made: it is begun shortly before they come (``foreseen``).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.web.foreseen import Foreseen
from gpu_scheduler.web.work_samples import samples_of_work

SECONDS = 1.0  # that a text may be old for whoever waits for it
KEPT_SECONDS = 1.5  # for whoever does not: what it is made of may be half a second older
_MARGIN_SECONDS = 0.3  # between the end of a text and who is expected
_TURN_SECONDS = 0.002  # of the loop, for figures
_OF_TENANTS = frozenset({"namespace", "project"})  # labels of what says something of a tenant


@dataclass(frozen=True, slots=True)
class _Read:
    """Metrics as they were; in the place of a registry."""

    metrics: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


@dataclass(frozen=True, slots=True)
class _Kept:
    """A text, and when and where it was begun."""

    loop: asyncio.AbstractEventLoop
    began: float
    text: bytes


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


def later(seconds: float, do: Callable[[], None]) -> asyncio.TimerHandle:
    """Done by the running loop."""
    return asyncio.get_running_loop().call_later(seconds, do)


class Exposition:
    """The text of one registry."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        *,
        of_tenants: bool = True,
        look: Callable[[], Awaitable[None]] = nothing,
        later: Callable[[float, Callable[[], None]], asyncio.TimerHandle] = later,
    ) -> None:
        """Nothing is read before somebody asks.

        Args:
            registry: whose text.
            clock: monotonic seconds.
            of_tenants: what names a tenant as well: a namespace, a project.
            look: comes before the figures are read.
            later: has something done in so many seconds.
        """
        self._later = later
        self._registry = registry
        self._of_tenants = of_tenants
        self._look = look
        self._clock = clock
        self._kept: _Kept | None = None  # another thread reads it
        self._took = 0.0
        self._foreseen = Foreseen()
        self._timer: asyncio.TimerHandle | None = None
        self._ahead: asyncio.Task[None] | None = None
        self.text = SharedLook(self._make, SECONDS, clock)
        """In the format of Prometheus."""

    def kept(self, reader: str) -> bytes | None:
        """A text that is young enough; None: it has to be made. From any thread.

        ``reader``: the same for all that the same one reads.
        """
        kept, now = self._kept, self._clock()
        if kept is None or now - kept.began >= KEPT_SECONDS:
            return None
        kept.loop.call_soon_threadsafe(self._read_by, reader, now)
        return kept.text

    async def made(self, reader: str) -> bytes:
        """A text, on the event loop; see ``kept``."""
        self._read_by(reader, self._clock())
        return await self.text()

    def _read_by(self, reader: str, now: float) -> None:
        self._foreseen.read(reader, now)
        self._expect()

    def _expect(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        # Longer before would be too old when they come.
        lead = min(self._took + _MARGIN_SECONDS, KEPT_SECONDS - _MARGIN_SECONDS)
        due = self._foreseen.next(now + lead)
        if due is not None:
            self._timer = self._later(due - lead - now, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._ahead is None or self._ahead.done():
            self._ahead = asyncio.create_task(self._make_ahead(), name="metrics")

    async def _make_ahead(self) -> None:
        with suppress(Exception):  # it has been noted, and whoever comes is told
            await self.text()
        self._expect()

    async def _make(self) -> bytes:
        began = self._clock()
        try:
            await self._look()
            read = await self._read()
            text = await asyncio.to_thread(self._written, read)
        except Exception:
            unexpected("metrics", "/metrics")
            raise  # whoever asked is answered 500, and the next one tries anew
        self._took = self._clock() - began
        self._kept = _Kept(asyncio.get_running_loop(), began, text)
        return text

    async def _read(self) -> tuple[Metric, ...]:
        """The figures; each family is of one moment."""
        found: list[Metric] = []
        turn = time.perf_counter()
        for metric in self._registry.collect():
            found.append(metric)
            if time.perf_counter() - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.perf_counter()
        return tuple(found)

    def _written(self, read: tuple[Metric, ...]) -> bytes:
        return _text(read if self._of_tenants else filter(None, map(_public, read)))
