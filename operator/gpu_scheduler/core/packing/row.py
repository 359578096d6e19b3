"""The keys of one pod shape on many nodes of one kind: what is worked out when a pod shape is new.

A lone request on alike devices is tried on all free amounts that occur on a node; anything else
takes the devices that are picked for it. Called by ``table``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints, Small
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.outcome import Described, Outcomes
from gpu_scheduler.core.packing.policy import OPENING_MILLI
from gpu_scheduler.core.packing.scoring import opened, parts, to_pay
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
    result, after = np.full(len(cpu), keys.BLOCKED), None
    if ask.milli == PICKED:
        picks = picked(ask, 0, cpu_milli, list(map(tuple, free.tolist())), cpu.tolist(), search)
        if not picks:
            return result
        state = np.array([state for state, _ in picks], dtype=np.int64)
        rest = np.array([p.free_milli for _, p in picks], dtype=np.int64)
        left = np.array([p.left for _, p in picks], dtype=np.int64)
        size: Ints | int = np.array([p.size for _, p in picks], dtype=np.int64)
        taken: Ints | int = total[state] - rest.sum(axis=1)
        opens = opened(free[state], rest)
        if base is not None:
            after = load.bases(rest, alike=shape.alike)
    else:
        state, held = _fitting(shape, free, cpu >= cpu_milli, ask)
        left, size, taken = held - ask.milli, ask.size, ask.taken
        opens = OPENING_MILLI * ((held == DEVICE_MILLI) & (left > 0))
        if base is not None:
            after = _after(shape, base[state], held, ask)
    if not len(state):
        return result
    described = None
    if base is not None and after is not None:
        allowed = load.allowed(np.concatenate([cpu, cpu - cpu_milli]))
        of_each = np.concatenate([np.arange(len(cpu)), state + len(cpu)])
        described = Described(np.concatenate([base, after]), allowed.take(of_each))
    outcomes = Outcomes(
        fixed=scoring.with_left(scoring.fixed(size, taken), left),
        state=state,
        total=total[state],
        taken=taken,
        cpu=cpu[state] - cpu_milli,
        gpu=int(ask.milli > 0),
        paid=to_pay(scarce[state] - least, opens, parts(taken, opens)),
    )
    np.minimum.at(result, state, scoring.keys(load, described, outcomes, shape.devices))
    return result


def _after(shape: ShapeScores, before: Small, held: Ints, ask: ShapeRequest) -> Small:
    """What descriptions become where devices that held so much serve a lone request."""
    if not ask.devices:
        return before
    change = shape.load.change(held, held - ask.milli)
    if ask.devices > 1:
        change *= np.int32(ask.devices)
    before += change
    return before


def _fitting(shape: ShapeScores, free: Ints, enough: Flags, ask: ShapeRequest) -> tuple[Ints, Ints]:
    """State and what its first device has free, of each placement of a lone request or of none."""
    if not ask.devices:
        state = np.flatnonzero(enough)
        return state, np.zeros_like(state)
    fits = (free >= ask.milli) & enough[:, None]
    fits[:, max(0, shape.devices - ask.devices + 1) :] = False
    fits[:, 1:] &= free[:, 1:] != free[:, :-1]
    if shape.scoring.shares_first and ask.milli < DEVICE_MILLI:
        used = np.where(free < DEVICE_MILLI, free, 0).max(axis=1, initial=0)
        fits &= (free < DEVICE_MILLI) | (used < ask.milli)[:, None]
    state, place = np.nonzero(fits)
    return state, free[state, place]
