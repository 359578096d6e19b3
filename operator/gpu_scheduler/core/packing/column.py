"""The keys of all shapes asked about on one node: what is worked out when a node changes.

On a device with ``x`` milli free the same shapes fit in every node of a kind, and leave the same
behind; such a part is made once for each ``x`` and a column is put together from the parts of its
node. Invariant: the same keys as ``row`` gives for each shape alone. Called by ``table``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.kinds import KindScores
from gpu_scheduler.core.packing.look import MOST_AMOUNTS, Look
from gpu_scheduler.core.packing.outcome import Described, Outcomes, Picked
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

CLASS, LEFT, TAKEN, CPU, STEP, LEAST, SIZE, GPU = range(8)


@dataclass(slots=True)
class Part:
    """Placements of shapes: their numbers, [8, placements], and by what they change the node."""

    numbers: Ints
    change: Small


class Column:
    """Keys of the classes of a look on single nodes of its kind."""

    def __init__(self, look: Look, kind: KindScores) -> None:
        self.look, self._kind = look, kind
        self._most_cpu = int(look.cpu_milli.max(initial=0))
        self._single = (look.count == 1) & (look.milli > 0) & (look.milli <= DEVICE_MILLI)
        self._several = (look.count > 1) & (look.milli == DEVICE_MILLI)
        itself = np.zeros((8, 1), dtype=np.int64)
        self._itself = Part(itself, np.zeros((1, kind.load.width), dtype=np.int32))
        self._plain = self._part(np.flatnonzero(look.count == 0), 0)
        self._on: dict[int, Part] = {}  # by free milli of a device
        self._whole: dict[int, Part] = {}  # by the number of free devices
        self._cpu: dict[int, tuple[Ints, Small]] = {}
        each = (look.cpu_milli.tolist(), look.step_of.tolist(), look.least_scarce.tolist())
        self._hard = {at: (each[0][at], each[1][at], each[2][at]) for at, _ in look.hard}

    def keys(self, free: list[int], cpu: int, scarce: int, picked: list[Picked]) -> Ints:
        """[rows] Keys; ``BLOCKED`` where GPU or CPU are not enough.

        Args:
            free: free milli of the devices.
            cpu: free milli-CPU.
            scarce: scarcity of the node, in milli-GPU.
            picked: placements of the classes that ``Chooser`` has to pick.
        """
        scoring, look = self._kind.scoring, self.look
        total = sum(free)
        parts = [self._itself, self._plain]
        if self._kind.alike:
            parts += [self._of(milli) for milli in dict.fromkeys(free) if milli]
            whole = free.count(DEVICE_MILLI)
            if whole > 1:
                parts.append(self._of_whole(whole))
        base = self._kind.load.base(free) if scoring.weighs else None
        if picked:
            parts.append(self._of_picked(picked, total, base))
        numbers = np.concatenate([part.numbers for part in parts], axis=1)
        change = None if base is None else np.concatenate([part.change for part in parts])
        if cpu < self._most_cpu:
            enough = numbers[CPU] <= cpu
            numbers = numbers[:, enough]
            change = None if change is None else change[enough]
        rest = total - numbers[TAKEN]
        described = None
        if base is not None and change is not None:
            ranks, by_cpu = self._of_cpu(cpu)
            described = Described(
                base + change, rest.astype(np.int32), numbers[STEP], ranks, by_cpu
            )
        numbers = numbers[:, 1:]  # the first is the node as it is
        after = Outcomes(
            state=np.zeros(len(numbers[CLASS]), dtype=np.int64),
            total=rest[1:],
            left=numbers[LEFT],
            cpu=cpu - numbers[CPU],
            gpu=numbers[GPU],
            scarce=np.maximum(0, scarce - numbers[LEAST]),
            size=numbers[SIZE],
        )
        result = np.full(len(look.milli), keys.BLOCKED)
        found = scoring.keys(self._kind.load, described, after, len(free))
        np.minimum.at(result, numbers[CLASS], found)
        by_row: Ints = result[look.of_row]
        return by_row

    def _of(self, free_milli: int) -> Part:
        part = self._on.get(free_milli)
        if part is None:
            fits = np.flatnonzero(self._single & (self.look.milli <= free_milli))
            part = self._on[free_milli] = self._part(fits, free_milli)
        return part

    def _of_whole(self, devices: int) -> Part:
        part = self._whole.get(devices)
        if part is None:
            fits = np.flatnonzero(self._several & (self.look.count <= devices))
            part = self._whole[devices] = self._part(fits, DEVICE_MILLI)
        return part

    def _part(self, classes: Ints, free_milli: int) -> Part:
        """Placements on devices that have so much free."""
        look, load = self.look, self._kind.load
        milli, count = look.milli[classes], look.count[classes]
        gpu = (milli > 0).astype(np.int64)
        left, taken = (free_milli - milli) * gpu, milli * count
        cpu, step = look.cpu_milli[classes], look.step_of[classes]
        least, size = look.least_scarce[classes], look.size[classes]
        numbers = np.stack([classes, left, taken, cpu, step, least, size, gpu])
        if not self._kind.alike or not self._kind.devices:
            return Part(numbers, np.zeros((len(classes), load.width), dtype=np.int32))
        table = load.tables[0]
        change = (table[free_milli - milli] - table[free_milli]) * count[:, None]
        return Part(numbers, change.astype(np.int32))

    def _of_picked(self, picked: list[Picked], total: int, base: Small | None) -> Part:
        load = self._kind.load
        rows = [
            (p.at, p.left, total - sum(p.free_milli), *self._hard[p.at], p.size, 1) for p in picked
        ]
        numbers = np.array(rows, dtype=np.int64).T
        if base is None:
            return Part(numbers, np.zeros((len(rows), load.width), dtype=np.int32))
        return Part(numbers, np.array([load.base(p.free_milli) - base for p in picked]))

    def _of_cpu(self, cpu: int) -> tuple[Ints, Small]:
        """The CPU that is left after each class, as the mix sees it."""
        found = self._cpu.get(cpu)
        if found is None:
            if len(self._cpu) >= MOST_AMOUNTS:
                self._cpu.clear()
            left, load = cpu - self.look.steps, self._kind.load
            found = self._cpu[cpu] = load.ranks(left), load.by_cpu(left)
        return found
