"""A ring in the history's file: an hour of looks, a week of steps, and sums since it began.

All of it can be torn by a crash of the node: the owner has a check, rows have one each, and of the
sums there are two copies that take turns.
"""

import os
from collections.abc import Callable, Iterator
from struct import Struct
from zlib import crc32

import msgspec

from gpu_scheduler.agent.history.columns import LAYOUTS, Layout, Record, RingType, Values
from gpu_scheduler.usage.answer import BUCKETS, Totals

LOOK_SECONDS, LOOKS = 10, 360
STEP_SECONDS, STEPS = 600, 1008
LOOKS_OF_STEP = STEP_SECONDS // LOOK_SECONDS
_LOOKS_OF_MINUTE = 60 // LOOK_SECONDS

_OWNER_BYTES = 2048  # the longest names that there may be take 1,700 of them
_OWNER = Struct("<IIIIH")  # check, generation, first look, last look or 0, length of the rest
_SUMS = Struct(f"<II6d{BUCKETS}I7I")
_SUMS_BYTES = 128
_LOOKS_AT = _OWNER_BYTES + 2 * _SUMS_BYTES
_MOST_SUMS = (1 << 32) - 1
# Of the sums, as they are written.
_TIMES = (
    *("seconds", "busy_seconds", "share"),
    *("held_gpu_seconds", "used_gpu_seconds", "unused_gpu_seconds"),
)
_COUNTS = (
    "peak_mib",
    "idle_seconds",
    "last_busy",
    "refused",
    "containers",
    "summed",
    "first_minute_mib",
)


class RingOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose ring it is; ids are the kubelet's, the device's is its UUID, empty where none is.

    ``work`` is that of ``OrderedPod``.
    """

    type: RingType = msgspec.field(name="kind")  # as in files of earlier versions
    work: str = ""
    device: str = ""
    container_id: str = ""
    pod_uid: str = ""
    namespace: str = ""
    pod: str = ""
    container: str = ""
    job: str = ""
    project: str = ""


class RingSums(msgspec.Struct, kw_only=True):
    """Since it began, of the time that was looked at.

    Attributes:
        seconds: in which its use was known.
        busy_seconds: of these with a kernel.
        share: of the device, as it was last; of a work's ring nothing.
        held_gpu_seconds: of a work's ring alone: others hold their share for as long as they are.
        used_gpu_seconds: share × time that was used, at most the share.
        unused_gpu_seconds: share × time without any kernel.
        buckets: seconds by use: below 10 %, below 20 %, and so on.
        peak_mib: most memory that was seen.
        idle_seconds: since a kernel was seen last, or since it began.
        last_busy: look in which one was; 0: none.
        refused: allocations that its cap refused.
        containers: of a work's ring: how many are summed up.
        summed: of a work's ring: generation of the ring that was summed up last.
        first_minute_mib: most memory that was seen in its first minute.
    """

    seconds: float = 0.0
    busy_seconds: float = 0.0
    share: float = 0.0
    held_gpu_seconds: float = 0.0
    used_gpu_seconds: float = 0.0
    unused_gpu_seconds: float = 0.0
    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * BUCKETS)
    peak_mib: int = 0
    idle_seconds: int = 0
    last_busy: int = 0
    refused: int = 0
    containers: int = 0
    summed: int = 0
    first_minute_mib: int = 0

    def add(self, look: int, seconds: float, values: Values) -> None:
        """One more look, that stands for so many seconds."""
        memory = values.get("memoryMiB")
        if memory is not None:
            self.peak_mib = min(max(self.peak_mib, round(memory)), _MOST_SUMS)
        self.refused = min(self.refused + round(values.get("refused") or 0), _MOST_SUMS)
        busy = values.get("busy")
        if busy is None:
            return
        self.seconds += seconds
        self.busy_seconds += busy * seconds
        self.used_gpu_seconds += min(busy, self.share) * seconds
        bucket = min(int(busy * BUCKETS), BUCKETS - 1)
        self.buckets[bucket] = min(self.buckets[bucket] + round(seconds), _MOST_SUMS)
        if busy > 0:
            self.last_busy = look
            self.idle_seconds = 0
        else:
            self.unused_gpu_seconds += self.share * seconds
            self.idle_seconds = min(self.idle_seconds + round(seconds), _MOST_SUMS)

    def take(self, totals: Totals, generation: int) -> None:
        """Sum up a ring that somebody else needs."""
        self.summed = generation
        self.seconds += totals.seconds
        self.busy_seconds += totals.busy_seconds
        self.held_gpu_seconds += totals.held_gpu_seconds
        self.used_gpu_seconds += totals.used_gpu_seconds
        self.unused_gpu_seconds += totals.unused_gpu_seconds
        pairs = zip(self.buckets, totals.buckets, strict=True)
        self.buckets = [min(mine + theirs, _MOST_SUMS) for mine, theirs in pairs]
        self.peak_mib = max(self.peak_mib, totals.peak_mib)
        self.refused = min(self.refused + totals.refused, _MOST_SUMS)
        self.containers = min(self.containers + totals.containers, _MOST_SUMS)


class RingSlot:
    """One ring, at its place in an open file. Every method may raise ``OSError``."""

    SIZE = _LOOKS_AT + max(
        each.looks.size * LOOKS + each.steps.size * STEPS for each in LAYOUTS.values()
    )
    SIZE += -SIZE % 4096

    def __init__(self, descriptor: int, at: int) -> None:
        """Nothing is read yet; ``at``: its place."""
        self._fd = descriptor
        self.at = at
        self.owner: RingOwner | None = None
        self.first = self.last = 0
        self.summed_at = 0
        """Of a work's ring: look in which others were summed up in it, as far as is known here."""
        self.sums = RingSums()
        self.generation = self._sums_written = 0

    def read(self) -> bool:
        """Read whose it is, and its sums; False: nobody's that can be believed."""
        stored = os.pread(self._fd, _OWNER_BYTES, self.at)
        self.owner = None
        if len(stored) < _OWNER_BYTES:
            return False
        check, generation, first, last, length = _OWNER.unpack_from(stored)
        rest = stored[_OWNER.size : _OWNER.size + length]
        if not generation or check != _owner_check(generation, first, last, rest):
            return False
        try:
            self.owner = msgspec.msgpack.decode(rest, type=RingOwner)
        except msgspec.MsgspecError:
            return False
        self.generation = generation
        self.first = first
        self.last = last
        self._read_sums()
        return True

    def begin(self, owner: RingOwner, look: int, generation: int) -> None:
        """Give it to somebody; what was in it is nobody's then."""
        self.owner = owner
        self.first = look
        self.last = self.summed_at = 0
        self.generation = generation
        self.sums = RingSums()
        self._sums_written = 0
        self._write_owner()

    def begin_sums(self, owner: RingOwner, look: int, generation: int) -> None:
        """Give it to its work, that has ended with it; of what was in it the sums stay."""
        before, totals = self.generation, self.totals(look)
        self.owner = owner
        self.summed_at = look
        self.generation = generation
        self.sums = RingSums()
        self.sums.take(totals, before)
        self._write_sums()  # before the owner: the copy of before stays until then
        self._write_owner()

    def end(self, look: int) -> None:
        """Nothing is added to it any more."""
        self.last = max(look, 1)
        self._write_owner()

    def go_on(self) -> None:
        """It has not ended after all."""
        self.last = 0
        self._write_owner()

    def age_seconds(self, look: int) -> int:
        """From its first look to its last one, or to this one while it has not ended."""
        return max((self.last or look) - self.first, 0) * LOOK_SECONDS

    def totals(self, look: int) -> Totals:
        """Its sums; ``look``: the number of the look that is now."""
        sums = self.sums
        of_work = self.owner is not None and self.owner.type is RingType.WORK
        held = sums.held_gpu_seconds if of_work else sums.share * self.age_seconds(look)
        return Totals(
            containers=sums.containers if of_work else 1,
            seconds=sums.seconds,
            busy_seconds=sums.busy_seconds,
            held_gpu_seconds=held,
            used_gpu_seconds=sums.used_gpu_seconds,
            unused_gpu_seconds=sums.unused_gpu_seconds,
            buckets=tuple(sums.buckets),
            peak_mib=sums.peak_mib,
            refused=sums.refused,
        )

    def take(self, other: "RingSlot", look: int) -> None:
        """Sum up a ring that is about to be somebody else's, once; this one is a work's."""
        if self.sums.summed != other.generation:
            self.sums.take(other.totals(look), other.generation)
            self._write_sums()
        self.summed_at = look
        self.first = min(self.first, other.first)
        self.end(max(self.last, other.last))

    def add(self, look: int, values: Values, seconds: float = LOOK_SECONDS) -> None:
        """Keep a look that stands for so many seconds."""
        layout = self._layout
        at = self._look_at(look)
        os.pwrite(self._fd, layout.looks.pack(look, values, self.generation), at)
        self.sums.add(look, seconds, values)
        if look - self.first < _LOOKS_OF_MINUTE:
            self.sums.first_minute_mib = self.sums.peak_mib
        self._write_sums()

    def close_step(self, step: int) -> None:
        """Keep what is to stay of ten minutes."""
        looks = [v for _, v in self.looks(step * LOOKS_OF_STEP, (step + 1) * LOOKS_OF_STEP)]
        if looks:
            row = self._layout.steps.pack(step, self._layout.summary(looks), self.generation)
            os.pwrite(self._fd, row, self._step_at(step))

    def looks(self, since: int, until: int) -> Iterator[tuple[int, Values]]:
        """The looks of the last hour that are known, from the oldest on, before ``until``."""
        since = max(since, until - LOOKS, 0)
        yield from self._rows(self._layout.looks, since, until, LOOKS, self._look_at)

    def steps(self, since: int, until: int) -> Iterator[tuple[int, Values]]:
        """The steps of the last week that are known, from the oldest on, before ``until``."""
        since = max(since, until - STEPS, 0)
        yield from self._rows(self._layout.steps, since, until, STEPS, self._step_at)

    def _rows(
        self, record: Record, since: int, until: int, count: int, at_of: Callable[[int], int]
    ) -> Iterator[tuple[int, Values]]:
        if since >= until:
            return
        ring = os.pread(self._fd, record.size * count, at_of(0))
        for number in range(since, until):
            at = record.size * (number % count)
            values = record.unpack(number, ring[at : at + record.size], self.generation)
            if values is not None:
                yield number, values

    @property
    def _layout(self) -> Layout:
        if self.owner is None:
            raise ValueError("a ring of nobody keeps nothing")
        return LAYOUTS[self.owner.type]

    def _look_at(self, look: int) -> int:
        return self.at + _LOOKS_AT + self._layout.looks.size * (look % LOOKS)

    def _step_at(self, step: int) -> int:
        layout = self._layout
        begin = self.at + _LOOKS_AT + layout.looks.size * LOOKS
        return begin + layout.steps.size * (step % STEPS)

    def _write_owner(self) -> None:
        rest = msgspec.msgpack.encode(self.owner)
        check = _owner_check(self.generation, self.first, self.last, rest)
        head = _OWNER.pack(check, self.generation, self.first, self.last, len(rest))
        if len(head) + len(rest) > _OWNER_BYTES:
            raise ValueError(f"an owner of {len(rest)} bytes")
        os.pwrite(self._fd, (head + rest).ljust(_OWNER_BYTES, b"\0"), self.at)

    def _write_sums(self) -> None:
        self._sums_written += 1
        sums = self.sums
        body = _SUMS.pack(
            self.generation,
            self._sums_written,
            *(getattr(sums, name) for name in _TIMES),
            *sums.buckets,
            *(getattr(sums, name) for name in _COUNTS),
        )
        row = body + _CHECK.pack(crc32(body))
        os.pwrite(self._fd, row, self._sums_at(self._sums_written))

    def _read_sums(self) -> None:
        self.sums = RingSums()
        self._sums_written = 0
        for copy in (0, 1):
            row = os.pread(self._fd, _SUMS.size + _CHECK.size, self._sums_at(copy))
            if len(row) < _SUMS.size + _CHECK.size:
                continue
            if _CHECK.unpack_from(row, _SUMS.size)[0] != crc32(row[: _SUMS.size]):
                continue
            generation, written, *rest = _SUMS.unpack_from(row)
            if generation == self.generation and written > self._sums_written:
                self._sums_written = written
                times, counts = rest[: len(_TIMES)], rest[len(_TIMES) + BUCKETS :]
                self.sums = RingSums(
                    buckets=list(rest[len(_TIMES) : len(_TIMES) + BUCKETS]),
                    **dict(zip(_TIMES, times, strict=True)),
                    **dict(zip(_COUNTS, counts, strict=True)),
                )

    def _sums_at(self, written: int) -> int:
        return self.at + _OWNER_BYTES + _SUMS_BYTES * (written % 2)


def _owner_check(generation: int, first: int, last: int, rest: bytes) -> int:
    return crc32(_FIRST_LAST.pack(generation, first, last) + rest)


_CHECK = Struct("<I")
_FIRST_LAST = Struct("<III")
