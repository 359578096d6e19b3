"""One phase: an operator of its own, work that turns over, and what that cost.

First the operator comes to rest, then cost is measured while Prometheus scrapes as seldom as it
does, and at the end it is scraped as often as it makes a new text.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.perf.install import pids, say
from tests.perf.procfs import busy_seconds, cpu_by_name, memory
from tests.perf.queue_stand import used_since
from tests.perf.schedulers import check_alive
from tests.perf.signals import figures, scrapes, stored
from tests.perf.signals.load import PodEyes, Turnover
from tests.perf.signals.scrapes import Scrape, ScrapeError, scrape
from tests.perf.signals.size import Size
from tests.perf.signals.stand import AgentsProgram, OperatorStand

from cluster import Running

_PROMETHEUS_SECONDS = 30.0
_SEEN_SECONDS = 1.0  # after which all has been heard of that ended while a scrape was answered
_LOOK_SECONDS = 0.5
_NEW_TEXT_SECONDS = 1.05
_RING_SECONDS = 0.06  # a ring that a scrape held up comes at most so long after it
_REST_SECONDS = 20.0
_TRIES = 5
_TOLD = 0.95  # of what runs, that agents know at least


@dataclass(frozen=True, slots=True)
class Bench:
    """What all phases share.

    Attributes:
        running: the cluster.
        size: of the run.
        operators: starts them.
        agents: answer them.
        turnover: the work that ends and comes.
        pods: where it is.
        usages: what is written of it.
        began: of the agents' clock.
    """

    running: Running
    size: Size
    operators: OperatorStand
    agents: AgentsProgram
    turnover: Turnover
    pods: PodEyes
    usages: stored.UsageEyes
    began: float

    async def rest(self, seconds: float) -> None:
        """Let time go by, as long as all that was started lives."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            check_alive(self.running)
            self.agents.check()
            await asyncio.sleep(min(left, _LOOK_SECONDS))


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything that is counted, at one moment."""

    at: float
    cpu: dict[str, float]
    etcd: dict[str, float]
    metrics: Scrape
    ended: int


async def _look(bench: Bench) -> _Look:
    metrics = await _answered(bench)
    counted = await asyncio.to_thread(stored.etcd, bench.running.state.ports.etcd)
    cpu = {**cpu_by_name(pids(bench.running)), "machine": busy_seconds()}
    return _Look(time.monotonic(), cpu, counted, metrics, bench.turnover.ended)


async def _answered(bench: Bench) -> Scrape:
    """A scrape; one that is not answered is made again."""
    for _ in range(_TRIES):
        try:
            return await scrape(bench.operators.admin_port)
        except ScrapeError as error:
            say(f"  {error}")
            await bench.rest(_LOOK_SECONDS)
    return await scrape(bench.operators.admin_port)


async def phase(bench: Bench, letter: str, number: int) -> dict[str, Any]:
    """Play it; ``letter``: see ``Size.order``."""
    say(f"phase {number}: {letter}")
    await bench.agents.command("faults" if letter == "C" else "honest")
    await bench.operators.start(f"phase-{number}", signals=letter != "A")
    async with beside(bench.turnover.run()):
        await bench.rest(bench.size.settle_seconds)
        told = await bench.agents.command("faults" if letter == "C" else "honest")
        if int(str(told["shares"])) < _TOLD * len(bench.pods.running):
            raise RuntimeError(f"agents were not told all that runs: {told}")
        async with beside(_prometheus(bench)):
            before = await _look(bench)
            await bench.rest(bench.size.seconds)
            after = await _look(bench)
        agents = await bench.agents.command("faults" if letter == "C" else "honest")
        rss = memory(bench.operators.pid)
        begin = time.monotonic()
        made, ages, failed = await _scrapes(bench)
        end = time.monotonic()
    await bench.operators.stop()
    notes = figures.notes_of(await asyncio.to_thread(bench.operators.notes.read_text))
    seconds, measured = after.at - before.at, notes.between(before.at, after.at)
    found = {
        "phase": letter,
        "seconds": round(seconds, 1),
        **_cost(bench, before, after),
        "rssMiB": round(rss.rss_mib, 1),
        "peakRssMiB": round(rss.peak_rss_mib, 1),
        "planning": figures.planning(measured, seconds),
        "stall": figures.lateness(measured),
        "stallBesidePlanning": figures.lateness(measured.beside_planning()),
        "agents": agents,
        "metrics": {
            **scrapes.summary(made, ages, failed),
            "stall": figures.lateness(notes.between(begin, end)),
            "stallBesidePlanning": figures.lateness(notes.between(begin, end).beside_planning()),
            "stallWhileMade": figures.milliseconds(
                notes.late_within([(each.began, each.ended) for each in made], _RING_SECONDS)
            ),
        },
    }
    await bench.rest(min(_REST_SECONDS, bench.size.seconds / 2))
    return found


def _cost(bench: Bench, before: _Look, after: _Look) -> dict[str, Any]:
    """What was counted between two looks."""
    seconds, size = after.at - before.at, bench.size
    used = used_since(before.cpu, after.cpu)
    written = bench.usages.between(before.at, after.at)
    bound = sum(before.at <= at < after.at for at in bench.pods.bindings)
    texts = before.metrics.text, after.metrics.text

    def more(metric: str) -> float:
        return figures.total(texts[1], metric) - figures.total(texts[0], metric)

    growth = {name: after.etcd[name] - before.etcd[name] for name in after.etcd}
    return {
        "jobsEndedASecond": round((after.ended - before.ended) / seconds, 2),
        "podsPlacedASecond": round(bound / seconds, 2),
        "running": len(bench.pods.running),
        "evicted": more("gpusched_preemptions_total"),
        "cpuSecondsAMinute": {name: figures.a_minute(cpu, seconds) for name, cpu in used.items()},
        "operatorRequestsAMinute": figures.a_minute(more("gpusched_api_requests_total"), seconds),
        "cycle": figures.histogram(*texts, "gpusched_scheduling_cycle_seconds"),
        "collector": figures.histogram(*texts, "gpusched_gc_pause_seconds"),
        "gpuUsage": {
            "writesAMinute": figures.a_minute(len(written), seconds),
            "bytesAMinute": figures.a_minute(sum(size for _, size in written), seconds),
            "largestBytes": max((size for _, size in written), default=0),
            "namespaces": size.namespaces,
        },
        "etcd": {f"{name}AMinute": figures.a_minute(each, seconds) for name, each in growth.items()}
        | {"dbBytes": after.etcd["dbBytes"]},
    }


async def _scrapes(bench: Bench) -> tuple[list[Scrape], list[scrapes.Age], int]:
    """One after the other, each of a text of its own; and how many were not answered."""
    made: list[Scrape] = []
    ages: list[scrapes.Age] = []
    failed = 0
    for _ in range(bench.size.scrapes):
        works = bench.pods.works()
        try:
            found = await scrape(bench.operators.admin_port)
        except ScrapeError as error:
            say(f"  {error}")
            failed += 1
            continue
        await asyncio.sleep(_SEEN_SECONDS)
        age = scrapes.age_of(found, bench.pods.still(works), bench.began)
        ages += [age] if age is not None else []
        made.append(Scrape(found.began, found.ended, found.text))
        if len(made) > 1:  # texts of megabytes: the last one is enough
            made[-2] = Scrape(made[-2].began, made[-2].ended, "")
        await bench.rest(max(0.0, _NEW_TEXT_SECONDS - found.seconds))
    return made, ages, failed


async def _prometheus(bench: Bench) -> None:
    while True:
        await asyncio.sleep(_PROMETHEUS_SECONDS)
        await _answered(bench)


@asynccontextmanager
async def beside(work: Any) -> AsyncIterator[None]:
    """Runs meanwhile; what it raises is raised at the end."""
    task = asyncio.create_task(work)
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
