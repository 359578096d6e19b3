"""What a GPUClass's status says: how many GPUs it stands for, which of its shapes are another's.

Asked by the status writer when nodes or classes change.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from gpu_scheduler.api.condition import ConditionType, StatusBody, condition
from gpu_scheduler.api.gpuclass import GPUClassStatus
from gpu_scheduler.core.model.catalogue import Catalogue
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.wording import names
from gpu_scheduler.runtime.informers.custom_resources import GPUCLASSES
from gpu_scheduler.runtime.status.status_writer import StoreStatuses
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.owners import Claim
from gpu_scheduler.state.nodes.classes import ClassRecord


def stock(cluster: Cluster, catalogue: Catalogue) -> dict[str, tuple[int, int]]:
    """GPUs and nodes by class."""
    gpus: Counter[str] = Counter()
    nodes: defaultdict[str, set[int]] = defaultdict(set)
    for node, (begin, end) in enumerate(zip(cluster.first, cluster.first[1:], strict=False)):
        for model, count in Counter(cluster.dev_model[begin:end]).items():
            gpu_type = catalogue.of(model)
            if gpu_type is not None:
                gpus[gpu_type.name] += count
                nodes[gpu_type.name].add(node)
    return {name: (count, len(nodes[name])) for name, count in gpus.items()}


def class_status(
    record: ClassRecord,
    *,
    gpus: int,
    nodes: int,
    taken: tuple[Claim, ...],
    before: StatusBody,
    now: str,
) -> GPUClassStatus:
    """The status that a class should have (``before``: the one it has, as JSON)."""
    problem = record.problem or "; ".join(
        f"spec.shapes: {each.name} belongs to GPUClass {each.owner} already; remove it here or "
        "there"
        for each in taken[:5]
    )
    missing = f"no GPU of the cluster has {record.match} in its product name, or other classes "
    missing = f"{missing}say more of it" if record.match else "other classes match every GPU"
    wanted = (
        ("Accepted", not problem, "Invalid" if problem else "Accepted", problem),
        (
            ConditionType.MATCHES,
            gpus > 0,
            "Matches" if gpus else "NoSuchGPU",
            "" if gpus else missing,
        ),
    )
    sizes = sorted(record.shapes.items(), key=lambda item: (item[1], item[0]))
    return GPUClassStatus(
        observed_generation=record.generation,
        gpus=gpus,
        nodes=nodes,
        shapes=names([f"{name}={count}" for name, count in sizes]),
        conditions=[
            condition(*each, judged=(record.generation, now), before=before) for each in wanted
        ],
    )


class ClassStatuses(StoreStatuses):
    """What all GPUClasses are to say; ``Statuses`` of the writer."""

    kind = GPUCLASSES

    def __init__(self, state: ClusterState, *, now: Callable[[], str]) -> None:
        """``now`` dates conditions."""
        super().__init__(state.classes)
        self._state = state
        self._now = now
        self._seen: tuple[object, object] = (None, None)
        self._stock: dict[str, tuple[int, int]] = {}

    def touched(self) -> Iterable[str]:
        """All of them, if nodes or classes changed."""
        models, catalogue = self._state.ledger.cluster.dev_model, self._state.classes.catalogue
        # Both are replaced, never changed in place.
        if self._seen[0] is not models or self._seen[1] is not catalogue:
            self._seen = models, catalogue
            self.store.touched.update(self.store.records)
        return self.store.take_touched()

    def prepare(self) -> None:
        """Count the GPUs once, for all classes that are due."""
        self._stock = stock(self._state.ledger.cluster, self._state.classes.catalogue)

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``."""
        gpus, nodes = self._stock.get(key, (0, 0))
        before = self.store.statuses.get(key, {})
        status = class_status(
            self.store.records[key],
            gpus=gpus,
            nodes=nodes,
            taken=self.store.conflicts(key),
            before=before,
            now=self._now(),
        )
        return before, status.to_json()
