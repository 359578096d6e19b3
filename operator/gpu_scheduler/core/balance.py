"""Who holds more than its fair share and who less, as of now and with what is decided so far.

Pods that are about to go count no longer; room that is kept for a pod counts already. A project
is never taken below its quota, of GPUs and of a model that its quota names, and below its fair
share only for a pod that is guaranteed (ADR 0025). Called by ``reclaim``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy

from gpu_scheduler.core import quota
from gpu_scheduler.core.blocks import Blocks
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures
from gpu_scheduler.core.eviction import Ranked
from gpu_scheduler.core.fairshare import fair_shares, model_shares
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.pools import Allowance, Pool, Pools
from gpu_scheduler.core.queues import Queue
from gpu_scheduler.core.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.snapshot import Picks, Snapshot
from gpu_scheduler.core.units import gpu_from_milli
from gpu_scheduler.core.wording import gpus


def shares_now(
    snapshot: Snapshot,
    demands: Demands,
    projects: Mapping[ProjectName, Project],
    queues: Iterable[Queue],
    gangs: Gangs,
    pools: Pools,
) -> dict[ProjectName, int]:
    """Fair shares at the start of a cycle: what is held and waited for, of what there is.

    Pods and gangs that no node can ever hold, or that can never fit their project, ask for nothing.
    """
    held = {name: snapshot.allocated_milli(name) for name in projects}
    free = sum(snapshot.node_free_milli) - sum(
        snapshot.node_free_milli[n] for n, node in enumerate(snapshot.cluster.nodes) if node.closed
    )
    asked = dict(held)
    for queue in queues:
        name = queue.project.name
        asked[name] += _waiting_milli(queue, demands, gangs, pools)
    return fair_shares(free + sum(held.values()), projects, asked)


def _waiting_milli(queue: Queue, demands: Demands, gangs: Gangs, pools: Pools) -> int:
    total, shape, milli = 0, None, 0
    last: JobKey | None = None
    for job, pod in queue.pending:
        if job.gang is not None:
            if job.key != last:
                last = job.key
                total += _gang_milli(job, queue.project, gangs, pools)
            continue
        if pod.shape is not shape:
            shape = pod.shape
            demand = demands.of(shape)
            ever = demand.could and _may_ever(queue.project, demand, pools)
            milli = demand.least_milli if ever else 0
        total += milli
    return total


def _may_ever(project: Project, demand: Demand, pools: Pools) -> bool:
    return demand.least_milli <= pools.ceiling_milli(project, demand)


def _gang_milli(job: WaitingJob, project: Project, gangs: Gangs, pools: Pools) -> int:
    request = gangs.of(job)
    never = (
        request.least_milli > quota.ceiling_milli(project)
        or pools.never_enough(project, request.counts.items())
        or gangs.refusal(request)
    )
    return 0 if never else request.least_milli


def model_shares_now(
    pools: Pools,
    demands: Demands,
    projects: Mapping[ProjectName, Project],
    queues: Iterable[Queue],
) -> dict[Pool, dict[ProjectName, int]]:
    """Fair shares of each model that a project names: of pods that can run on no other."""
    if not pools.models:
        return {}
    asked = {
        (name, pool): pools.held_milli(name, pool) for name in projects for pool in pools.models
    }
    for queue in queues:
        for _, pod in queue.pending:
            demand = demands.of(pod.shape)
            pool = pools.only(demand)
            if pool and _may_ever(queue.project, demand, pools):
                asked[queue.project.name, pool] += demand.least_milli
    return {
        pool: model_shares(
            pool,
            pools.capacity_milli(pool),
            projects,
            {name: asked[name, pool] for name in projects},
        )
        for pool in pools.models
    }


class Balance:
    """Held against fair share, project by project."""

    def __init__(
        self,
        snapshot: Snapshot,
        departures: Departures,
        projects: Mapping[ProjectName, Project],
        shares_milli: Mapping[ProjectName, int],
        pools: Pools,
        by_model: Mapping[Pool, Mapping[ProjectName, int]],
        blocks: Blocks,
    ) -> None:
        self._blocks = blocks
        self._snapshot, self._departures = snapshot, departures
        self._projects, self.shares_milli = projects, shares_milli
        self._pools, self._by_model = pools, by_model
        self.beyond = Allowance(pools, above=True)
        self._keeps_shares = True

    def down_to_quotas(self) -> "Balance":
        """The same for a pod inside its project's quota: others keep theirs, and nothing else."""
        twin = copy(self)
        twin._keeps_shares = False
        return twin

    def of(self, demand: Demand) -> "Balance":
        """The balance that decides about a demand: that of a model, where one alone will do."""
        pool = self._pools.only(demand)
        return ModelBalance(self, pool) if pool else self

    def anyone_over(self) -> bool:
        """Whether something can be taken from anybody."""
        return bool(self.most_over()) or any(
            ModelBalance(self, pool).most_over() for pool in self._pools.models
        )

    def stand(self, name: ProjectName) -> str:
        """What a project holds and should hold, in words."""
        held, share = self.held_milli(name), self.shares_milli[name]
        return f"project {name} holds {gpus(held)}, its fair share is {gpu_from_milli(share)}"

    def outside_model_quota(
        self,
        ranked: Ranked,
        party: Callable[[Occupant], Iterable[Occupant]],
        picks: Callable[[Occupant], Picks],
    ) -> Ranked:
        """Of victims in their order, those that leave each project its quota of each model."""
        if not self._pools.models:
            return ranked
        given: Counter[tuple[ProjectName, Pool]] = Counter()
        found = []
        for rank, pod in sorted(ranked, key=lambda each: each[0]):
            costs: Counter[tuple[ProjectName, Pool]] = Counter()
            for member in party(pod):
                for _, device, milli, _ in picks(member):
                    costs[pod.project, self._pools.of_device(device)] += milli
            if all(given[k] + cost <= self._beyond_milli(*k) for k, cost in costs.items()):
                given.update(costs)
                found.append((rank, pod))
        return found

    def _beyond_milli(self, name: ProjectName, pool: Pool) -> int:
        quota_milli = self._projects[name].quota_by_model.get(pool)
        if quota_milli is None:
            return quota.UNBOUNDED
        return max(0, self._taken_of(name, pool) - quota_milli)

    def _held_of(self, name: ProjectName, pool: Pool) -> int:
        leaving = sum(
            milli
            for (project, product), milli in self._departures.by_model.items()
            if project == name and self._pools.of_product(product) == pool
        )
        return self._pools.held_milli(name, pool) - leaving

    def _taken_of(self, name: ProjectName, pool: Pool) -> int:
        """The same, less what is only reserved: nothing that can be taken from a project."""
        reserved = self._blocks.charged_by_model[name]
        of_pool = (n for product, n in reserved.items() if self._pools.of_product(product) == pool)
        return self._held_of(name, pool) - sum(of_pool)

    def held_milli(self, name: ProjectName) -> int:
        """What a project will hold once those that leave are gone."""
        return self._snapshot.allocated_milli(name) - self._departures.milli[name]

    def missing_milli(self, name: ProjectName) -> int:
        """How far a project is below its fair share; not negative."""
        return max(0, self.shares_milli[name] - self.held_milli(name))

    def spare_milli(self, name: ProjectName) -> int:
        """How much can be taken from a project; not negative."""
        floor = self._projects[name].quota_milli
        if self._keeps_shares:
            floor = max(floor, self.shares_milli[name])
        return max(0, self.held_milli(name) - self._blocks.charged_milli[name] - floor)

    def most_over(self) -> list[ProjectName]:
        """Projects from which something can be taken, most over their fair share first."""
        over = [name for name in self._projects if self.spare_milli(name) > 0]
        return sorted(over, key=lambda n: (-self._times(n), -self.held_milli(n), n))

    def growth_milli(self, project: Project) -> int:
        """What a pod may cost beyond what it takes from others of its project; may be negative."""
        held = self.held_milli(project.name)
        bound = max(project.quota_milli, held, self.shares_milli[project.name])
        return min(quota.ceiling_milli(project), bound) - held

    def ceiling_milli(self, project: Project) -> int:
        """What a pod may cost if nobody else wants anything; may be negative."""
        return quota.ceiling_milli(project) - self.held_milli(project.name)

    def _times(self, name: ProjectName) -> float:
        share = self.shares_milli[name]
        return self.held_milli(name) / share if share else float("inf")


