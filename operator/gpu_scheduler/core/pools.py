"""What projects hold of the models for which guarantees exist (quotaByModel).

A device counts for the longest of the models named by any project that mean its product; all other
devices are nobody's guarantee. A project that names a model is inside its quota on such
devices up to that many, whatever its quota leaves; beyond, and without a weight never, it borrows.
Kept up to date by the snapshot; costs nothing where no project names a model. Read by all that
places pods, by ``balance`` and by the reasons.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.products import means
from gpu_scheduler.core.quota import UNBOUNDED, ceiling_milli
from gpu_scheduler.core.request import Project, ProjectName
from gpu_scheduler.core.snapshot import Picks, Snapshot

MOST_MODELS = 6  # looked at together
Pool = str  # the model, lower case, see ``products``; empty = devices that nobody names


def by_length(models: Iterable[Pool]) -> list[Pool]:
    """Models in the order in which a product's name is compared with them."""
    return sorted(set(models), key=lambda model: (-len(model), model))


def pool_of(product: str, models: Iterable[Pool]) -> Pool:
    """The first of some models that means a product; empty when none does."""
    return next((model for model in models if means(model, product)), "")


class Pools:
    """Holdings by project and model, within one cycle."""

    def __init__(self, snapshot: Snapshot, projects: Mapping[ProjectName, Project]) -> None:
        named = {part for project in projects.values() for part in project.quota_by_model}
        self.models = by_length(named)
        self._snapshot = snapshot
        self._held: Counter[tuple[ProjectName, Pool]] = Counter()
        self._of_product: dict[str, Pool] = {}
        self._of_demand: dict[Demand, frozenset[Pool]] = {}
        snapshot.watcher = self._count if named else None
        if named:
            for (name, product), milli in snapshot.cluster.held_by_model.items():
                self._held[name, self.of_product(product)] += milli

    def of_product(self, product: str) -> Pool:
        """The model for which devices of a product count."""
        pool = self._of_product.get(product)
        if pool is None:
            pool = self._of_product[product] = pool_of(product, self.models)
        return pool

    def of_device(self, device: int) -> Pool:
        """The model for which a device counts."""
        return self.of_product(self._snapshot.cluster.dev_model[device])

    def of(self, demand: Demand) -> frozenset[Pool]:
        """The models whose devices could serve a demand."""
        pools = self._of_demand.get(demand)
        if pools is None:
            kinds, chooser = self._snapshot.kinds, demand.chooser
            pools = self._of_demand[demand] = frozenset(
                self.of_product(kinds[kind][offset].model)
                for kind in {self._snapshot.kind[n] for n in demand.could}
                for offset in chooser.eligible(kind)
            )
        return pools

    def any_of(self, demand: Demand, node: int, suits: Callable[[Pool, int], bool]) -> bool:
        """Whether a model of the node suits, given it and what a pod costs there at least."""
        kind = self._snapshot.kind[node]
        devices, least = self._snapshot.kinds[kind], demand.chooser.least_milli(kind)
        pools = {self.of_product(devices[o].model) for o in demand.chooser.eligible(kind)}
        return not pools or any(suits(pool, least) for pool in pools)

    def only(self, demand: Demand) -> Pool:
        """The one model that could serve a demand; empty when there is none, or several could."""
        if not self.models:
            return ""
        pools = self.of(demand)
        return next(iter(pools)) if len(pools) == 1 else ""

    def ceiling_milli(self, project: Project, demand: Demand) -> int:
        """The most that one pod can ever cost a project, whatever that holds."""
        most = ceiling_milli(project)
        if project.weight or not project.quota_by_model:
            return most
        named = (project.quota_by_model.get(pool, UNBOUNDED) for pool in self.of(demand))
        return min(most, max(named, default=UNBOUNDED))

    def never_enough(
        self, project: Project, counts: Iterable[tuple[Demand, int]]
    ) -> frozenset[Pool]:
        """Models of which a project names less than pods need together, if it never borrows."""
        if project.weight or not project.quota_by_model:
            return frozenset()
        named = Purse(self, lambda pool: project.quota_by_model.get(pool, UNBOUNDED))
        return named.short_of(counts)

    def held_milli(self, name: ProjectName, pool: Pool) -> int:
        """What a project holds of a model."""
        return self._held[name, pool]

    def capacity_milli(self, pool: Pool) -> int:
        """What there is of a model on nodes that take pods, and what projects hold of it."""
        snapshot = self._snapshot
        cluster, free = snapshot.cluster, 0
        for n, node in enumerate(cluster.nodes):
            if not node.closed:
                for device in range(cluster.first[n], cluster.first[n + 1]):
                    if self.of_device(device) == pool:
                        free += cluster.free_milli[device]
        return free + sum(milli for (_, held), milli in self._held.items() if held == pool)

    def _count(self, project: ProjectName, picks: Picks, milli: int | None, sign: int) -> None:
        if milli is not None:  # the devices of one pod are taken to be alike
            if picks:
                self._held[project, self.of_device(picks[0][1])] += sign * milli
            return
        for _, device, part, _ in picks:
            self._held[project, self.of_device(device)] += sign * part


