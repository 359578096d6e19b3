"""What a planner keeps between cycles: the snapshot, the pod requests, the scores and the queues.

A cycle then costs what changed since the last one and not what there is. Invariant: a plan made
with a session equals one made without, as long as the lists that say what nodes there are
(``nodes``, ``first``, ``dev_*``) are replaced when that changes, never changed in place.
Called by ``plan``; the operator and the simulator keep one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from gpu_scheduler.core.affinity.masks import AffinityMasks, masks_of
from gpu_scheduler.core.affinity.signatures import terms_of
from gpu_scheduler.core.fit.lone_searches import LoneSearches
from gpu_scheduler.core.fit.possible import Possible
from gpu_scheduler.core.model.affinity import AffinityTerm
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.request import PodShape, Project, ProjectName
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.nodes.node_masks import NodeMasks
from gpu_scheduler.core.nodes.topology import Domains
from gpu_scheduler.core.packing.history import History
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.table import ScoreTable
from gpu_scheduler.core.packing.target_workload import TargetWorkload
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.queue.queues import Queues

MOST_SHAPES = 4_000  # distinct ones remembered


class PlannerCache:
    """The working state of one planner; ``begin`` brings it up to date."""

    def __init__(self, clock: Callable[[], float] = float) -> None:
        """``clock``: seconds; ``readings`` has one before the last plan and after each step."""
        self.clock = clock
        self.readings: list[float] = []
        self._packing = Packing.FRAGMENTATION
        self._given_workload: TargetWorkload | None = None
        self._history = History()
        self._table: ScoreTable | None = None
        self._snapshot: Snapshot | None = None
        self.pod_requests = PodRequests(Snapshot(Cluster()))
        self.searches = LoneSearches()
        self.domains = Domains(())
        self._node_masks = NodeMasks(())
        self.affinity: AffinityMasks | None = None
        """The rules about other pods in this cycle; None where no pod has any."""
        self._possible: Possible | None = None
        self._terms: AbstractSet[AffinityTerm] = frozenset()
        self.queues = Queues(self.pod_requests, {})

    @property
    def workload(self) -> TargetWorkload:
        """By which is scored: as given, or learned from what was placed."""
        return self._given_workload or self._history.workload

    def begin(self, given: PlanInput) -> None:
        """Start a cycle with this input."""
        cluster, jobs = given.cluster, given.jobs
        if self._packing is not given.packing or self._given_workload is not given.workload:
            self._packing = given.packing
            self._given_workload = given.workload
            self._table = None
        self._begin(cluster)
        self.affinity = masks_of(self.snapshot, self.domains, self._node_masks, jobs)
        self._terms = cluster.placed_pods.anti_affinity_pods().keys() | terms_of(jobs)

    def _begin(self, cluster: Cluster) -> None:
        snapshot = self._snapshot
        if (
            snapshot is None
            or not snapshot.same_layout(cluster)
            or len(self.pod_requests) > MOST_SHAPES
        ):
            self._snapshot = Snapshot(cluster)
            self.pod_requests = PodRequests(self._snapshot)
            self.searches = LoneSearches()
            self.domains = Domains(cluster.nodes)
            self._node_masks = NodeMasks(cluster.nodes)
            self._possible = None
            self._table = None
            return
        snapshot.renew(cluster)
        self.pod_requests.renew()
        if self._table is not None:
            self._table.renew()
        snapshot.changed.clear()  # nobody else reads it between cycles

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as of this cycle; only after ``begin``."""
        assert self._snapshot is not None
        return self._snapshot

    def queues_of(self, projects: Mapping[ProjectName, Project]) -> Queues:
        """The queues as the cycle before left them, or new ones."""
        self.queues = self.queues.renewed(self.pod_requests, projects, self._terms)
        return self.queues

    @property
    def table(self) -> ScoreTable:
        """The scores, made when first asked for."""
        if self._table is None:
            self._table = ScoreTable(self.snapshot, self._packing, self.workload)
        return self._table

    @property
    def possible(self) -> Possible:
        """What gangs could ever do on these nodes, made when first asked for."""
        if self._possible is None:
            self._possible = Possible(self.snapshot, self.domains)
        return self._possible

    def note(self, pod_shapes: Iterable[PodShape]) -> None:
        """Learn from the kinds of the pods that were placed."""
        if self._given_workload is not None:
            return
        placed = Counter(id(self.pod_requests.of(pod_shape)) for pod_shape in pod_shapes)
        if not placed:
            return
        known = {id(pod_request): pod_request.pod_shape for pod_request in self.pod_requests}
        if self._history.note({known[number]: count for number, count in placed.items()}):
            self._table = None
