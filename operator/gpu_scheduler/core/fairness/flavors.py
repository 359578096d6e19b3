"""What projects hold of the models for which guarantees exist (quotaByModel).

A device counts for the longest of the models named by any project that mean its product; all other
devices are nobody's guarantee. A project that names a model is inside its quota on such
devices up to that many, whatever its quota leaves; beyond, and without a weight never, it borrows.
Kept up to date by the snapshot; costs nothing where no project names a model. Read by all that
places pods, by ``balance`` and by the reasons.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.core.model.snapshot import IndexedAllocations, Snapshot
from gpu_scheduler.core.products import means

Flavor = str  # the model, lower case, see ``products``; empty = devices that nobody names


def by_length(models: Iterable[Flavor]) -> list[Flavor]:
    """Models in the order in which a product's name is compared with them."""
    return sorted(set(models), key=lambda model: (-len(model), model))


def flavor_of(product: str, models: Iterable[Flavor]) -> Flavor:
    """The first of some models that means a product; empty when none does."""
    return next((model for model in models if means(model, product)), "")


class FlavorUsage:
    """Holdings by project and model, within one cycle."""

    def __init__(self, snapshot: Snapshot, projects: Mapping[ProjectName, Project]) -> None:
        named = {part for project in projects.values() for part in project.quota_by_model}
        self.models = by_length(named)
        self._snapshot = snapshot
        self._held: Counter[tuple[ProjectName, Flavor]] = Counter()
        self._of_product: dict[str, Flavor] = {}
        self._of_demand: dict[PodRequest, frozenset[Flavor]] = {}
        snapshot.watcher = self._count if named else None
        if named:
            for (name, product), milli in snapshot.cluster.held_by_model.items():
                self._held[name, self.of_product(product)] += milli

    def of_product(self, product: str) -> Flavor:
        """The model for which devices of a product count."""
        flavor = self._of_product.get(product)
        if flavor is None:
            flavor = self._of_product[product] = flavor_of(product, self.models)
        return flavor

    def of_device(self, device: int) -> Flavor:
        """The model for which a device counts."""
        return self.of_product(self._snapshot.cluster.dev_model[device])

    def of(self, pod_request: PodRequest) -> frozenset[Flavor]:
        """The models whose devices could serve a pod request."""
        flavors = self._of_demand.get(pod_request)
        if flavors is None:
            shapes, chooser = self._snapshot.node_shapes, pod_request.chooser
            flavors = self._of_demand[pod_request] = frozenset(
                self.of_product(shapes[shape][offset].model)
                for shape in {self._snapshot.node_shape[n] for n in pod_request.could}
                for offset in chooser.eligible(shape)
            )
        return flavors

    def only(self, pod_request: PodRequest) -> Flavor:
        """The one model that could serve a pod request; empty when none could, or several."""
        if not self.models:
            return ""
        flavors = self.of(pod_request)
        return next(iter(flavors)) if len(flavors) == 1 else ""

    def held_milli(self, name: ProjectName, flavor: Flavor) -> int:
        """What a project holds of a model."""
        return self._held[name, flavor]

    def capacity_milli(self, flavor: Flavor) -> int:
        """What there is of a model on nodes that take pods, and what projects hold of it."""
        snapshot = self._snapshot
        cluster, free = snapshot.cluster, 0
        for n, node in enumerate(cluster.nodes):
            if not node.unschedulable:
                for device in range(cluster.first[n], cluster.first[n + 1]):
                    if self.of_device(device) == flavor:
                        free += cluster.free_milli[device]
        return free + sum(milli for (_, held), milli in self._held.items() if held == flavor)

    def _count(
        self, project: ProjectName, picks: IndexedAllocations, milli: int | None, sign: int
    ) -> None:
        if milli is not None:  # the devices of one pod are taken to be alike
            if picks:
                self._held[project, self.of_device(picks[0][1])] += sign * milli
            return
        for flavor, part in self.costs(picks).items():
            self._held[project, flavor] += sign * part

    def costs(self, picks: IndexedAllocations) -> Counter[Flavor]:
        """What a project is charged for devices, by model."""
        costs: Counter[Flavor] = Counter()
        for pick in picks:
            costs[self.of_device(pick[1])] += self._snapshot.charge_milli(pick)
        return costs
