"""Who holds more than its fair share and who less, as of now and with what is decided so far.

Pods that are about to go count no longer; room that is kept for a pod counts already. A project
is never taken below its quota, of GPUs and of a model that its quota names, and below its fair
share only for a group that is guaranteed (ADR 0025).
"""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass

from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fairness.fairshare import fair_shares, model_shares
from gpu_scheduler.core.fairness.flavors import Flavor, FlavorUsage
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.model.wording import gpus
from gpu_scheduler.core.queue.pod_group import GroupRequest
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations
from gpu_scheduler.core.reservation.releasing import ReleasingResources


@dataclass(frozen=True, slots=True)
class Shares:
    """Fair shares at the start of a cycle, in milli-GPU: of what there is."""

    projects: Mapping[ProjectName, Project]
    of_all: Mapping[ProjectName, int]
    by_model: Mapping[Flavor, Mapping[ProjectName, int]]
    """Of each model that a project names: of pods that can run on no other."""


def shares_now(
    snapshot: Snapshot,
    projects: Mapping[ProjectName, Project],
    queues: Iterable[Queue],
    flavors: FlavorUsage,
) -> Shares:
    """Fair shares; groups that can never start ask for nothing."""
    asked = {name: snapshot.allocated_milli(name) for name in projects}
    capacity = _free_milli(snapshot) + sum(asked.values())
    of_model = {
        (n, flavor): flavors.held_milli(n, flavor) for flavor in flavors.models for n in projects
    }
    for queue in queues:
        name = queue.project.name
        for signature, groups in queue.counts.items():
            if signature.never is not None:
                continue
            asked[name] += groups * signature.needs.least_milli
            for pod_request, count in signature.needs.counts.items() if flavors.models else ():
                if flavor := flavors.only(pod_request):
                    of_model[name, flavor] += groups * pod_request.least_milli * count
    by_model = {
        flavor: model_shares(
            flavor,
            flavors.capacity_milli(flavor),
            projects,
            {name: of_model[name, flavor] for name in projects},
        )
        for flavor in flavors.models
    }
    return Shares(projects, fair_shares(capacity, projects, asked), by_model)


def _free_milli(snapshot: Snapshot) -> int:
    """What is free on nodes that take pods."""
    unschedulable = (n for n, node in enumerate(snapshot.cluster.nodes) if node.unschedulable)
    return sum(snapshot.node_free_milli) - sum(snapshot.node_free_milli[n] for n in unschedulable)


