"""How the pod shapes asked about look on one kind of node: alike ones are one class.

Pod shapes that differ in memory, in models or in what nodes they choose often ask a node of one
kind for the same CPU and devices; they are scored once. What all states of nodes share is worked
out here, when a pod shape is added. Called by ``rows``, used by ``column``.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints, Small
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.load import NEVER, Allowed
from gpu_scheduler.core.packing.scoring import for_part
from gpu_scheduler.core.packing.shapes import PICKED, ShapeRequest, ShapeScores

MOST_AMOUNTS = 4_000  # of free CPU, remembered

CLASS, CPU, LEAST, TAKEN, FIXED, GPU, STEP, PART, MILLI, COUNT = range(10)
SCORED = 8  # the first so many: what of a class the score of a placement needs


@dataclass(slots=True)
class DevicePlacements:
    """Placements on a device that has so much free, those that want the least CPU first.

    Attributes:
        numbers: [SCORED, placements] of their classes; the fixed part of the key knows what is left
            and whether a GPU is opened.
        change: [placements, width] by what they change the description of the node.
        cpu: [placements] milli-CPU, also a row of ``numbers``.
    """

    numbers: Ints
    change: Small
    cpu: list[int]


@dataclass(slots=True)
class Classes:
    """Classes of pod shapes on nodes of one kind.

    Attributes:
        numbers: [10, classes] number, milli-CPU, scarcity of the least scarce node that they could
            use, milli-GPU in all, the fixed part of the key, 1 unless they want no GPU, where their
            CPU stands in ``steps``, ``for_part`` of what they take, milli per device (NEVER where
            the kind does not serve, PICKED where devices are picked), devices.
        rising: classes, those that want the least CPU first.
        amounts: what lone requests ask of a device, distinct and rising, and ``NEVER``.
        steps: distinct amounts of milli-CPU, 0 first.
        hard: class and row of each pod shape for which devices are picked, and what it asks.
        sure: whether all that these take is known beforehand.
        of_row: [rows] the class of each pod shape.
        blocked: [classes] the keys where nothing fits.
        parts: placements on one device, by its free milli; 0 = on none.
        free: placements on a free device, by the least that they ask of it.
        whole: placements on several that are free, by how many are.
        by_cpu: what of the target workload CPU is enough for, by how much there is.
    """

    numbers: Ints
    rising: Ints
    amounts: list[int]
    steps: Ints
    hard: list[tuple[int, int, ShapeRequest]]
    sure: bool
    of_row: Ints
    blocked: Ints
    parts: dict[int, DevicePlacements] = field(default_factory=dict)
    free: dict[int, DevicePlacements] = field(default_factory=dict)
    whole: dict[int, DevicePlacements] = field(default_factory=dict)
    by_cpu: dict[int, Allowed] = field(default_factory=dict)

    def part(self, shape: ShapeScores, free_milli: int) -> DevicePlacements:
        """Placements on a device that has so much free."""
        found = self.parts.get(free_milli)
        if found is None:
            milli, count = self.numbers[MILLI], self.numbers[COUNT]
            fits = (milli <= free_milli) & (count == min(1, free_milli))
            found = self.parts[free_milli] = self._part(shape, fits, free_milli)
        return found

    def on_free(self, shape: ShapeScores, used_milli: int) -> DevicePlacements:
        """Placements on a free device of what no device in use, with so much free, holds."""
        least = self.amounts[bisect_right(self.amounts, used_milli)]
        found = self.free.get(least)
        if found is None:
            milli, count = self.numbers[MILLI], self.numbers[COUNT]
            fits = (milli <= DEVICE_MILLI) & (milli >= least) & (count == 1)
            found = self.free[least] = self._part(shape, fits, DEVICE_MILLI)
        return found

    def on_whole(self, shape: ShapeScores, devices: int) -> DevicePlacements:
        """Placements on more than one of so many free devices."""
        found = self.whole.get(devices)
        if found is None:
            milli, count = self.numbers[MILLI], self.numbers[COUNT]
            fits = (count > 1) & (count <= devices) & (milli == DEVICE_MILLI)
            found = self.whole[devices] = self._part(shape, fits, DEVICE_MILLI)
        return found

    def allowed(self, shape: ShapeScores, cpu_milli: int) -> Allowed:
        """What of the workload there is CPU for that is left after each of ``steps`` there is."""
        found = self.by_cpu.get(cpu_milli)
        if found is None:
            if len(self.by_cpu) >= MOST_AMOUNTS:
                self.by_cpu.clear()
            within = max(1, self.steps.searchsorted(cpu_milli, side="right"))
            found = self.by_cpu[cpu_milli] = shape.load.allowed(cpu_milli - self.steps[:within])
        return found

    def _part(self, shape: ShapeScores, fits: Flags, free_milli: int) -> DevicePlacements:
        classes = self.rising[fits[self.rising]]
        numbers = self.numbers[:SCORED, classes]
        held = np.full(len(classes), free_milli)
        left = held - self.numbers[MILLI, classes]
        change = shape.load.change(held, left)
        change *= self.numbers[COUNT, classes, None].astype(np.int32)
        opens = shape.load.opens(change)
        numbers[FIXED] = shape.scoring.placed(numbers[FIXED], left, opens)
        numbers[PART] *= ~opens
        return DevicePlacements(numbers, change, numbers[CPU].tolist())


def classify(shape: ShapeScores, shape_requests: list[ShapeRequest], wants: Ints) -> Classes:
    """The classes of pod shapes on a kind of node; ``wants``: [2, rows] CPU and scarcity."""
    asked = np.array([ask.numbers for ask in shape_requests], dtype=np.int64).T
    of_row = rows = np.arange(len(shape_requests))
    classes = np.concatenate([asked, wants * (asked[0] != NEVER), rows[None] + 1])
    classes[-1] *= asked[0] == PICKED
    if len(shape_requests) > 1:
        classes, of_row = np.unique(classes, axis=1, return_inverse=True)
    milli, count, size, taken, cpu, least, row = classes
    steps = np.array(sorted({0, *cpu.tolist()}), dtype=np.int64)
    scored = (rows[: len(milli)], cpu, least, taken, shape.scoring.fixed(size, taken), milli > 0)
    numbers = np.array([*scored, steps.searchsorted(cpu), for_part(taken), milli, count])
    amounts = sorted({*milli[(count == 1) & (milli < NEVER)].tolist(), NEVER})
    hard = [(at, r - 1, shape_requests[r - 1]) for at, r in enumerate(row.tolist()) if r]
    sure = all(ask.steps for _, _, ask in hard)
    blocked = np.full(len(milli), keys.BLOCKED)
    rising = np.argsort(cpu, kind="stable")
    return Classes(numbers, rising, amounts, steps, hard, sure, of_row.ravel(), blocked)
