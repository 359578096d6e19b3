"""Gets programs from their offers, a few at a time, and gives up what takes too long.

A file that is not the pinned one is refused and the program's next offer is tried; what
has no offer left is returned, and `build.py` builds it. A place that does not answer, or
stalls, or is slower than building would be, is away: it is not asked again by this
process. Each program that was fetched gets one line that says from where, and why not
from the places before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from cluster.errors import ClusterError
from cluster.fetch_file import ASKING, CONNECTING, RECEIVING, Transfer
from cluster.fetch_offers import Offer, Ways
from cluster.fetch_url import Away, NotTaken
from cluster.progress import say

_MEGABYTE = 1_000_000
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """When a place counts as away, and how much is done at once.

    Building everything compiles at about half a megabyte a second on two cores, so a place
    that is slower than that is not worth waiting for.
    """

    connect_seconds: float = 5.0
    answer_seconds: float = 15.0
    stall_seconds: float = 10.0
    slow_seconds: float = 15.0
    slow_bytes_per_second: float = 500_000.0
    wasted_seconds: float = 60.0
    report_seconds: float = 3.0
    at_once: int = 3


LIMITS = Limits()


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


@dataclass(slots=True)
class _Job:
    """A program that is still to come: what is left to try, and why the rest was not taken."""

    wanted: Wanted
    ways: deque[Offer | str]
    reasons: list[str] = field(default_factory=list)
    tried: int = 0


@dataclass(frozen=True, slots=True)
class _Running:
    job: _Job
    offer: Offer
    transfer: Transfer
    began: float


def fetch(
    wanted: Sequence[Wanted],
    away: dict[str, str],
    limits: Limits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Fetches what can be fetched; `away` is kept from call to call, by place.

    Raises:
        ClusterError: this machine cannot store what arrives.
    """
    return _Round(away, limits, clock).run(wanted)


