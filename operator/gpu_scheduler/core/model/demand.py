"""A pod kind worked out against one snapshot: where it could ever run, and what it costs at least.

"Could" asks about empty nodes and forgets that a node is closed for the moment; it decides
between *unsatisfiable* and *waiting*, and which nodes a waiting pod keeps borrowers away from.
Worked out once per pod kind, and kept as long as the nodes stay; called by ``plan`` and the
reasons.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.request import PodKind
from gpu_scheduler.core.model.snapshot import Snapshot

MOST_IDENTITIES = 20_000  # pod kinds found without hashing them


class Demand:
    """What the pods of one pod kind need and where they could get it."""

    __slots__ = ("chooser", "could", "least_milli", "pod_kind", "usable")

    def __init__(self, pod_kind: PodKind, snapshot: Snapshot) -> None:
        nodes = snapshot.cluster.nodes
        self.pod_kind = pod_kind
        self.chooser = Chooser(pod_kind, snapshot)
        kinds = [self.chooser.fits_empty(kind) for kind in range(len(snapshot.kinds))]
        anywhere = not pod_kind.where.selector and pod_kind.where.terms is None
        self.could = [
            n
            for n, kind in enumerate(snapshot.kind)
            if kinds[kind]
            and holds(pod_kind, nodes[n])
            and ((anywhere and not nodes[n].taints) or fit.matches(pod_kind.where, nodes[n]))
        ]
        """Nodes that would hold the pod if they were empty and open."""
        self.usable = [n for n in self.could if not nodes[n].closed]
        """Those of them that take pods now."""
        self.least_milli = min(
            (self.chooser.least_milli(kind) for kind in {snapshot.kind[n] for n in self.could}),
            default=pod_kind.nominal_milli,
        )

    @property
    def exact(self) -> bool:
        """Whether every pod costs ``least_milli``, wherever it lands."""
        return not self.chooser.by_size


def holds(pod_kind: PodKind, node: NodeInfo) -> bool:
    """Whether CPU, memory, storage and pod slots of the empty node are enough."""
    return (
        node.pods > 0
        and node.cpu_milli >= pod_kind.cpu_milli
        and node.memory_bytes >= pod_kind.memory_bytes
        and node.ephemeral_bytes >= pod_kind.ephemeral_bytes
    )


class Demands:
    """The demands on one snapshot, by pod kind."""

    __slots__ = ("_by_identity", "_by_pod_kind", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_identity: dict[int, tuple[PodKind, Demand]] = {}  # hashing a pod kind is slow
        self._by_pod_kind: dict[PodKind, Demand] = {}

    def __len__(self) -> int:
        """Distinct pod kinds."""
        return len(self._by_pod_kind)

    def __iter__(self) -> Iterator[Demand]:
        """The demands known so far."""
        return iter(self._by_pod_kind.values())

    def renew(self) -> None:
        """A new cycle begins on the same nodes: the searches get their steps back."""
        if len(self._by_identity) > MOST_IDENTITIES:
            self._by_identity.clear()
        for demand in self._by_pod_kind.values():
            demand.chooser.renew()

    def of(self, pod_kind: PodKind) -> Demand:
        """The demand of a pod kind; equal pod kinds share one."""
        known = self._by_identity.get(id(pod_kind))
        if known is not None:
            return known[1]
        demand = self._by_pod_kind.get(pod_kind)
        if demand is None:
            demand = self._by_pod_kind[pod_kind] = Demand(pod_kind, self._snapshot)
        self._by_identity[id(pod_kind)] = (
            pod_kind,
            demand,
        )  # holding the pod kind keeps its id its own
        return demand
