"""The typical shapes on one kind of node: what a state of such a node costs.

Per device, what the terms need to know of it (scraps and seats for each need of the mix, copies for
each shape) depends on its free milli alone and stands in a look-up table; a node's is the sum over
its devices. Placing a pod changes one device, or several alike, so its outcome is the base plus a
difference of two rows. In 32 bits: with weights that sum to WEIGHT nothing comes near 2**31.
Called by ``column`` and ``row``.
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
Small = npt.NDArray[np.int32]

MOST_COPIES = 1 << 17  # of a shape on a node: more than it has milli
NEVER = DEVICE_MILLI + 1  # what a device that does not serve a shape would have to have free


@dataclass(frozen=True, slots=True)
class Need:
    """What typical shapes ask of the devices of a kind of node: milli per distinct device."""

    milli: tuple[int, ...]
    count: int


class KindLoad:
    """The mix on nodes with the same devices.

    ``devices`` are the distinct devices of the kind; ``tables[i][x]`` describes device ``i`` with
    ``x`` milli free: scraps and seats for all needs, copies for all shapes.
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
        self.steps = np.array(sorted({cpu for _, cpu, _ in shapes}), dtype=np.int64)
        self._weight = np.zeros((len(self.steps) + 1, len(needs)), dtype=np.int32)
        for need_at, cpu, weight in shapes:
            self._weight[np.searchsorted(self.steps, cpu) + 1 :, need_at] += weight
        every = list(needs)
        need_of = [every[need_at] for need_at, _, _ in shapes]
        self._count = np.array([need.count for need in every], dtype=np.int32)
        self._count_of = np.array([need.count for need in need_of], dtype=np.int32)
        self._alone = bool((self._count == 1).all())
        self._cpu = np.array([max(1, cpu) for _, cpu, _ in shapes], dtype=np.int64)
        gain = [w * n.count * _charge(n) for (_, _, w), n in zip(shapes, need_of, strict=True)]
        self._gain = np.array(gain, dtype=np.int32)
        self.tables = [_table(every, need_of, i) for i in range(len(self.devices))]

    @property
    def width(self) -> int:
        """Numbers in the description of a node."""
        return 2 * len(self._count) + len(self._gain)

    def base(self, free_milli: list[int]) -> Small:
        """The description of a node from the free milli of its devices, in their order."""
        if len(self.tables) == 1:
            found: Small = self.tables[0][free_milli].sum(axis=0, dtype=np.int32)
            return found
        found = np.zeros(self.width, dtype=np.int32)
        for device, free in zip(self.device_of, free_milli, strict=True):
            found += self.tables[device][free]
        return found

    def ranks(self, cpu_milli: Ints) -> Ints:
        """For each free CPU, how many of the mix's CPU requests are within it."""
        return np.searchsorted(self.steps, cpu_milli, side="right")

    def by_cpu(self, cpu_milli: Ints) -> Small:
        """[states, shapes] Copies of each typical shape for which the CPU is enough."""
        found: Small = np.minimum(cpu_milli[:, None] // self._cpu, MOST_COPIES).astype(np.int32)
        return found

    def fragmentation(self, nodes: Small, total: Small, rank: Ints) -> Small:
        """F_n of nodes so described, in milli-GPU times WEIGHT."""
        n = len(self._count)
        scraps, seats = nodes[:, :n], nodes[:, n : 2 * n]
        return fragmented(scraps, seats, self._count, total, self._weight[rank])

    def unused(self, nodes: Small, total: Small, by_cpu: Small) -> Small:
        """What copies leave unused on nodes so described, in milli-GPU times WEIGHT."""
        by_gpu = nodes[:, 2 * len(self._count) :]
        if not self._alone:
            by_gpu = by_gpu // self._count_of
        return left_unused(by_gpu, by_cpu, self._gain, total)


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


def _table(needs: list[Need], need_of: list[Need], device: int) -> Small:
    """[free milli, needs + needs + shapes]: scraps, seats, copies of one device."""
    free = np.arange(DEVICE_MILLI + 1, dtype=np.int32)[:, None]
    milli = np.array([need.milli[device] for need in needs], dtype=np.int32)
    each = np.array([need.milli[device] for need in need_of], dtype=np.int32)
    seats = (free >= milli).astype(np.int32)
    return np.concatenate([free * (1 - seats), seats, free // np.maximum(1, each)], axis=1)
