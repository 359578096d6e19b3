"""Scores of shapes on nodes of one kind, for many states or many shapes at once.

A lone request on alike devices is worked out for all free amounts that occur on the node; such
outcomes are differences of look-up rows. Everything else (several requests in a pod, several
shares at once, nodes with different devices) takes the devices that ``Chooser`` picks by best fit
and is described from scratch. Called by ``table``.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.devices import Chooser
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.load import NEVER, load_of
from gpu_scheduler.core.packing.mix import Mix
from gpu_scheduler.core.packing.scoring import Described, Outcomes, Scoring
from gpu_scheduler.core.snapshot import NodeKind
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

PICKED = NEVER + 1


@dataclass(slots=True)
class Lone:
    """How shapes look on one kind: milli per device (or NEVER, or PICKED), count, size.

    ``hard`` lists those that are PICKED.
    """

    milli: Ints
    count: Ints
    size: Ints
    hard: list[int]


@dataclass(slots=True)
class Wants:
    """The CPU that shapes want, its distinct amounts (0 first), and who wants no GPU."""

    cpu_milli: Ints
    plain: Flags
    steps: Ints
    step_of: Ints

    @classmethod
    def of(cls, cpu_milli: Ints, plain: Flags) -> "Wants":
        """With the distinct amounts worked out."""
        steps, step_of = np.unique(np.append(0, cpu_milli), return_inverse=True)
        return cls(cpu_milli, plain, steps, step_of[1:])


@dataclass(slots=True)
class Picked:
    """One placement worked out by ``Chooser``: state, shape, free milli afterwards, left, size."""

    state: int
    shape: int
    free_milli: list[int]
    left: int
    size: int


class KindScores:
    """Keys of shapes on nodes of one kind."""

    def __init__(self, kind: NodeKind, mix: Mix, scoring: Scoring) -> None:
        self.load = load_of(kind, mix)
        self.alike = len(set(kind)) <= 1
        self._scoring = scoring
        self._devices = len(kind)
        self._offsets = np.arange(self._devices)

    def lone(self, chooser: Chooser, kind: int, size_of: dict[int, int]) -> tuple[int, int, int]:
        """Milli, count and size of a shape here; PICKED when ``Chooser`` has to pick."""
        requests = chooser.shape.devices
        if not requests:
            return 0, 0, 0
        if not chooser.eligible(kind):
            return NEVER, 1, 0
        if len(requests) > 1 or not self.alike:
            return PICKED, 1, 0
        seats = chooser.seats(kind)
        if requests[0].count > 1 and seats[0][1] != DEVICE_MILLI:
            return PICKED, 1, 0
        return seats[0][1], requests[0].count, size_of.get(seats[0][3], 0)

    def keys(
        self,
        free: Ints,
        cpu: Ints,
        scarce: Ints,
        lone: Lone,
        wants: Wants,
        picked: list[Picked],
    ) -> Ints:
        """[states, shapes] Keys; ``BLOCKED`` where GPU or CPU are not enough.

        Args:
            free: [states, devices] free milli, rising along the devices where they are alike.
            cpu: [states] free milli-CPU.
            scarce: [states, shapes] milli-GPU to pay for the node.
            lone: the shapes on this kind.
            wants: the rest of what they want.
            picked: placements that ``Chooser`` worked out.
        """
        shapes = len(lone.milli)
        result = np.full(len(cpu) * shapes, keys.BLOCKED)
        state, shape, place = self._fitting(free, cpu, lone, wants)
        total = free.sum(axis=1)
        milli, count, size = lone.milli[shape], lone.count[shape], lone.size[shape]
        gpu = ~wants.plain[shape]
        if self._devices:
            held = free[state, place]
            left = (held - milli) * gpu
        else:
            held = left = np.zeros_like(state)
        rest = total[state] - milli * count
        base = self._base(free)
        nodes = None if base is None else self._after(base, state, held, milli, count)
        if picked:
            state = np.append(state, [p.state for p in picked])
            shape = np.append(shape, [p.shape for p in picked])
            left = np.append(left, [p.left for p in picked])
            rest = np.append(rest, [sum(p.free_milli) for p in picked])
            size = np.append(size, [p.size for p in picked])
            gpu = ~wants.plain[shape]
            if nodes is not None:
                each = {id(p.free_milli): p.free_milli for p in picked}  # many share one
                bases = {number: self.load.base(free_milli) for number, free_milli in each.items()}
                nodes = np.concatenate([nodes, [bases[id(p.free_milli)] for p in picked]])
        if len(state):
            steps = len(wants.steps)
            cpu_left = (cpu[:, None] - wants.steps).ravel()
            cpu_at = state * steps + wants.step_of[shape]
            described = None
            if base is not None and nodes is not None:
                described = Described(
                    np.concatenate([base, nodes]),
                    np.concatenate([total, rest]),
                    cpu_left,
                    np.concatenate([np.arange(len(cpu)) * steps, cpu_at]),
                )
            cost = scarce[state, shape]
            after = Outcomes(state, rest, left, cpu_left[cpu_at], gpu, cost, size)
            found = self._scoring.keys(self.load, described, after, self._devices)
            np.minimum.at(result, state * shapes + shape, found)
        return result.reshape(len(cpu), shapes)

    def _fitting(self, free: Ints, cpu: Ints, lone: Lone, wants: Wants) -> tuple[Ints, Ints, Ints]:
        """State, shape and first device of the placements of lone requests and of none."""
        enough = cpu[:, None] >= wants.cpu_milli
        if not self._devices:
            state, shape = np.nonzero(enough & wants.plain)
            return state, shape, np.zeros_like(state)
        fits = free[:, None, :] >= lone.milli[:, None]
        fits &= enough[:, :, None]
        fits &= self._offsets + lone.count[:, None] <= self._devices
        fits[:, :, 1:] &= (free[:, 1:] != free[:, :-1])[:, None, :]
        fits[:, wants.plain, 1:] = False
        state, shape, place = np.nonzero(fits)
        return state, shape, place

    def _base(self, free: Ints) -> Ints | None:
        """The nodes as they are, where the policy wants them described."""
        if not self._scoring.weighs:
            return None
        if not self._devices:
            return np.zeros((len(free), self.load.width), dtype=np.int64)
        if not self.alike:
            return np.stack([self.load.base(row) for row in free.tolist()])
        found: Ints = self.load.tables[0][free].sum(axis=1)
        return found

    def _after(self, base: Ints, state: Ints, held: Ints, milli: Ints, count: Ints) -> Ints:
        """The nodes after the placements of lone requests and of none."""
        nodes: Ints = base[state]
        if self._devices and self.alike:
            table = self.load.tables[0]
            nodes += (table[held - milli] - table[held]) * count[:, None]
        return nodes
