"""A shape worked out against one snapshot: where it could ever run, and what it costs at least.

"Could" asks about empty nodes and forgets that a node is closed for the moment; it decides
between *unsatisfiable* and *waiting*, and which nodes a waiting pod keeps borrowers away from.
Worked out once per shape, and kept as long as the nodes stay; called by ``plan`` and the reasons.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.request import Shape
from gpu_scheduler.core.model.snapshot import Snapshot

MOST_IDENTITIES = 20_000  # shapes found without hashing them


class Demand:
    """What the pods of one shape need and where they could get it."""

    __slots__ = ("chooser", "could", "least_milli", "shape", "usable")

    def __init__(self, shape: Shape, snapshot: Snapshot) -> None:
        nodes = snapshot.cluster.nodes
        self.shape = shape
        self.chooser = Chooser(shape, snapshot)
        kinds = [self.chooser.fits_empty(kind) for kind in range(len(snapshot.kinds))]
        anywhere = not shape.where.selector and shape.where.terms is None
        self.could = [
            n
            for n, kind in enumerate(snapshot.kind)
            if kinds[kind]
            and holds(shape, nodes[n])
            and ((anywhere and not nodes[n].taints) or fit.matches(shape.where, nodes[n]))
        ]
        """Nodes that would hold the pod if they were empty and open."""
        self.usable = [n for n in self.could if not nodes[n].closed]
        """Those of them that take pods now."""
        self.least_milli = min(
            (self.chooser.least_milli(kind) for kind in {snapshot.kind[n] for n in self.could}),
            default=shape.nominal_milli,
        )

    @property
    def exact(self) -> bool:
        """Whether every pod costs ``least_milli``, wherever it lands."""
        return not self.chooser.by_size


def holds(shape: Shape, node: NodeInfo) -> bool:
    """Whether CPU, memory, storage and pod slots of the empty node are enough."""
    return (
        node.pods > 0
        and node.cpu_milli >= shape.cpu_milli
        and node.memory_bytes >= shape.memory_bytes
        and node.ephemeral_bytes >= shape.ephemeral_bytes
    )


class Demands:
    """The demands on one snapshot, by shape."""

    __slots__ = ("_by_identity", "_by_shape", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_identity: dict[int, tuple[Shape, Demand]] = {}  # hashing a shape is slow
        self._by_shape: dict[Shape, Demand] = {}

    def __len__(self) -> int:
        """Distinct shapes."""
        return len(self._by_shape)

    def __iter__(self) -> Iterator[Demand]:
        """The demands known so far."""
        return iter(self._by_shape.values())

    def renew(self) -> None:
        """A new cycle begins on the same nodes: the searches get their steps back."""
        if len(self._by_identity) > MOST_IDENTITIES:
            self._by_identity.clear()
        for demand in self._by_shape.values():
            demand.chooser.renew()

    def of(self, shape: Shape) -> Demand:
        """The demand of a shape; equal shapes share one."""
        known = self._by_identity.get(id(shape))
        if known is not None:
            return known[1]
        demand = self._by_shape.get(shape)
        if demand is None:
            demand = self._by_shape[shape] = Demand(shape, self._snapshot)
        self._by_identity[id(shape)] = (shape, demand)  # holding the shape keeps its id its own
        return demand
