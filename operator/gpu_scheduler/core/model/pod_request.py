"""A pod shape worked out against one snapshot: where it could ever run, and what it costs at least.

"Could" asks about empty nodes and forgets that a node is closed for the moment; it decides
between *unsatisfiable* and *waiting*, and which nodes a waiting pod keeps borrowers away from.
Worked out once per pod shape, and kept as long as the nodes stay; called by ``plan`` and the
reasons.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.devices import Chooser
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import Snapshot

MOST_IDENTITIES = 20_000  # pod shapes found without hashing them


class PodRequest:
    """What the pods of one pod shape need and where they could get it."""

    __slots__ = ("chooser", "could", "least_milli", "pod_shape", "usable")

    def __init__(self, pod_shape: PodShape, snapshot: Snapshot) -> None:
        nodes = snapshot.cluster.nodes
        self.pod_shape = pod_shape
        self.chooser = Chooser(pod_shape, snapshot)
        shapes = [self.chooser.fits_empty(kind) for kind in range(len(snapshot.node_shapes))]
        anywhere = not pod_shape.where.selector and pod_shape.where.terms is None
        self.could = [
            n
            for n, kind in enumerate(snapshot.node_shape)
            if shapes[kind]
            and holds(pod_shape, nodes[n])
            and ((anywhere and not nodes[n].taints) or fit.matches(pod_shape.where, nodes[n]))
        ]
        """Nodes that would hold the pod if they were empty and open."""
        needed = pod_shape.needed_isolation
        self.usable = [
            n
            for n in self.could
            if not nodes[n].unschedulable and needed not in nodes[n].failed_isolation
        ]
        """Those of them that take pods now."""
        self.least_milli = min(
            (
                self.chooser.least_milli(kind)
                for kind in {snapshot.node_shape[n] for n in self.could}
            ),
            default=pod_shape.nominal_milli,
        )

    @property
    def exact(self) -> bool:
        """Whether every pod costs ``least_milli``, wherever it lands."""
        return not self.chooser.by_size


def holds(pod_shape: PodShape, node: NodeInfo) -> bool:
    """Whether what the empty node has beside GPUs, and its pod slots, are enough."""
    return (
        node.pods > 0
        and node.cpu_milli >= pod_shape.cpu_milli
        and node.memory_bytes >= pod_shape.memory_bytes
        and node.ephemeral_bytes >= pod_shape.ephemeral_bytes
        and all(node.amount(name) >= amount for name, amount in pod_shape.scalars)
    )


class PodRequests:
    """The pod requests on one snapshot, by pod shape."""

    __slots__ = ("_by_identity", "_by_pod_shape", "_snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_identity: dict[
            int, tuple[PodShape, PodRequest]
        ] = {}  # hashing a pod shape is slow
        self._by_pod_shape: dict[PodShape, PodRequest] = {}

    def __len__(self) -> int:
        """Distinct pod shapes."""
        return len(self._by_pod_shape)

    def __iter__(self) -> Iterator[PodRequest]:
        """The pod requests known so far."""
        return iter(self._by_pod_shape.values())

    def renew(self) -> None:
        """A new cycle begins on the same nodes: the searches get their steps back."""
        if len(self._by_identity) > MOST_IDENTITIES:
            self._by_identity.clear()
        for pod_request in self._by_pod_shape.values():
            pod_request.chooser.renew()

    def of(self, pod_shape: PodShape) -> PodRequest:
        """The pod request of a pod shape; equal pod shapes share one."""
        known = self._by_identity.get(id(pod_shape))
        if known is not None:
            return known[1]
        pod_request = self._by_pod_shape.get(pod_shape)
        if pod_request is None:
            pod_request = self._by_pod_shape[pod_shape] = PodRequest(pod_shape, self._snapshot)
        self._by_identity[id(pod_shape)] = (
            pod_shape,
            pod_request,
        )  # holding the pod shape keeps its id its own
        return pod_request
