"""What scores need to know of a kind of node. Called by ``column``, ``row`` and ``rows``."""

from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.snapshot import NodeKind
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.classes import PICKED
from gpu_scheduler.core.packing.load import NEVER, load_of
from gpu_scheduler.core.packing.mix import Mix
from gpu_scheduler.core.packing.scoring import Scoring


class KindScores:
    """A kind of node under a mix and a policy; ``alike`` says whether all devices are."""

    def __init__(self, kind: NodeKind, mix: Mix, scoring: Scoring) -> None:
        self.load = load_of(kind, mix)
        self.scoring = scoring
        self.devices = len(kind)
        self.alike = len(set(kind)) <= 1

    def asks(self, chooser: Chooser, kind: int) -> tuple[int, int, int]:
        """Milli, count and rank of a pod kind here; PICKED when ``Chooser`` has to pick."""
        requests = chooser.pod_kind.devices
        if not requests:
            return 0, 0, 0
        if not chooser.eligible(kind):
            return NEVER, 1, 0
        if len(requests) > 1 or not self.alike:
            return PICKED, 1, 0
        seats = chooser.seats(kind)
        if requests[0].count > 1 and seats[0][1] != DEVICE_MILLI:
            return PICKED, 1, 0
        return seats[0][1], requests[0].count, min(keys.MOST_RANKS, seats[0][3])
