"""The keys of one pod shape on many nodes of one kind: what is worked out when a pod shape is new.

A lone request on alike devices is tried on all free amounts that occur on a node; anything else
takes the devices that are picked for it. Called by ``table``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.outcome import Described, Outcomes
from gpu_scheduler.core.packing.scoring import for_part, to_pay
from gpu_scheduler.core.packing.several import Search, picked
from gpu_scheduler.core.packing.shapes import PICKED, ShapeRequest, ShapeScores
from gpu_scheduler.core.packing.states import States


def row_of(
    shape: ShapeScores, ask: ShapeRequest, wants: tuple[int, int], states: States, search: Search
) -> Ints:
    """[states] Keys; ``BLOCKED`` where GPU or CPU are not enough.

    Args:
        shape: of the nodes.
        ask: what the pod shape asks there.
        wants: milli-CPU, and the scarcity of the least scarce node that it could use.
        states: of the nodes.
        search: finds devices where best fit does not say which.
    """
    free, cpu, scarce = states
    load, scoring, (cpu_milli, least) = shape.load, shape.scoring, wants
    total = np.add.reduce(free, axis=1)
    base = load.bases(free, alike=shape.alike) if scoring.weighs else None
    result = np.full(len(cpu), keys.BLOCKED)
    if ask.milli == PICKED:
        picks = picked(ask, 0, cpu_milli, list(map(tuple, free.tolist())), cpu.tolist(), search)
        if not picks:
            return result
        state = np.array([state for state, _ in picks], dtype=np.int64)
        rest = np.array([p.free_milli for _, p in picks], dtype=np.int64)
        left = np.array([p.left for _, p in picks], dtype=np.int64)
        size: Ints | int = np.array([p.size for _, p in picks], dtype=np.int64)
        taken: Ints | int = total[state] - rest.sum(axis=1)
        change = None if base is None else load.bases(rest, alike=shape.alike) - base[state]
    else:
        state, held = _fitting(shape, free, cpu >= cpu_milli, ask)
        left, size, taken = held - ask.milli, ask.size, ask.taken
        change = None if base is None else load.change(held, left)
        if change is not None and ask.devices > 1:
            change *= np.int32(ask.devices)
    if not len(state):
        return result
    described, opens, paid = None, None, None
    if base is not None and change is not None:
        opens = load.opens(change)
        allowed = load.allowed(np.concatenate([cpu, cpu - cpu_milli]))
        of_each = np.concatenate([np.arange(len(cpu)), state + len(cpu)])
        described = Described(np.concatenate([base, base[state] + change]), allowed.take(of_each))
    if opens is not None and scarce.any():
        paid = to_pay(scarce[state] - least, for_part(taken) * ~opens)
    outcomes = Outcomes(
        fixed=scoring.placed(scoring.fixed(size, taken), left, opens),
        state=state,
        total=total[state],
        taken=taken,
        cpu=cpu[state] - cpu_milli,
        gpu=int(ask.milli > 0),
        paid=paid,
    )
    np.minimum.at(result, state, scoring.keys(load, described, outcomes, shape.devices))
    return result


def _fitting(shape: ShapeScores, free: Ints, enough: Flags, ask: ShapeRequest) -> tuple[Ints, Ints]:
    """State and what its first device has free, of each placement of a lone request or of none."""
    if not ask.devices:
        state = np.flatnonzero(enough)
        return state, np.zeros_like(state)
    fits = (free >= ask.milli) & enough[:, None]
    fits[:, max(0, shape.devices - ask.devices + 1) :] = False
    fits[:, 1:] &= free[:, 1:] != free[:, :-1]
    state, place = np.nonzero(fits)
    held = free[state, place]
    if shape.scoring.shares_first and ask.milli < DEVICE_MILLI:
        shares = held < DEVICE_MILLI
        shares[:1] = True  # on a free device: where none in use comes before it
        shares[1:] |= state[1:] != state[:-1]
        state, held = state[shares], held[shares]
    return state, held
