"""What scores need to know of a kind of node, and what pod shapes ask of it. Called by ``rows``."""

from typing import NamedTuple

from gpu_scheduler.core.model.assign import charge
from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.snapshot import NodeShape
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.load import NEVER, load_of
from gpu_scheduler.core.packing.scoring import Scoring
from gpu_scheduler.core.packing.target_workload import TargetWorkload

Steps = tuple[tuple[int, int], ...]  # milli of a device, and how many devices: a request each

PICKED = NEVER + 1  # instead of milli: devices have to be picked


class ShapeRequest(NamedTuple):
    """What a pod shape asks of a kind of node.

    Attributes:
        milli: per device; NEVER where the kind does not serve, PICKED where devices are picked.
        devices: how many; 0 for pods without a GPU.
        size: rank of the device, for requests in MiB.
        taken: milli-GPU in all.
        steps: how devices are picked by best fit; empty where ``Chooser`` has to pick them.
    """

    milli: int
    devices: int
    size: int = 0
    taken: int = 0
    steps: Steps = ()

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """All but the steps."""
        return self[:4]


_NO_GPU, _NO_USE, BY_CHOOSER = ShapeRequest(0, 0), ShapeRequest(NEVER, 1), ShapeRequest(PICKED, 1)


class ShapeScores:
    """A kind of node under a mix and a policy; ``alike`` says whether all devices are."""

    def __init__(self, shape: NodeShape, workload: TargetWorkload, scoring: Scoring) -> None:
        self.load = load_of(shape, workload)
        self.scoring = scoring
        self.devices = len(shape)
        self.alike = len(set(shape)) <= 1
        self.enough_cpu = self.load.enough_cpu if scoring.weighs else 1 << 62
        self._shape = shape

    def shape_requests(self, chooser: Chooser, shape: int) -> ShapeRequest:
        """What a pod shape asks here; ``shape``: the number by which ``Chooser`` knows it."""
        requests = chooser.pod_shape.devices
        if not requests:
            return _NO_GPU
        if not chooser.eligible(shape):
            return _NO_USE
        if not self.alike:
            return BY_CHOOSER
        device = self._shape[0]
        order = sorted(requests, key=lambda r: (-r.milli, -r.mib))  # as ``assign`` has it
        steps = tuple((charge(r, device.usable_mib), r.count) for r in order)
        size = min(keys.MOST_RANKS, device.rank) if chooser.by_size else 0
        taken = sum(milli * count for milli, count in steps)
        (milli, count), *others = steps
        if others and chooser.by_size:
            return BY_CHOOSER  # together they may take less than the sum of what they cost
        if others or (count > 1 and milli != DEVICE_MILLI):
            return ShapeRequest(PICKED, 1, size, taken, steps)
        return ShapeRequest(milli, count, size, taken, steps)
