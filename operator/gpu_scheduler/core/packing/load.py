"""The typical pod shapes on one kind of node: what a state of such a node costs.

Per device, what the terms need to know of it (what it seats of each need of the target workload,
copies of each pod shape) depends on its free milli alone and stands in a look-up table; a node's is
the sum over its devices. Placing a pod changes one device, or several alike, so its outcome is the
base plus a difference of two rows. In 32 bits: with weights that sum to WEIGHT nothing comes near
2**31. Called by ``column`` and ``row``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints, Small
from gpu_scheduler.core.model.assign import charge
from gpu_scheduler.core.model.devices import accepts
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, NodeShape
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.copies import used
from gpu_scheduler.core.packing.fragmentation import usable
from gpu_scheduler.core.packing.target_workload import TargetWorkload

MOST_COPIES = 1 << 17  # of a pod shape on a node: more than it has milli
NEVER = DEVICE_MILLI + 1  # what a device that does not serve a pod shape would have to have free


@dataclass(frozen=True, slots=True)
class Need:
    """What typical pod shapes ask of the devices of a kind of node: milli per distinct device."""

    milli: tuple[int, ...]
    count: int


class ShapeLoad:
    """The target workload on nodes with the same devices.

    ``devices`` are the distinct devices of the kind; ``tables[i][x]`` describes device ``i`` with
    ``x`` milli free: what of it all needs can use, seats for those of several devices, whether it
    is used in part, copies for all pod shapes.
    """

    def __init__(self, shape: NodeShape, workload: TargetWorkload) -> None:
        self.devices = list(dict.fromkeys(shape))
        self.device_of = [self.devices.index(device) for device in shape]
        pods = [(_need(s, self.devices), s.cpu_milli, w) for s, w in workload.typical if s.devices]
        needs = sorted(dict.fromkeys(need for need, _, _ in pods), key=lambda need: need.count > 1)
        self.steps = np.array(sorted({cpu for _, cpu, _ in pods}), dtype=np.int64)
        self._weight = np.zeros((len(self.steps) + 1, len(needs)), dtype=np.int32)
        for need, cpu, weight in pods:
            self._weight[np.searchsorted(self.steps, cpu) + 1 :, needs.index(need)] += weight
        self._count = np.array([need.count for need in needs if need.count > 1], dtype=np.int32)
        self._count_of = np.array([need.count for need, _, _ in pods], dtype=np.int32)
        self._cpu = np.array([max(1, cpu) for _, cpu, _ in pods], dtype=np.float64)
        gain = [weight * need.count * _charge(need) for need, _, weight in pods]
        self._gain = np.array(gain, dtype=np.int32)
        self._needs = len(needs)
        self._seats = len(needs) + len(self._count)
        need_of = [need for need, _, _ in pods]
        self.tables = [_table(needs, need_of, i) for i in range(len(self.devices))]
        nothing = np.zeros((DEVICE_MILLI + 1, self.width), dtype=np.int32)
        self._each = self.tables[0] if self.tables else nothing
        copies = self.base([DEVICE_MILLI] * len(shape))[self._seats + 1 :] // self._count_of
        self.enough_cpu = int((copies * self._cpu.astype(np.int64)).max(initial=0))
        """Milli-CPU of a node above which typical pods cannot tell how much there is."""

    @property
    def width(self) -> int:
        """Numbers in the description of a node."""
        return self._seats + 1 + len(self._gain)

    def base(self, free_milli: Sequence[int]) -> Small:
        """The description of a node from the free milli of its devices, in their order."""
        if len(self.tables) == 1:
            of_each = self.tables[0].take(free_milli, axis=0)
            found: Small = np.add.reduce(of_each, axis=0, dtype=np.int32)
            return found
        found = np.zeros(self.width, dtype=np.int32)
        for device, free in zip(self.device_of, free_milli, strict=True):
            found += self.tables[device][free]
        return found

    def bases(self, free_milli: Ints, *, alike: bool) -> Small:
        """[nodes, width] The same of many; ``alike``: all their devices are."""
        if not alike:
            return np.stack([self.base(free) for free in free_milli.tolist()])
        found: Small = np.add.reduce(self._each.take(free_milli, axis=0), axis=1, dtype=np.int32)
        return found

    def change(self, held: Ints, left: Ints) -> Small:
        """[devices, width] What descriptions change by where alike devices have less free."""
        found = self._each.take(left, axis=0)
        found -= self._each.take(held, axis=0)
        return found

    def opens(self, change: Small) -> Flags:
        """[placements] Whether more devices of a node are used in part than before."""
        found: Flags = change[:, self._seats] > 0
        return found

    def allowed(self, cpu_milli: Ints) -> "Allowed":
        """What of the workload each amount of free CPU is enough for; a negative one: for none."""
        ranks = self.steps.searchsorted(cpu_milli, side="right")
        # In floating point, where numpy divides faster: exact below 2**53.
        held = np.maximum(cpu_milli, 0)[:, None] / self._cpu
        copies = np.minimum(held, MOST_COPIES).astype(np.int32)
        return Allowed(self._weight.take(ranks, axis=0), copies)

    def usable(self, nodes: Small, weight: Small) -> Small:
        """What typical pods can use of nodes so described, in milli-GPU times WEIGHT."""
        seated, seats = nodes[:, : self._needs], nodes[:, self._needs : self._seats]
        return usable(seated, seats, self._count, weight)

    def used(self, nodes: Small, copies: Small) -> Small:
        """What copies use of nodes so described, in milli-GPU times WEIGHT."""
        by_gpu = nodes[:, self._seats + 1 :]
        if len(self._count):
            by_gpu = by_gpu // self._count_of
        return used(by_gpu, copies, self._gain)


@dataclass(slots=True)
class Allowed:
    """What amounts of free CPU are enough for, a row each.

    Attributes:
        weight: [amounts, needs] of the pod shapes that could run.
        copies: [amounts, pod shapes] that could run at once.
    """

    weight: Small
    copies: Small

    def take(self, rows: Ints) -> "Allowed":
        """The same for some of the amounts, or for some of them several times."""
        return Allowed(self.weight.take(rows, axis=0), self.copies.take(rows, axis=0))


@lru_cache(maxsize=64)
def load_of(shape: NodeShape, workload: TargetWorkload) -> ShapeLoad:
    """The target workload on a kind; the last few are remembered."""
    return ShapeLoad(shape, workload)


def _need(pod_shape: PodShape, devices: list[DeviceType]) -> Need:
    request = pod_shape.devices[0]
    milli = (
        min(charge(request, device.usable_mib), NEVER) if accepts(pod_shape, device) else NEVER
        for device in devices
    )
    return Need(tuple(milli), request.count)


def _charge(need: Need) -> int:
    """Milli that a copy takes of one device; 0 where no device serves."""
    least = min(need.milli, default=NEVER)
    return least if least <= DEVICE_MILLI else 0


def _table(needs: list[Need], need_of: list[Need], device: int) -> Small:
    """[free milli, needs + needs of several + 1 + pod shapes]: see ``ShapeLoad``."""
    free = np.arange(DEVICE_MILLI + 1, dtype=np.int32)[:, None]
    milli = np.array([need.milli[device] for need in needs], dtype=np.int32)
    each = np.array([need.milli[device] for need in need_of], dtype=np.int32)
    several = np.array([need.count > 1 for need in needs], dtype=np.bool_)
    seats = (free >= milli).astype(np.int32)
    copies = free // np.maximum(1, each)
    in_part = ((free > 0) & (free < DEVICE_MILLI)).astype(np.int32)
    return np.concatenate([free * seats, seats[:, several], in_part, copies], axis=1)
