"""The keys of all pod kinds asked about on one node: what is worked out when a node changes.

On a device with ``x`` milli free the same pod kinds fit in every node of a kind, and leave the same
behind; such a part is made once for each ``x`` and a column is put together from the parts of its
node. Invariant: the same keys as ``row`` gives for each pod kind alone. Called by ``table``.
"""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from gpu_scheduler.core.model.arrays import Ints, Small
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.classes import MOST_AMOUNTS, Classes
from gpu_scheduler.core.packing.kinds import KindScores
from gpu_scheduler.core.packing.load import Allowed
from gpu_scheduler.core.packing.outcome import Described, Outcomes, Picked

CLASS, FIXED, TAKEN, CPU, STEP, LEAST, GPU = range(7)


@dataclass(slots=True)
class Part:
    """Placements of pod kinds, those that want the least CPU first.

    Attributes:
        numbers: [7, placements]
        change: [placements, width] by what they change the description of the node.
        cpu: [placements] milli-CPU that they want, also a row of ``numbers``.
    """

    numbers: Ints
    change: Small
    cpu: list[int]


class Column:
    """Keys of the classes of a look on single nodes of its kind."""

    def __init__(self, look: Classes, kind: KindScores) -> None:
        self.look, self._kind = look, kind
        self._blocked = np.full(len(look.milli), keys.BLOCKED)
        self._single = (look.count == 1) & (look.milli > 0) & (look.milli <= DEVICE_MILLI)
        self._several = (look.count > 1) & (look.milli == DEVICE_MILLI)
        itself, same = np.zeros((7, 1), dtype=np.int64), np.zeros((1, kind.load.width), np.int32)
        self._itself = Part(itself, same, [0])
        self._plain = self._part(np.flatnonzero(look.count == 0), 0)
        self._on: dict[int, Part] = {}  # by free milli of a device
        self._whole: dict[int, Part] = {}  # by the number of free devices
        self._cpu: dict[int, Allowed] = {}
        each = (look.cpu_milli.tolist(), look.step_of.tolist(), look.least_scarce.tolist())
        self._hard = {at: (each[0][at], each[1][at], each[2][at]) for at, _ in look.hard}

    def keys(self, free: list[int], cpu: int, scarce: int, picked: list[Picked]) -> Ints:
        """[rows] Keys; ``BLOCKED`` where GPU or CPU are not enough.

        Args:
            free: free milli of the devices.
            cpu: free milli-CPU; below 0 (a pod bound by hand) nothing fits.
            scarce: scarcity of the node, in milli-GPU.
            picked: placements of the classes that ``Chooser`` has to pick.
        """
        if cpu < 0:
            return self._blocked.take(self.look.of_row)
        scoring, load = self._kind.scoring, self._kind.load
        total = sum(free)
        parts = [self._itself, self._plain]
        if self._kind.alike:
            parts += [self._of(milli) for milli in dict.fromkeys(free) if milli]
            whole = free.count(DEVICE_MILLI)
            if whole > 1:
                parts.append(self._of_whole(whole))
        base = load.base(free) if scoring.weighs else None
        if picked:
            parts.append(self._of_picked(picked, total, base))
        within = [bisect_right(part.cpu, cpu) for part in parts]
        of_each = zip(parts, within, strict=True)
        numbers = np.concatenate([part.numbers[:, :n] for part, n in of_each], axis=1)
        described = None
        if base is not None:
            of_each = zip(parts, within, strict=True)
            nodes = np.concatenate([part.change[:n] for part, n in of_each])
            nodes += base
            described = Described(nodes, self._of_cpu(cpu).take(numbers[STEP]))
        numbers = numbers[:, 1:]  # the first is the node as it is
        after = Outcomes(
            fixed=numbers[FIXED],
            state=0,
            total=total,
            taken=numbers[TAKEN],
            cpu=cpu - numbers[CPU],
            gpu=numbers[GPU],
            scarce=np.maximum(0, scarce - numbers[LEAST]),
        )
        result = self._blocked.copy()
        found = scoring.keys(load, described, after, len(free))
        np.minimum.at(result, numbers[CLASS], found)
        by_row: Ints = result.take(self.look.of_row)
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
        classes = classes[np.argsort(look.cpu_milli[classes], kind="stable")]
        milli, count = look.milli[classes], look.count[classes]
        gpu = (milli > 0).astype(np.int64)
        left, taken = (free_milli - milli) * gpu, milli * count
        cpu, step = look.cpu_milli[classes], look.step_of[classes]
        fixed = self._kind.scoring.fixed(left, look.size[classes], taken)
        least = look.least_scarce[classes]
        numbers = np.stack([classes, fixed, taken, cpu, step, least, gpu])
        change = np.zeros((len(classes), load.width), dtype=np.int32)
        if self._kind.alike and self._kind.devices:
            table = load.tables[0]
            change += (table[free_milli - milli] - table[free_milli]) * count[:, None]
        return Part(numbers, change, cpu.tolist())

    def _of_picked(self, picked: list[Picked], total: int, base: Small | None) -> Part:
        scoring, load = self._kind.scoring, self._kind.load
        picked.sort(key=lambda p: self._hard[p.at][0])
        rows = [(p.at, total - sum(p.free_milli), *self._hard[p.at], 1) for p in picked]
        at, taken, cpu, step, least, gpu = np.array(rows, dtype=np.int64).T
        left, size = np.array([(p.left, p.size) for p in picked], dtype=np.int64).T
        numbers = np.stack([at, scoring.fixed(left, size, taken), taken, cpu, step, least, gpu])
        change = np.zeros((len(rows), load.width), dtype=np.int32)
        if base is not None:
            change += [load.base(p.free_milli) - base for p in picked]
        return Part(numbers, change, cpu.tolist())

    def _of_cpu(self, cpu: int) -> Allowed:
        """What the mix sees of the CPU left after each amount that is asked for and there."""
        found = self._cpu.get(cpu)
        if found is None:
            if len(self._cpu) >= MOST_AMOUNTS:
                self._cpu.clear()
            steps = self.look.steps
            left = cpu - steps[: steps.searchsorted(cpu, side="right")]
            found = self._cpu[cpu] = self._kind.load.allowed(left)
        return found