class FairShareState:
    """Held against fair share, project by project."""

    def __init__(
        self,
        snapshot: Snapshot,
        releasing: ReleasingResources,
        active: ActiveReservations,
        flavors: FlavorUsage,
        shares: Shares,
    ) -> None:
        self._snapshot = snapshot
        self._releasing = releasing
        self._active = active
        self.flavors = flavors
        self._shares = shares
        self.projects = shares.projects
        self.shares_milli = shares.of_all
        self.borrowing = Budget(snapshot, flavors, borrowing=True)
        self._keeps_shares = True

    def down_to_quotas(self) -> "FairShareState":
        """The same for a group inside its project's quota: others keep theirs, and nothing else."""
        twin = copy(self)
        twin._keeps_shares = False
        return twin

    def of(self, needs: GroupRequest) -> "FairShareState":
        """The balance that decides about a group: that of a model, where one alone will do."""
        flavors = {
            self.flavors.only(pod_request)
            for pod_request in needs.counts
            if pod_request.least_milli
        }
        flavor = flavors.pop() if len(flavors) == 1 else ""
        return ModelShareState(self, flavor) if flavor else self

    def anyone_over(self) -> bool:
        """Whether something can be taken from anybody."""
        return bool(self.most_over()) or any(
            ModelShareState(self, flavor).most_over() for flavor in self.flavors.models
        )

    def stand(self, name: ProjectName) -> str:
        """What a project holds and should hold, in words."""
        held, share = self.held_milli(name), self.shares_milli[name]
        return f"project {name} holds {gpus(held)}, its fair share is {gpu_from_milli(share)}"

    def above_quota(self, name: ProjectName) -> str:
        """What a project holds, and what of it others have to leave to it, in words."""
        quota_milli = gpu_from_milli(self.quota_milli(name))
        return f"project {name} holds {gpus(self.held_milli(name))}, its quota is {quota_milli}"

    def spare_of_model_milli(self, name: ProjectName, flavor: Flavor) -> int:
        """How much of a model can be taken from a project, for its quota of it; not negative."""
        quota_milli = self.projects[name].quota_by_model.get(flavor)
        if quota_milli is None:
            return quota.UNBOUNDED
        return max(0, self._taken_of(name, flavor) - quota_milli)

    def _held_of(self, name: ProjectName, flavor: Flavor) -> int:
        leaving = sum(
            milli
            for (project, product), milli in self._releasing.by_model.items()
            if project == name and self.flavors.of_product(product) == flavor
        )
        return self.flavors.held_milli(name, flavor) - leaving

    def _taken_of(self, name: ProjectName, flavor: Flavor) -> int:
        """The same, less what is only reserved: nothing that can be taken from a project."""
        reserved = self._active.charged_by_model[name]
        of_flavor = (
            n for product, n in reserved.items() if self.flavors.of_product(product) == flavor
        )
        return self._held_of(name, flavor) - sum(of_flavor)

    def quota_milli(self, name: ProjectName) -> int:
        """What a project is guaranteed."""
        return self.projects[name].quota_milli

    def held_milli(self, name: ProjectName) -> int:
        """What a project will hold once those that leave are gone."""
        return self._snapshot.allocated_milli(name) - self._releasing.milli[name]

    def missing_milli(self, name: ProjectName) -> int:
        """How far a project is below its fair share; not negative."""
        return max(0, self.shares_milli[name] - self.held_milli(name))

    def spare_milli(self, name: ProjectName) -> int:
        """How much can be taken from a project; not negative."""
        floor = self.projects[name].quota_milli
        if self._keeps_shares:
            floor = max(floor, self.shares_milli[name])
        return max(0, self.held_milli(name) - self._active.charged_milli[name] - floor)

    def most_over(self) -> list[ProjectName]:
        """Projects from which something can be taken, most over their fair share first."""
        over = [name for name in self.projects if self.spare_milli(name) > 0]
        return sorted(over, key=lambda n: (-self._times(n), -self.held_milli(n), n))

    def growth_milli(self, project: Project) -> int:
        """What a pod may cost beyond what it takes from others of its project; may be negative."""
        held = self.held_milli(project.name)
        bound = max(project.quota_milli, held, self.shares_milli[project.name])
        return min(quota.ceiling_milli(project), bound) - held

    def nominal_milli(self, project: Project) -> int:
        """What a pod may cost inside its project's quota; may be negative."""
        return quota.nominal_milli(project) - self.held_milli(project.name)

    def ceiling_milli(self, project: Project) -> int:
        """What a pod may cost if nobody else wants anything; may be negative."""
        return quota.ceiling_milli(project) - self.held_milli(project.name)

    def _times(self, name: ProjectName) -> float:
        share = self.shares_milli[name]
        return self.held_milli(name) / share if share else float("inf")


class ModelShareState(FairShareState):
    """The same of one model: for pods that can run on no other."""

    def __init__(self, whole: FairShareState, flavor: Flavor) -> None:
        super().__init__(
            whole._snapshot, whole._releasing, whole._active, whole.flavors, whole._shares
        )
        self.shares_milli = whole._shares.by_model[flavor]
        self._whole = whole
        self._flavor = flavor
        self._keeps_shares = whole._keeps_shares

    def held_milli(self, name: ProjectName) -> int:
        """What a project will hold of the model once those that leave are gone."""
        return self._held_of(name, self._flavor)

    def missing_milli(self, name: ProjectName) -> int:
        """How far a project is below its fair share of the model, and of GPUs; not negative."""
        return min(super().missing_milli(name), self._whole.missing_milli(name))

    def spare_milli(self, name: ProjectName) -> int:
        """How much of the model can be taken from a project; not negative.

        From one whose quota does not name the model only what it holds above its quota of GPUs.
        """
        named = self.projects[name].quota_by_model.get(self._flavor)
        floor = max(self.shares_milli[name] if self._keeps_shares else 0, named or 0)
        spare = max(0, self._taken_of(name, self._flavor) - floor)
        return spare if named is not None else min(spare, self._whole.spare_milli(name))

    def above_quota(self, name: ProjectName) -> str:
        """See ``FairShareState``."""
        named = self.projects[name].quota_by_model.get(self._flavor)
        if named is None:
            return self._whole.above_quota(name)
        held = f"project {name} holds {gpus(self.held_milli(name))} of {self._flavor}"
        return f"{held}, its quota of them is {gpu_from_milli(named)}"

    def stand(self, name: ProjectName) -> str:
        """See ``FairShareState``."""
        held, share = self.held_milli(name), self.shares_milli[name]
        return (
            f"project {name} holds {gpus(held)} of {self._flavor}, its fair share is"
            f" {gpu_from_milli(share)}"
        )
