"""GPUs over time, of the cluster and of each project.

An hour in steps of ten seconds, and a week in steps of ten minutes. Steps are numbered from the
epoch, so what another leader kept goes on where it ended; what nobody saw is a gap. Pure; a serial
form of all of it fits into one object.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

SERIES = ("gpus", "held", "busy", "idle", "waiting", "borrowed")
CLUSTER = ""  # the name of the whole
VERSION = 1
MOST_CHARTS = 501
MOST_BYTES = 600 << 10  # of the serial form
_MOST_RAW = 64 << 20  # of what it unpacks to
_CENTI = 100  # kept as hundredths of a GPU
_UNKNOWN = -1

Figures = Mapping[str, float | None]


class BadChartsError(ValueError):
    """What was kept is no serial form of ours."""


@dataclass(slots=True)
class _Ring:
    """The last ``points`` steps; ``last``: the number of the newest, -1: there is none."""

    seconds: int
    points: int
    last: int = -1
    looks: int = 0  # in the newest step
    values: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.full((len(SERIES), self.points), np.nan, np.float32)

    def add(self, at: float, figures: Figures) -> None:
        """One look: a step is the mean of its looks. One of the past is left out."""
        step = int(at // self.seconds)
        if step < self.last:
            return
        self._go_to(step)
        self.looks += 1
        place = step % self.points
        for row, name in enumerate(SERIES):
            value = figures.get(name)
            if value is None:
                continue
            before = self.values[row, place]
            known = not np.isnan(before)
            self.values[row, place] = before + (value - before) / self.looks if known else value

    def _go_to(self, step: int) -> None:
        if step == self.last:
            return
        gone = min(step - self.last, self.points) if self.last >= 0 else self.points
        for each in range(step - gone + 1, step + 1):
            self.values[:, each % self.points] = np.nan
        self.last = step
        self.looks = 0

    def restore(self, kept: bytes, number: int, last: int, looks: int) -> None:
        """Take over what ``_packed`` made of ring ``number``; it is left out where that was."""
        size = 4 * self.values.size
        part = kept[number * size : (number + 1) * size]
        if len(part) != size or last < 0:
            return
        steps = np.frombuffer(part, "<i4").reshape(self.values.shape)
        centi = np.cumsum(steps, axis=-1, dtype=np.int64)
        self.values = np.where(centi < 0, np.nan, centi / _CENTI).astype(np.float32)
        self.last = last
        self.looks = max(looks, 1)

    def window(self, until: float, points: int) -> tuple[float, NDArray[np.float32]]:
        """The last ``points`` steps before ``until``, and when the first of them began."""
        end = int(until // self.seconds)
        steps = np.arange(end - points + 1, end + 1)
        found = self.values[:, steps % self.points].copy()
        found[:, (steps > self.last) | (steps <= self.last - self.points)] = np.nan
        return float(steps[0] * self.seconds), found

    def since(self, row: int, until: float) -> float | None:
        """Since when a series is above 0 without a break; None: it is not now."""
        start, values = self.window(until, self.points)
        above = values[row] > 0
        if not above[-2:].any():  # the step that has just begun may have no look yet
            return None
        last = len(above) - 1 if above[-1] else len(above) - 2
        breaks = np.flatnonzero(~above[: last + 1])
        first = int(breaks[-1]) + 1 if len(breaks) else 0
        return start + first * self.seconds


@dataclass(slots=True)
class Chart:
    """Of the cluster, or of one project."""

    fine: _Ring = field(default_factory=lambda: _Ring(10, 360))
    coarse: _Ring = field(default_factory=lambda: _Ring(600, 1008))

    @property
    def rings(self) -> tuple[_Ring, _Ring]:
        """Both."""
        return self.fine, self.coarse

    def add(self, at: float, figures: Figures) -> None:
        """One look; ``at``: epoch seconds; None: not known."""
        for ring in self.rings:
            ring.add(at, figures)

    def since(self, name: str, until: float) -> float | None:
        """Since when a series is above 0 without a break, to a step; None: it is not now."""
        row = SERIES.index(name)
        fine = self.fine.since(row, until)
        if fine is None or fine > until - (self.fine.points - 1) * self.fine.seconds:
            return fine
        coarse = self.coarse.since(row, until)
        return min(fine, coarse) if coarse is not None else fine


class _Saved(msgspec.Struct, frozen=True):
    v: int
    names: list[str]
    last: list[tuple[int, int]]  # of both rings, by chart
    looks: list[tuple[int, int]]
    fine: bytes
    coarse: bytes


class Charts:
    """All of them, by name."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.by_name: dict[str, Chart] = {}

    def add(self, at: float, figures: Mapping[str, Figures]) -> None:
        """One look at all."""
        for name, each in figures.items():
            chart = self.by_name.get(name)
            if chart is None:
                if len(self.by_name) >= MOST_CHARTS:
                    continue
                chart = self.by_name[name] = Chart()
            chart.add(at, each)

    def forget(self, at: float) -> None:
        """Those of which there was no look for a week."""
        old = [
            name
            for name, chart in self.by_name.items()
            if at // chart.coarse.seconds - chart.coarse.last > chart.coarse.points
        ]
        for name in old:
            del self.by_name[name]

    def dumps(self) -> bytes:
        """A serial form; without the hour of some where it would be too large."""
        names = sorted(self.by_name)  # the cluster's is the first
        alone = names[:1] if CLUSTER in self.by_name else []
        body = self._dumps(names, names)
        if len(body) > MOST_BYTES:
            body = self._dumps(names, alone)
        return body if len(body) <= MOST_BYTES else self._dumps(alone, alone)

    def _dumps(self, names: list[str], whole: list[str]) -> bytes:
        charts = [self.by_name[name] for name in names]
        saved = _Saved(
            VERSION,
            names,
            [(c.fine.last, c.coarse.last) for c in charts],
            [(c.fine.looks, c.coarse.looks) for c in charts],
            _packed([self.by_name[name].fine for name in whole]),
            _packed([c.coarse for c in charts]),
        )
        return zlib.compress(msgspec.msgpack.encode(saved), 6)

    @classmethod
    def loads(cls, body: bytes) -> "Charts":
        """What was kept.

        Raises:
            BadChartsError: it is none of ours.
        """
        try:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(body, _MOST_RAW)
            if unpacker.unconsumed_tail:
                raise BadChartsError("it unpacks to too much")
            saved = msgspec.msgpack.decode(raw, type=_Saved)
        except (zlib.error, msgspec.DecodeError) as error:
            raise BadChartsError(str(error)) from None
        count = len(saved.names)
        if saved.v != VERSION or not count == len(saved.last) == len(saved.looks) <= MOST_CHARTS:
            raise BadChartsError(f"version {saved.v}, expected {VERSION}")
        found = cls()
        for number, name in enumerate(saved.names):
            chart = found.by_name[name] = Chart()
            for which, ring in enumerate(chart.rings):
                kept = (saved.fine, saved.coarse)[which]
                ring.restore(kept, number, saved.last[number][which], saved.looks[number][which])
        return found


def _packed(rings: list[_Ring]) -> bytes:
    """Hundredths, each as the difference from the one before, in the order of the ring."""
    if not rings:
        return b""
    whole = np.stack([ring.values for ring in rings])
    centi = np.where(np.isnan(whole), _UNKNOWN, np.rint(whole * _CENTI)).astype("<i4")
    return np.diff(centi, axis=-1, prepend=0).astype("<i4").tobytes()
