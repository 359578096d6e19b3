"""However many ask, the figures are read once a second, and their text is made beside the loop.

Whoever asks regularly finds it made.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.web import exposition as module
from gpu_scheduler.web.exposition import KEPT_SECONDS, SECONDS, Exposition


class Figures:
    """A registry that counts how often it is read."""

    def __init__(self) -> None:
        self.reads = 0
        self.now = 100.0
        self.broken = False
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.due: list[float] = []
        self.read, self.expects = asyncio.Event(), asyncio.Event()
        self.begin: Callable[[], None] = lambda: None
        self.exposition = Exposition(self.registry, lambda: self.now, later=self._later)

    def _later(self, seconds: float, do: Callable[[], None]) -> asyncio.TimerHandle:
        self.due.append(self.now + seconds)
        self.expects.set()
        self.begin = do
        return asyncio.get_running_loop().call_later(3600.0, do)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        self.reads += 1
        self.read.set()
        if self.broken:
            raise RuntimeError("unheard of")
        yield GaugeMetricFamily("reads", "So far.", value=self.reads)


async def test_parallel_scrapes_are_one() -> None:
    figures = Figures()
    texts = await asyncio.gather(*(figures.exposition.text() for _ in range(200)))
    assert figures.reads == 1
    assert len(set(map(id, texts))) == 1 and b"reads 1.0\n" in texts[0]


async def test_a_text_is_made_anew_after_a_second_and_not_before() -> None:
    figures = Figures()
    await figures.exposition.text()
    figures.now += SECONDS * 0.99
    assert b"reads 1.0\n" in await figures.exposition.text()
    figures.now += SECONDS * 0.01
    assert b"reads 2.0\n" in await figures.exposition.text()


async def test_figures_are_read_on_the_loop_and_the_text_is_made_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: list[int] = []
    real = module.generate_latest

    def noted(registry: CollectorRegistry) -> bytes:
        where.append(threading.get_ident())
        return real(registry)

    monkeypatch.setattr(module, "generate_latest", noted)
    await Figures().exposition.text()
    assert where and threading.get_ident() not in where


async def test_one_who_goes_away_takes_the_text_from_nobody() -> None:
    figures = Figures()
    asking = [asyncio.create_task(figures.exposition.text()) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1] == found[2] and figures.reads == 1


async def test_what_went_wrong_is_counted_and_tried_anew_by_the_next() -> None:
    figures, before = Figures(), counts["metrics"]
    figures.broken = True
    with pytest.raises(RuntimeError):
        await figures.exposition.text()
    assert counts["metrics"] == before + 1
    figures.broken = False
    assert b"reads 2.0\n" in await figures.exposition.text()


async def test_what_takes_long_is_looked_at_before_the_figures_are_read() -> None:
    figures = Figures()
    order: list[int] = []

    async def look() -> None:
        await asyncio.sleep(0)
        order.append(figures.reads)

    exposition = Exposition(figures.registry, lambda: figures.now, look=look)
    assert b"reads 1.0\n" in await exposition.text()
    assert order == [0]


async def test_who_asks_regularly_finds_a_text_that_was_made_shortly_before() -> None:
    figures = Figures()
    exposition = figures.exposition
    for _ in range(2):
        assert exposition.kept("prometheus") is None
        await exposition.made("prometheus")
        figures.now += 30
    expected = figures.now
    assert figures.reads == 2 and expected - KEPT_SECONDS < figures.due[-1] < expected
    figures.now = figures.due[-1]
    figures.read.clear()
    figures.begin()
    await figures.read.wait()
    text = await exposition.text()
    assert figures.reads == 3 and b"reads 3.0\n" in text
    figures.expects.clear()
    assert exposition.kept("prometheus") is text
    await figures.expects.wait()  # it has been noted, and is expected again
    assert figures.due[-1] > expected


async def test_a_text_that_is_kept_is_young() -> None:
    figures = Figures()
    text = await figures.exposition.made("a")
    figures.now += KEPT_SECONDS * 0.99
    assert figures.exposition.kept("a") == text
    figures.now += KEPT_SECONDS * 0.01
    assert figures.exposition.kept("a") is None


async def test_a_text_that_could_not_be_made_before_is_made_by_who_asks() -> None:
    figures = Figures()
    for _ in range(2):
        await figures.exposition.made("prometheus")
        figures.now += 30
    figures.broken = True
    figures.read.clear()
    figures.begin()
    await figures.read.wait()
    figures.broken = False
    assert figures.exposition.kept("prometheus") is None
    assert b"reads 4.0\n" in await figures.exposition.made("prometheus")


async def test_many_families_are_read_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TURN_SECONDS", 0.0)

    class Many(Figures):
        def collect(self) -> Iterable[Metric]:
            for number in range(5):
                yield GaugeMetricFamily(f"family_{number}", "One.", value=number)

    making = asyncio.create_task(Many().exposition.text())
    turns = 0
    while not making.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5 and (await making).count(b"# TYPE family_") == 5