class _Round:
    """One call of `fetch`. The calling thread decides; `Transfer`s only read and write."""

    def __init__(self, away: dict[str, str], limits: Limits, clock: Callable[[], float]):
        self._away, self._limits, self._clock = away, limits, clock
        self._wake = Event()
        self._waiting: deque[_Job] = deque()
        self._running: list[_Running] = []
        self._outcomes: list[Outcome] = []
        # Places that have answered; another is asked for one file first, not for three.
        self._answered: set[str] = set()
        self._wasted: dict[str, float] = {}
        self._slow: dict[str, str] = {}
        # By place: (time, bytes of all its files so far), as far back as a verdict needs.
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        self._done_bytes: dict[str, int] = {}

    def run(self, wanted: Iterable[Wanted]) -> list[Outcome]:
        self._waiting.extend(_Job(each, deque(each.ways)) for each in wanted)
        reported = self._clock()
        try:
            while self._waiting or self._running:
                self._waiting = deque(job for job in self._waiting if not self._start(job))
                if self._running:
                    self._wake.wait(_LOOK_SECONDS)
                    self._wake.clear()
                for running in list(self._running):
                    self._look(running)
                self._look_at_rates()
                if self._clock() - reported >= self._limits.report_seconds:
                    reported = self._clock()
                    self._report()
        finally:
            for running in self._running:
                running.transfer.give_up()
        return self._outcomes

    def _start(self, job: _Job) -> bool:
        """Whether `job` has been dealt with: it runs now, or nothing is left to try."""
        offer = self._next_offer(job)
        if offer is None:
            self._outcomes.append(Outcome(job.wanted, "", tuple(job.reasons)))
            return True
        if len(self._running) >= self._limits.at_once:
            return False
        if offer.way not in self._answered and any(
            running.offer.way == offer.way for running in self._running
        ):
            return False
        job.ways.popleft()
        job.tried += 1
        try:
            transfer = Transfer(
                offer,
                _fresh_partial(job.wanted.target, job.tried),
                # Later than any verdict: it ends threads that were given up.
                timeout_seconds=self._limits.answer_seconds + self._limits.stall_seconds,
                on_change=self._wake.set,
                clock=self._clock,
            )
        except OSError as error:
            raise _cannot_store(job.wanted.target, error) from None
        self._running.append(_Running(job, offer, transfer, self._clock()))
        transfer.start()
        return True

    def _next_offer(self, job: _Job) -> Offer | None:
        """The first of `job.ways` that can be asked; the others become reasons."""
        while job.ways:
            way = job.ways[0]
            if isinstance(way, str):
                job.reasons.append(way)
            elif way.way in self._away:
                job.reasons.append(f"{way.way} {self._away[way.way]}")
            else:
                return way
            job.ways.popleft()
        return None

    def _look(self, running: _Running) -> None:
        transfer = running.transfer
        if not transfer.ended.is_set():
            if transfer.phase not in (CONNECTING, ASKING):
                self._answered.add(running.offer.way)
            verdict = self._verdict(running)
            if verdict:
                self._refuse(running, Away(verdict))
        elif transfer.error is None:
            self._take(running)
        elif isinstance(transfer.error, NotTaken):
            self._refuse(running, transfer.error)
        elif isinstance(transfer.error, OSError):
            raise _cannot_store(running.job.wanted.target, transfer.error)
        else:
            raise transfer.error

    def _verdict(self, running: _Running) -> str:
        """Why this transfer is not waited for any longer; empty while it is."""
        transfer, limits, now = running.transfer, self._limits, self._clock()
        phase, quiet = transfer.phase, now - transfer.since
        if phase == CONNECTING and quiet > limits.connect_seconds:
            return f"does not answer (no connection within {limits.connect_seconds:g} s)"
        if phase in (CONNECTING, ASKING) and now - running.began > limits.answer_seconds:
            return f"gives no answer within {limits.answer_seconds:g} s"
        if phase == RECEIVING and quiet > limits.stall_seconds:
            return f"stopped sending for {limits.stall_seconds:g} s"
        return self._slow.get(running.offer.way, "")

    def _look_at_rates(self) -> None:
        """Notes places that are, over all their files together, slower than building."""
        limits, now = self._limits, self._clock()
        received = {
            running.offer.way: self._done_bytes.get(running.offer.way, 0)
            for running in self._running
            if running.transfer.phase == RECEIVING
        }
        for running in self._running:
            if running.offer.way in received:
                received[running.offer.way] += running.transfer.received
        self._samples = {way: each for way, each in self._samples.items() if way in received}
        for way, total in received.items():
            samples = self._samples.setdefault(way, deque())
            samples.append((now, total))
            while len(samples) > 1 and samples[1][0] <= now - limits.slow_seconds:
                samples.popleft()
            began, before = samples[0]
            if now - began < limits.slow_seconds:
                continue
            if total - before < limits.slow_bytes_per_second * (now - began):
                least = limits.slow_bytes_per_second / _MEGABYTE
                self._slow[way] = f"sends less than {least:g} MB a second"

    def _take(self, running: _Running) -> None:
        job, way, transfer = running.job, running.offer.way, running.transfer
        target = job.wanted.target
        try:
            transfer.partial.chmod(0o755)
            transfer.partial.rename(target)
        except OSError as error:
            raise _cannot_store(target, error) from None
        self._end(running)
        self._answered.add(way)
        why = f", since {' and '.join(job.reasons)}" if job.reasons else ""
        size, seconds = transfer.received / _MEGABYTE, self._clock() - running.began
        say(f"{job.wanted.name}: from {way} ({size:.1f} MB in {seconds:.1f} s){why}")
        self._outcomes.append(Outcome(job.wanted, way, tuple(job.reasons), transfer.received))

    def _refuse(self, running: _Running, error: NotTaken) -> None:
        way = running.offer.way
        running.transfer.give_up()
        self._end(running)
        wasted = self._wasted.get(way, 0.0) + self._clock() - running.began
        self._wasted[way] = wasted
        if isinstance(error, Away):
            self._away.setdefault(way, str(error))
        else:
            self._answered.add(way)
            if wasted > self._limits.wasted_seconds:
                self._away.setdefault(way, f"has taken {wasted:.0f} s and given no right file")
        running.job.reasons.append(f"{way} {error}")
        self._waiting.appendleft(running.job)

    def _end(self, running: _Running) -> None:
        way = running.offer.way
        self._done_bytes[way] = self._done_bytes.get(way, 0) + running.transfer.received
        self._running.remove(running)

    def _report(self) -> None:
        parts = []
        for running in self._running:
            transfer = running.transfer
            received, total = transfer.received / _MEGABYTE, transfer.total / _MEGABYTE
            of = f"{received:.0f} of {total:.0f} MB" if total else f"{received:.0f} MB"
            parts.append(
                f"{running.job.wanted.name}: {of if received else 'asking ' + running.offer.way}"
            )
        if parts:
            say(", ".join(parts))


def _fresh_partial(target: Path, number: int) -> Path:
    """A name beside `target` for what arrives; leftovers of a killed run are deleted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob(f".{target.name}.partial*"):
        leftover.unlink(missing_ok=True)
    return target.with_name(f".{target.name}.partial-{number}")


def _cannot_store(target: Path, error: OSError) -> ClusterError:
    return ClusterError(
        f"{target.parent} cannot be written ({error.strerror or error}): free some room, or "
        f"move everything with GPU_SCHEDULER_CACHE"
    )
