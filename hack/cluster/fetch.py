"""Gets programs from their offers, a few at a time, and gives up what takes too long.

A file that is not the pinned one is refused and the program's next offer is tried; what
has no offer left is returned, and `build.py` builds it. A place that does not answer, or
stalls, or is slower than building would be, is away: it is not asked again by this
process. Each program that was fetched gets one line that says from where, and why not
from the places before.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.errors import ClusterError
from cluster.fetch_file import OtherFile, Transfer
from cluster.fetch_listed import ListedDigests, with_listed
from cluster.fetch_offers import DigestFrom, Offer, Ways
from cluster.fetch_url import LIMITS, Away, Limits, NotTaken
from cluster.progress import say

_MEGABYTE = 1_000_000
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program, the file that it becomes, and where it may come from."""

    name: str
    target: Path
    ways: Ways


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program came, or with an empty `way` that it did not, and why."""

    wanted: Wanted
    way: str
    reasons: tuple[str, ...]
    size: int = 0


def fetch(
    wanted: Sequence[Wanted],
    away: dict[str, str],
    limits: Limits = LIMITS,
    memory: ListedDigests | None = None,
) -> list[Outcome]:
    """Fetches what can be fetched; `away` is kept from call to call, by place.

    Raises:
        ClusterError: this machine cannot store what arrives.
    """
    return asyncio.run(_Round(away, limits, memory or ListedDigests()).run(wanted))


@dataclass(slots=True)
class _Place:
    """What is learnt of a place while files are asked of it.

    Attributes:
        answered: it has, once; before that it is asked for one file, not for three.
        wasted_seconds: spent on files that were not taken.
        received: bytes of all its files.
        receiving: how many of its files are coming now.
        samples: time and `received`, as far back as a verdict on its speed needs.
    """

    limits: Limits
    answered: bool = False
    wasted_seconds: float = 0.0
    received: int = 0
    receiving: int = 0
    samples: deque[tuple[float, int]] = field(default_factory=deque)
    _free: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._free.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Lets one in after the other until the place has answered; then all at once."""
        while not self._free.is_set():
            await self._free.wait()
        if not self.answered:
            self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def answers(self) -> None:
        """Lets in who waits for this."""
        self.answered = True
        self._free.set()

    def take(self, size: int) -> None:
        """Counts what has come.

        Raises:
            Away: all files together are slower than building.
        """
        self.answers()
        self.received += size
        now = time.monotonic()
        if not self.samples or now - self.samples[-1][0] >= _SAMPLE_SECONDS:
            self.samples.append((now, self.received))
        slow = self.limits.slow_seconds
        while len(self.samples) > 1 and self.samples[1][0] <= now - slow:
            self.samples.popleft()
        began, before = self.samples[0]
        least = self.limits.slow_bytes_per_second
        if now - began >= slow and self.received - before < least * (now - began):
            raise Away(f"sends less than {least / _MEGABYTE:g} MB a second")


class _Round:
    """One call of `fetch`."""

    def __init__(self, away: dict[str, str], limits: Limits, memory: ListedDigests):
        self._away = away
        self._limits = limits
        self._memory = memory
        self._slots = asyncio.Semaphore(limits.at_once)
        self._places: dict[str, _Place] = {}
        self._running: dict[str, Transfer] = {}

    async def run(self, wanted: Sequence[Wanted]) -> list[Outcome]:
        reports = asyncio.create_task(self._report())
        try:
            return await asyncio.gather(*map(self._get, wanted))
        finally:
            reports.cancel()

    async def _get(self, wanted: Wanted) -> Outcome:
        """Tries one way after the other."""
        reasons: list[str] = []
        for way in wanted.ways:
            if isinstance(way, str):
                reasons.append(way)
                continue
            place = self._places.setdefault(way.way, _Place(self._limits))
            async with place.turn(), self._slots:
                if way.way in self._away:
                    reasons.append(f"{way.way} {self._away[way.way]}")
                    continue
                began = time.monotonic()
                try:
                    size = await self._transfer(wanted, way, place)
                except NotTaken as error:
                    reasons.append(f"{way.way} {error}{self._way_out(way, error)}")
                    self._refuse(way.way, place, error, time.monotonic() - began)
                    continue
                except OSError as error:
                    raise _cannot_store(wanted.target, error) from None
            why = f", since {' and '.join(reasons)}" if reasons else ""
            if way.list:
                why += f"; it has the digest that {way.way} lists, and has to have it from now on"
            seconds = time.monotonic() - began
            say(
                f"{wanted.name}: from {way.way} ({size / _MEGABYTE:.1f} MB in {seconds:.1f} s){why}"
            )
            return Outcome(wanted, way.way, tuple(reasons), size)
        return Outcome(wanted, "", tuple(reasons))

    async def _transfer(self, wanted: Wanted, offer: Offer, place: _Place) -> int:
        """The size of the file that came, and now is the program."""
        target = wanted.target
        partial = target.with_name(f".{target.name}.partial")
        target.parent.mkdir(parents=True, exist_ok=True)
        if offer.list:
            offer = await with_listed(offer, self._limits)
        transfer = self._running[wanted.name] = Transfer(offer, partial)
        if not place.receiving:
            place.samples.clear()
        place.receiving += 1
        try:
            await transfer.run(self._limits, place.take)
            partial.chmod(0o755)
            if offer.list and transfer.digest and not isinstance(offer.place, Path):
                self._memory.add(offer.place, transfer.digest)
            partial.rename(target)
        finally:
            place.receiving -= 1
            del self._running[wanted.name]
            partial.unlink(missing_ok=True)
        return transfer.received

    def _way_out(self, way: Offer, error: NotTaken) -> str:
        """What who knows better may do, where a file is refused for what is remembered."""
        if way.known is not DigestFrom.REMEMBERED or not isinstance(error, OtherFile):
            return ""
        return f"; where that is meant, delete {self._memory.path}"

    def _refuse(self, way: str, place: _Place, error: NotTaken, seconds: float) -> None:
        place.wasted_seconds += seconds
        if isinstance(error, Away):
            self._away.setdefault(way, str(error))
            return
        place.answers()
        if place.wasted_seconds > self._limits.wasted_seconds:
            wasted = f"has taken {place.wasted_seconds:.0f} s and given no right file"
            self._away.setdefault(way, wasted)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._limits.report_seconds)
            parts = []
            for name, transfer in self._running.items():
                received, total = transfer.received / _MEGABYTE, transfer.total / _MEGABYTE
                of = f"{received:.0f} of {total:.0f} MB" if total else f"{received:.0f} MB"
                parts.append(f"{name}: {of if received else 'asking ' + transfer.offer.way}")
            if parts:
                say(", ".join(parts))


def _cannot_store(target: Path, error: OSError) -> ClusterError:
    return ClusterError(
        f"{target.parent} cannot be written ({error.strerror or error}): free some room, or "
        f"move everything with GPU_SCHEDULER_CACHE"
    )
