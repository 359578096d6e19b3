"""The typical shapes on one kind of node: what a state of such a node costs.

Per device, what fragmentation needs to know of it (scraps, seats, copies, for each need of the
mix) depends on its free milli alone and stands in a look-up table; a node's is the sum over its
devices. Placing a pod changes one device, or several alike, so its outcome is the base plus a
difference of two rows. Called by ``states``.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.assign import share
from gpu_scheduler.core.devices import accepts
from gpu_scheduler.core.packing.copies import left_unused
from gpu_scheduler.core.packing.fragmentation import fragmented
from gpu_scheduler.core.packing.mix import Mix
from gpu_scheduler.core.request import Shape
from gpu_scheduler.core.snapshot import DeviceKind, NodeKind
from gpu_scheduler.core.units import DEVICE_MILLI

Ints = npt.NDArray[np.int64]

NEVER = DEVICE_MILLI + 1  # what a device that does not serve a shape would have to have free


@dataclass(frozen=True, slots=True)
class Need:
    """What typical shapes ask of the devices of a kind of node: milli per distinct device."""

    milli: tuple[int, ...]
    count: int


class KindLoad:
    """The mix on nodes with the same devices.

    ``devices`` are the distinct devices of the kind; ``tables[i][x]`` describes device ``i`` with
    ``x`` milli free: scraps, seats and copies, each for all needs.
    """

    def __init__(self, kind: NodeKind, mix: Mix) -> None:
        self.devices = list(dict.fromkeys(kind))
        self.device_of = [self.devices.index(device) for device in kind]
        needs: dict[Need, int] = {}
        shapes: list[tuple[int, int, int]] = []  # need, CPU, weight
        for shape, weight in mix.typical:
            if shape.devices:
                need = _need(shape, self.devices)
                shapes.append((needs.setdefault(need, len(needs)), shape.cpu_milli, weight))
        self._count = np.array([need.count for need in needs], dtype=np.int64)
        self._alone = bool((self._count == 1).all())
        self.tables = [_table(list(needs), i) for i in range(len(self.devices))]
        self.steps = np.array(sorted({cpu for _, cpu, _ in shapes}), dtype=np.int64)
        self._weight = np.zeros((len(self.steps) + 1, len(needs)), dtype=np.int64)
        for need_at, cpu, weight in shapes:
            self._weight[np.searchsorted(self.steps, cpu) + 1 :, need_at] += weight
        self._need_of = np.array([need_at for need_at, _, _ in shapes], dtype=np.int64)
        self._cpu = np.array([max(1, cpu) for _, cpu, _ in shapes], dtype=np.int64)
        charge = np.array([need.count * _charge(need) for need in needs], dtype=np.int64)
        weights = np.array([weight for _, _, weight in shapes], dtype=np.int64)
        self._gain = weights * charge[self._need_of] if shapes else weights

    @property
    def width(self) -> int:
        """Numbers in the description of a node."""
        return 3 * len(self._count)

    def base(self, free_milli: list[int]) -> Ints:
        """The description of a node from the free milli of its devices, in their order."""
        rows = [self.tables[self.device_of[d]][free] for d, free in enumerate(free_milli)]
        found: Ints = np.sum(rows, axis=0)
        return found

    def ranks(self, cpu_milli: Ints) -> Ints:
        """For each free CPU, how many of the mix's CPU requests are within it."""
        return np.searchsorted(self.steps, cpu_milli, side="right")

    def by_cpu(self, cpu_milli: Ints) -> Ints:
        """[states, shapes] Copies of each typical shape for which the CPU is enough."""
        found: Ints = cpu_milli[:, None] // self._cpu
        return found

    def fragmentation(self, nodes: Ints, total: Ints, rank: Ints) -> Ints:
        """F_n of nodes so described, in milli-GPU times WEIGHT."""
        n = len(self._count)
        scraps, seats = nodes[:, :n], nodes[:, n : 2 * n]
        return fragmented(scraps, seats, self._count, total, self._weight[rank])

    def unused(self, nodes: Ints, total: Ints, by_cpu: Ints) -> Ints:
        """What copies leave unused on nodes so described, in milli-GPU times WEIGHT."""
        by_gpu = nodes[:, 2 * len(self._count) :]
        if not self._alone:
            by_gpu = by_gpu // self._count
        return left_unused(by_gpu[:, self._need_of], by_cpu, self._gain, total)


@lru_cache(maxsize=64)
def load_of(kind: NodeKind, mix: Mix) -> KindLoad:
    """The mix on a kind; the last few are remembered."""
    return KindLoad(kind, mix)


def _need(shape: Shape, devices: list[DeviceKind]) -> Need:
    request = shape.devices[0]
    milli = (
        min(share(request, device.usable_mib)[0], NEVER) if accepts(shape, device) else NEVER
        for device in devices
    )
    return Need(tuple(milli), request.count)


def _charge(need: Need) -> int:
    """Milli that a copy takes of one device; 0 where no device serves."""
    least = min(need.milli, default=NEVER)
    return least if least <= DEVICE_MILLI else 0


def _table(needs: list[Need], device: int) -> Ints:
    """[free milli, 3 x needs]: scraps, seats, copies of one device."""
    free = np.arange(DEVICE_MILLI + 1, dtype=np.int64)[:, None]
    milli = np.array([need.milli[device] for need in needs], dtype=np.int64)[None, :]
    seats = (free >= milli).astype(np.int64)
    return np.concatenate([free * (1 - seats), seats, free // np.maximum(1, milli)], axis=1)