class Allowance:
    """What projects may still take by model: inside their quota, or (``above``) by borrowing."""

    def __init__(self, pools: Pools, *, above: bool) -> None:
        self._pools, self._above = pools, above

    def milli(self, project: Project, demand: Demand) -> int:
        """The most that a pod may cost, on the model of which most is left."""
        if self._free(project):
            return UNBOUNDED
        return max((self._left(project, p) for p in self._pools.of(demand)), default=UNBOUNDED)

    def permits(self, project: Project, demand: Demand, node: int) -> bool:
        """Whether enough is left of a model that the node has for a pod."""
        return self._free(project) or self._pools.any_of(
            demand, node, lambda pool, least: least <= self._left(project, pool)
        )

    def judge(self, project: Project) -> Callable[[Choice], bool] | None:
        """Says of devices whether the project may have them; None = any."""
        if self._free(project):
            return None

        return Spending(Purse(self._pools, lambda pool: self._left(project, pool)), ()).may

    def purse(self, project: Project) -> "Purse | None":
        """What the pods of a gang may cost together by model; None = anything."""
        if self._free(project):
            return None
        return Purse(self._pools, lambda pool: self._left(project, pool))

    def _free(self, project: Project) -> bool:
        return not project.quota_by_model or (self._above and project.weight > 0)

    def _left(self, project: Project, pool: Pool) -> int:
        most = project.quota_by_model.get(pool)
        if most is None:
            return UNBOUNDED
        return max(0, most - self._pools.held_milli(project.name, pool))


class Purse:
    """What is left for a project of each model, as of the moment at which it is asked."""

    def __init__(self, pools: Pools, left_milli: Callable[[Pool], int]) -> None:
        self.pools, self.left_milli = pools, left_milli

    def spending(self, demands: Iterable[Demand]) -> "Spending":
        """Pods with these demands are about to be placed for trial, one by one, in this order."""
        return Spending(self, demands)

    def short_of(self, counts: Iterable[tuple[Demand, int]]) -> frozenset[Pool]:
        """Models of which less is left than pods ask for that can run on no others.

        Empty where that is so of no few models: then they may fit if the devices are free.
        """
        asks = [(self.pools.of(demand), demand.least_milli * n) for demand, n in counts]
        named = sorted({pool for pools, _ in asks for pool in pools if self._bound(pool)})
        for size in range(1, min(len(named), MOST_MODELS) + 1):
            for some in map(frozenset, combinations(named, size)):
                asked = sum(milli for pools, milli in asks if pools <= some)
                if asked > sum(self.left_milli(pool) for pool in some):
                    return some
        return frozenset()

    def _bound(self, pool: Pool) -> bool:
        return self.left_milli(pool) < UNBOUNDED


class Spending:
    """What the pods of a gang cost by model, and what is kept for those that have no choice."""

    def __init__(self, purse: Purse, demands: Iterable[Demand]) -> None:
        self._purse = purse
        self._spent: Counter[Pool] = Counter()
        self._kept: Counter[Pool] = Counter()
        for demand in demands:
            self._kept[purse.pools.only(demand)] += demand.least_milli

    def turn_of(self, demand: Demand) -> None:
        """The next pod is to be placed: nothing is kept for it any longer."""
        self._kept[self._purse.pools.only(demand)] -= demand.least_milli

    def may(self, choice: Choice) -> bool:
        """Whether the pod may have these devices."""
        return all(
            self._spent[pool] + milli + (self._kept[pool] if pool else 0)
            <= self._purse.left_milli(pool)
            for pool, milli in self._costs(choice).items()
        )

    def spend(self, choice: Choice) -> None:
        """The pod gets these devices."""
        self._spent.update(self._costs(choice))

    def _costs(self, choice: Choice) -> Counter[Pool]:
        costs: Counter[Pool] = Counter()
        for _, device, milli, _ in choice.picks:
            costs[self._purse.pools.of_device(device)] += milli
        return costs
