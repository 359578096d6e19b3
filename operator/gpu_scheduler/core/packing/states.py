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
from gpu_scheduler.core.packing.look import MOST_AMOUNTS, PICKED, Look
from gpu_scheduler.core.packing.mix import Mix
from gpu_scheduler.core.packing.scoring import Described, Outcomes, Scoring
from gpu_scheduler.core.snapshot import NodeKind
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Picked:
    """One placement worked out by ``Chooser``: state, class, free milli afterwards, left, size."""

    state: int
    at: int
    free_milli: list[int]
    left: int
    size: int


class KindScores:
    """Keys of shapes on nodes of one kind."""

    def __init__(self, kind: NodeKind, mix: Mix, scoring: Scoring) -> None:
        self.load = load_of(kind, mix)
        self.alike = len(set(kind)) <= 1
        self._scoring = scoring
        self.devices = len(kind)

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

    def keys(self, free: Ints, cpu: Ints, scarce: Ints, look: Look, picked: list[Picked]) -> Ints:
        """[states, classes] Keys; ``BLOCKED`` where GPU or CPU are not enough.

        Args:
            free: [states, devices] free milli, rising along the devices where they are alike.
            cpu: [states] free milli-CPU.
            scarce: [states] scarcity of the nodes, in milli-GPU.
            look: the shapes on this kind.
            picked: placements that ``Chooser`` worked out.
        """
        classes = len(look.milli)
        result = np.full(len(cpu) * classes, keys.BLOCKED)
        state, at, place = self._fitting(free, cpu, look)
        total = free.sum(axis=1)
        milli, count, size = look.milli[at], look.count[at], look.size[at]
        if self.devices:
            held = free[state, place]
            left = (held - milli) * (count > 0)
        else:
            held = left = np.zeros_like(state)
        rest = total[state] - milli * count
        base = self._base(free)
        nodes = None if base is None else self._after(base, state, held, milli, count)
        if picked:
            state = np.append(state, [p.state for p in picked])
            at = np.append(at, [p.at for p in picked])
            left = np.append(left, [p.left for p in picked])
            rest = np.append(rest, [sum(p.free_milli) for p in picked])
            size = np.append(size, [p.size for p in picked])
            if nodes is not None:
                each = {id(p.free_milli): p.free_milli for p in picked}  # many share one
                bases = {number: self.load.base(free_milli) for number, free_milli in each.items()}
                nodes = np.concatenate([nodes, [bases[id(p.free_milli)] for p in picked]])
        if not len(state):
            return result.reshape(len(cpu), classes)
        steps = len(look.steps)
        cpu_left = (cpu[:, None] - look.steps).ravel()
        cpu_at = state * steps + look.step_of[at]
        described = None
        if base is not None and nodes is not None:
            ranks, by_cpu = self._cpu(cpu_left, look)
            described = Described(
                np.concatenate([base, nodes]),
                np.concatenate([total, rest]),
                np.concatenate([np.arange(len(cpu)) * steps, cpu_at]),
                ranks,
                by_cpu,
            )
        paid = np.maximum(0, scarce[state] - look.least_scarce[at])
        gpu = look.milli[at] > 0
        after = Outcomes(state, rest, left, cpu_left[cpu_at], gpu, paid, size)
        found = self._scoring.keys(self.load, described, after, self.devices)
        np.minimum.at(result, state * classes + at, found)
        return result.reshape(len(cpu), classes)

    def _fitting(self, free: Ints, cpu: Ints, look: Look) -> tuple[Ints, Ints, Ints]:
        """State, class and first device of the placements of lone requests and of none."""
        enough = cpu[:, None] >= look.cpu_milli
        if not self.devices:
            state, at = np.nonzero(enough & (look.milli == 0))
            return state, at, np.zeros_like(state)
        fits = free[:, None, :] >= look.milli[:, None]
        fits &= look.starts & enough[:, :, None]
        fits[:, :, 1:] &= (free[:, 1:] != free[:, :-1])[:, None, :]
        state, at, place = np.nonzero(fits)
        return state, at, place

    def _cpu(self, cpu_left: Ints, look: Look) -> tuple[Ints, Ints]:
        """Amounts of CPU as the mix sees them; those of one node are remembered."""
        if len(cpu_left) > len(look.steps):
            return self.load.ranks(cpu_left), self.load.by_cpu(cpu_left)
        amount = int(cpu_left[0])  # the first step is 0
        found = look.known.get(amount)
        if found is None:
            if len(look.known) >= MOST_AMOUNTS:
                look.known.clear()
            found = self.load.ranks(cpu_left), self.load.by_cpu(cpu_left)
            look.known[amount] = found
        return found

    def _base(self, free: Ints) -> Ints | None:
        """The nodes as they are, where the policy wants them described."""
        if not self._scoring.weighs:
            return None
        if not self.devices:
            return np.zeros((len(free), self.load.width), dtype=np.int64)
        if not self.alike:
            return np.stack([self.load.base(row) for row in free.tolist()])
        found: Ints = self.load.tables[0][free].sum(axis=1)
        return found

    def _after(self, base: Ints, state: Ints, held: Ints, milli: Ints, count: Ints) -> Ints:
        """The nodes after the placements of lone requests and of none."""
        nodes: Ints = base[state]
        if self.devices and self.alike:
            table = self.load.tables[0]
            nodes += (table[held - milli] - table[held]) * count[:, None]
        return nodes
