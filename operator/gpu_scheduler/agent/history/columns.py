"""What a ring keeps of a device, of a container's share of one, and of a container.

A ratio is a byte, an amount two or four; what nobody knows is a value of its own, never 0. Steps of
ten minutes keep of each column what is asked of it later: a mean and, where a moment matters, the
least or the most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from zlib import crc32

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a number becomes bytes.

    Attributes:
        code: of ``struct``.
        unknown: stands for no value: the largest of these bytes.
        scale: by what it is multiplied.
    """

    code: str
    unknown: int
    scale: float = 1.0

    def encode(self, value: float | None) -> int:
        """The nearest that can be kept."""
        if value is None:
            return self.unknown
        return min(max(round(value * self.scale), 0), self.unknown - 1)

    def decode(self, stored: int) -> float | None:
        """What was kept."""
        return None if stored == self.unknown else stored / self.scale


RATIO = Encoding("B", 0xFF, 250.0)  # 0 to 1
SMALL = Encoding("H", 0xFFFF)
AMOUNT = Encoding("I", 0xFFFFFFFF)

MIN, MEAN, MAX = "min", "mean", "max"
_ALL = (MIN, MEAN, MAX)


@dataclass(frozen=True, slots=True)
class Column:
    """One figure; ``of_steps``: what is kept of the looks of ten minutes."""

    name: str
    encoding: Encoding
    of_steps: tuple[str, ...]


class RingType(IntEnum):
    """Whose ring it is."""

    DEVICE = 1
    SHARE = 2
    CONTAINER = 3
    WORK = 4  # sums alone: of rings that others needed


_COLUMNS: dict[RingType, tuple[Column, ...]] = {
    RingType.DEVICE: (
        Column("busy", RATIO, _ALL),  # share of time with a kernel, of anybody's
        Column("memoryMiB", AMOUNT, (MEAN, MAX)),
        Column("allocated", RATIO, (MEAN,)),  # sum of the shares that are given out
        Column("used", RATIO, (MEAN,)),  # of these: sum of what each uses, at most its share
        Column("powerWatts", SMALL, (MEAN, MAX)),
        Column("temperatureCelsius", SMALL, (MEAN, MAX)),
        Column("tensor", RATIO, (MEAN, MAX)),
        Column("throttled", RATIO, (MEAN,)),  # 1: heat or a power brake held it back
    ),
    RingType.SHARE: (
        Column("busy", RATIO, _ALL),  # share of time with a kernel of its own
        Column("memoryMiB", AMOUNT, (MEAN, MAX)),
        Column("neighboursAbove", RATIO, (MEAN,)),  # what the others use above their shares
        Column("refused", SMALL, (MAX,)),  # allocations that its cap refused since the look before
    ),
    RingType.CONTAINER: (
        Column("cpuMilli", AMOUNT, (MEAN, MAX)),
        Column("memoryMiB", AMOUNT, (MEAN, MAX)),
        Column("ioStalled", RATIO, (MEAN, MAX)),  # share of time in which all of it waited
        Column("memoryStalled", RATIO, (MEAN, MAX)),
    ),
    RingType.WORK: (),
}


class Record:
    """A row of columns as bytes: the number of its step, the values, and a check over both.

    A row that is of another step, of another owner's ring or torn says so by itself, and counts as
    unknown. So a gap needs no writing.
    """

    def __init__(self, fields: Sequence[tuple[str, Encoding]]) -> None:
        self._fields = tuple(fields)
        codes = "".join(encoding.code for _, encoding in fields)
        self._body = Struct(f"<I{codes}")
        self.size = self._body.size + _CHECK.size

    def pack(self, step: int, values: Values, generation: int) -> bytes:
        """The bytes of a step."""
        stored = (encoding.encode(values.get(name)) for name, encoding in self._fields)
        body = self._body.pack(step, *stored)
        return body + _CHECK.pack(crc32(body, generation) & 0xFFFF)

    def unpack(self, step: int, stored: bytes, generation: int) -> dict[str, float | None] | None:
        """What was kept of a step; None: nothing, or nothing that can be believed."""
        if len(stored) != self.size:
            return None
        body = stored[: self._body.size]
        if _CHECK.unpack_from(stored, len(body))[0] != crc32(body, generation) & 0xFFFF:
            return None
        found, *values = self._body.unpack(body)
        if found != step:
            return None
        pairs = zip(self._fields, values, strict=True)
        return {name: encoding.decode(value) for (name, encoding), value in pairs}


_CHECK = Struct("<H")


class Layout:
    """The two rows of a ring of a type: that of a look, and that of ten minutes."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self.looks = Record([(each.name, each.encoding) for each in columns])
        self.steps = Record(
            [(f"{each.name}.{of}", each.encoding) for each in columns for of in each.of_steps]
        )

    def summary(self, looks: Sequence[Values]) -> dict[str, float | None]:
        """What is kept of the looks of ten minutes; unknown where no look knew."""
        found: dict[str, float | None] = {}
        for each in self._columns:
            known = [v for look in looks if (v := look.get(each.name)) is not None]
            for of in each.of_steps:
                found[f"{each.name}.{of}"] = _statistic(of, known)
        return found


def _statistic(of: str, known: Sequence[float]) -> float | None:
    if not known:
        return None
    return {MIN: min, MAX: max}[of](known) if of != MEAN else sum(known) / len(known)


LAYOUTS = {each: Layout(columns) for each, columns in _COLUMNS.items()}
