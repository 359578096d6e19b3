"""The keys of one pod kind on many nodes of one kind: what is worked out when a pod kind is new.

A lone request on alike devices is tried on all free amounts that occur on a node; anything else
takes the devices that ``Chooser`` picks by best fit. Called by ``table``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints, Small
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.kinds import KindScores
from gpu_scheduler.core.packing.outcome import Described, Outcomes, Picked


def row_keys(
    kind: KindScores,
    asks: tuple[int, int, int],
    cpu_milli: int,
    nodes: tuple[Ints, Ints, Ints],
    picked: tuple[list[Picked], list[tuple[int, int]]],
) -> Ints:
    """[nodes] Keys; ``BLOCKED`` where GPU or CPU are not enough.

    Args:
        kind: of the nodes.
        asks: milli, count and size of the pod kind there (see ``Look``).
        cpu_milli: what the pod kind wants beside.
        nodes: [nodes, devices] free milli, rising where devices are alike; [nodes] free CPU;
            [nodes] milli-GPU to pay for scarcity.
        picked: placements that ``Chooser`` worked out, instead of trying devices; and for each
            node that can be used so its number and that of the placement.
    """
    free, cpu, scarce = nodes
    milli, count, size_number = asks
    total = free.sum(axis=1)
    base = _base(kind, free) if kind.scoring.weighs else None
    after: Small | None = None
    placements, where = picked
    if placements:
        state, which = np.array(where, dtype=np.int64).T
        left = np.array([p.left for p in placements], dtype=np.int64)[which]
        rest = np.array([sum(p.free_milli) for p in placements], dtype=np.int64)[which]
        taken = total[state] - rest
        size = np.array([p.size for p in placements], dtype=np.int64)[which]
        if base is not None:
            after = np.stack([kind.load.base(p.free_milli) for p in placements])[which]
    else:
        state, place = _fitting(kind, free, cpu >= cpu_milli, milli, count)
        held = free[state, place] if count else np.zeros_like(state)
        left, taken = held - milli, np.full(len(state), milli * count)
        size = np.full(len(state), size_number)
        if base is not None:
            after = base[state]
            if count:
                table = kind.load.tables[0]
                after = after + (table[held - milli] - table[held]) * np.int32(count)
    result = np.full(len(cpu), keys.BLOCKED)
    if len(state):
        described = None
        if base is not None and after is not None:
            amounts = np.maximum(0, np.concatenate([cpu, cpu - cpu_milli]))
            of_each = np.concatenate([np.arange(len(cpu)), state + len(cpu)])
            allowed = kind.load.allowed(amounts).take(of_each)
            described = Described(np.concatenate([base, after]), allowed)
        outcomes = Outcomes(
            fixed=kind.scoring.fixed(left, size, taken),
            state=state,
            total=total[state],
            taken=taken,
            cpu=cpu[state] - cpu_milli,
            gpu=np.full(len(state), int(milli > 0)),
            scarce=scarce[state],
        )
        found = kind.scoring.keys(kind.load, described, outcomes, kind.devices)
        np.minimum.at(result, state, found)
    return result


def _fitting(
    kind: KindScores, free: Ints, enough: Flags, milli: int, count: int
) -> tuple[Ints, Ints]:
    """State and first device of each placement of a lone request, or of none."""
    if not count:
        state = np.flatnonzero(enough)
        return state, np.zeros_like(state)
    fits = (free >= milli) & enough[:, None]
    fits[:, kind.devices - count + 1 :] = False
    fits[:, 1:] &= free[:, 1:] != free[:, :-1]
    state, place = np.nonzero(fits)
    return state, place


def _base(kind: KindScores, free: Ints) -> Small:
    """The nodes as they are."""
    if not kind.devices:
        return np.zeros((len(free), kind.load.width), dtype=np.int32)
    if not kind.alike:
        return np.stack([kind.load.base(row) for row in free.tolist()])
    found: Small = kind.load.tables[0][free].sum(axis=1, dtype=np.int32)
    return found