class ModelBalance(Balance):
    """The same of one model: for pods that can run on no other."""

    def __init__(self, whole: Balance, pool: Pool) -> None:
        super().__init__(
            whole._snapshot,
            whole._departures,
            whole._projects,
            whole._by_model[pool],
            whole._pools,
            whole._by_model,
            whole._blocks,
        )
        self._whole, self._pool = whole, pool
        self._keeps_shares = whole._keeps_shares

    def down_to_quotas(self) -> "Balance":
        """See ``Balance``."""
        return ModelBalance(self._whole.down_to_quotas(), self._pool)

    def held_milli(self, name: ProjectName) -> int:
        """What a project will hold of the model once those that leave are gone."""
        return self._held_of(name, self._pool)

    def missing_milli(self, name: ProjectName) -> int:
        """How far a project is below its fair share of the model, and of GPUs; not negative."""
        return min(super().missing_milli(name), self._whole.missing_milli(name))

    def spare_milli(self, name: ProjectName) -> int:
        """How much of the model can be taken from a project; not negative.

        From one whose quota does not name the model only what it holds above its quota of GPUs.
        """
        named = self._projects[name].quota_by_model.get(self._pool)
        floor = max(self.shares_milli[name] if self._keeps_shares else 0, named or 0)
        spare = max(0, self._taken_of(name, self._pool) - floor)
        return spare if named is not None else min(spare, self._whole.spare_milli(name))

    def stand(self, name: ProjectName) -> str:
        """See ``Balance``."""
        held, share = self.held_milli(name), self.shares_milli[name]
        return (
            f"project {name} holds {gpus(held)} of {self._pool}, its fair share is"
            f" {gpu_from_milli(share)}"
        )
