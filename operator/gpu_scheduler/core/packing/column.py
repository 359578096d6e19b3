"""The keys of all pod shapes asked about, on one node or on few: worked out when nodes change.

On a device with ``x`` milli free the same pod shapes fit in every node of a kind, and leave the
same behind; such a part is made once for each ``x`` and a column is put together from the parts of
its node. Invariant: the same keys as ``row`` gives for each pod shape alone. Called by ``table``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpu_scheduler.core.model.arrays import Ints, Small
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.classes import (
    CLASS,
    CPU,
    FIXED,
    GPU,
    LEAST,
    PART,
    SCORED,
    STEP,
    TAKEN,
    Classes,
    DevicePlacements,
)
from gpu_scheduler.core.packing.load import Allowed
from gpu_scheduler.core.packing.outcome import AllocationOutcome, Described, Outcomes
from gpu_scheduler.core.packing.scoring import for_part, to_pay
from gpu_scheduler.core.packing.several import Free, Search, picked
from gpu_scheduler.core.packing.shapes import ShapeScores
from gpu_scheduler.core.packing.states import States

StateOutcome = tuple[int, int, AllocationOutcome]  # state, class, devices

_NO_CHANGE = np.zeros((0, 0), dtype=np.int32)
_AS_IT_IS = np.zeros(1, dtype=np.int64)  # no CPU is taken


class Placements(NamedTuple):
    """Placements: in which state, the numbers of the class, and what changes of the description.

    ``state`` is 0 where there is but one, and nothing changes where no description is asked for.
    """

    state: Ints | int
    numbers: Ints
    change: Small


def columns_of(shape: ShapeScores, look: Classes, states: States, search: Search) -> Ints:
    """[states, rows] Keys; ``BLOCKED`` where GPU or CPU are not enough."""
    free, cpu, scarce = states
    base = shape.load.bases(free, alike=shape.alike) if shape.scoring.weighs else None
    each = zip(free.tolist(), cpu.tolist(), strict=True)
    fitting = [_fitting(shape, look, held, milli_cpu) for held, milli_cpu in each]
    sizes = [sum(n for _, n in mine) for mine in fitting]
    together = [part for mine in fitting for part in mine]
    placements = _put_together(shape, together, np.arange(len(sizes)).repeat(sizes))
    picks = _picked(look, list(map(tuple, free.tolist())), cpu.tolist(), search)
    if picks:
        placements = _joined(placements, _on_picked(shape, look, (free, base), picks))
    state, numbers, change = placements
    described = None
    if base is not None:
        allowed = _allowed(shape, look, cpu, state, numbers[STEP])
        described = Described(np.concatenate([base, base[state] + change]), allowed)
    before = (
        np.add.reduce(free, axis=1)[state],
        cpu[state],
        scarce[state] if scarce.any() else None,
    )
    scored = _scored(shape, placements, before, described)
    classes = look.numbers.shape[1]
    result = np.tile(look.blocked, len(cpu))
    np.minimum.at(result, numbers[CLASS] + state * classes, scored)
    by_row: Ints = result.reshape(len(cpu), classes).take(look.of_row, axis=1)
    return by_row


def column_of(
    shape: ShapeScores, look: Classes, node: tuple[Free, int, int], search: Search
) -> Ints:
    """[rows] The same of one state: what is free on devices, of CPU, and the scarcity."""
    free, cpu, scarce = node
    base = shape.load.base(free)[None, :] if shape.scoring.weighs else None
    placements = _put_together(shape, _fitting(shape, look, free, cpu))
    picks = _picked(look, [free], [cpu], search) if look.hard else []
    if picks:
        held = np.array([free], dtype=np.int64)
        placements = _joined(placements, _on_picked(shape, look, (held, base), picks))
    _, numbers, change = placements
    described = None
    if base is not None:
        nodes = np.concatenate([base, change])
        nodes[1:] += base
        steps = np.concatenate([_AS_IT_IS, numbers[STEP]])
        described = Described(nodes, look.allowed(shape, cpu).take(steps))
    scored = _scored(shape, placements, (sum(free), cpu, scarce or None), described)
    result = look.blocked.copy()
    np.minimum.at(result, numbers[CLASS], scored)
    by_row: Ints = result.take(look.of_row)
    return by_row


def _scored(
    shape: ShapeScores,
    placements: Placements,
    before: tuple[Ints | int, Ints | int, Ints | int | None],
    described: Described | None,
) -> Ints:
    """[placements] Keys.

    ``before``: free milli-GPU, milli-CPU and scarcity (None: none is scarce), of each or of all.
    """
    state, numbers, _ = placements
    total, cpu, scarce = before
    outcomes = Outcomes(
        fixed=numbers[FIXED],
        state=state,
        total=total,
        taken=numbers[TAKEN],
        cpu=cpu - numbers[CPU],
        gpu=numbers[GPU],
        paid=None if scarce is None else to_pay(scarce - numbers[LEAST], numbers[PART]),
    )
    return shape.scoring.keys(shape.load, described, outcomes, shape.devices)


def _allowed(
    shape: ShapeScores, look: Classes, cpu: Ints, state: Ints | int, step: Ints
) -> Allowed:
    """What of the target workload the CPU is enough for, before and after placements."""
    steps = len(look.steps)
    before = np.arange(0, len(cpu) * steps, steps)
    left = (cpu[:, None] - look.steps).ravel()
    return shape.load.allowed(left).take(np.concatenate([before, step + state * steps]))


def _fitting(
    shape: ShapeScores, look: Classes, free: Sequence[int], cpu: int
) -> list[tuple[DevicePlacements, int]]:
    """The parts of a state, and how many placements of each the CPU is enough for."""
    if not shape.alike:
        part = look.part(shape, 0)
        return [(part, bisect_right(part.cpu, cpu))]
    known = look.parts
    whole = free.count(DEVICE_MILLI)
    in_use = free[: len(free) - whole]
    parts = [known.get(milli) or look.part(shape, milli) for milli in dict.fromkeys((0, *in_use))]
    if whole:
        used = in_use[-1] if in_use and shape.scoring.shares_first else 0
        parts.append(look.free.get(used) or look.on_free(shape, used))
    if whole > 1:
        parts.append(look.on_whole(shape, whole))
    return [(part, bisect_right(part.cpu, cpu)) for part in parts]


def _put_together(
    shape: ShapeScores, parts: list[tuple[DevicePlacements, int]], state: Ints | int = 0
) -> Placements:
    """On one device, on several that are wholly free, or on none."""
    numbers = np.concatenate([part.numbers[:, :n] for part, n in parts], axis=1)
    change = _NO_CHANGE
    if shape.scoring.weighs:
        change = np.concatenate([part.change[:n] for part, n in parts])
    return Placements(state, numbers, change)


def _picked(
    look: Classes, each: Sequence[Free], cpu: Sequence[int], search: Search
) -> list[StateOutcome]:
    """Devices for the classes that need them picked, in each state where there are any."""
    return [
        (state, at, devices)
        for at, row, ask in look.hard
        for state, devices in picked(ask, row, int(look.numbers[CPU, at]), each, cpu, search)
    ]


def _on_picked(
    shape: ShapeScores, look: Classes, states: tuple[Ints, Small | None], picks: list[StateOutcome]
) -> Placements:
    """On the devices that were picked; ``states``: what is free, and their descriptions."""
    free, base = states
    state = np.array([state for state, _, _ in picks], dtype=np.int64)
    at = np.array([at for _, at, _ in picks], dtype=np.int64)
    left = np.array([p.left for _, _, p in picks], dtype=np.int64)
    rest = np.array([p.free_milli for _, _, p in picks], dtype=np.int64)
    numbers = look.numbers[:SCORED, at]
    if not look.sure:
        size = np.array([p.size for _, _, p in picks], dtype=np.int64)
        numbers[TAKEN] = free[state].sum(axis=1) - rest.sum(axis=1)
        numbers[FIXED] = shape.scoring.fixed(size, numbers[TAKEN])
        numbers[PART] = for_part(numbers[TAKEN])
    change, opens = _NO_CHANGE, None
    if base is not None:
        change = shape.load.bases(rest, alike=shape.alike) - base[state]
        opens = shape.load.opens(change)
        numbers[PART] *= ~opens
    numbers[FIXED] = shape.scoring.placed(numbers[FIXED], left, opens)
    return Placements(state, numbers, change)


def _joined(one: Placements, other: Placements) -> Placements:
    """Both; of one state if ``one`` is."""
    state: Ints | int = 0
    if not isinstance(one.state, int):
        state = np.concatenate([one.state, other.state])
    numbers = np.concatenate([one.numbers, other.numbers], axis=1)
    return Placements(state, numbers, np.concatenate([one.change, other.change]))
