"""What can never be: pods that no node could hold, and more than a project can ever have.

Said of each group when it is made, and carried with it: such a group asks for nothing, is never
tried and waits until the cluster or its project changes.
"""

from gpu_scheduler.core.fairness.budget import ModelBudget
from gpu_scheduler.core.fairness.flavors import Flavor, FlavorUsage
from gpu_scheduler.core.fit.placement import Placer
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.queue.pod_group import PodGroup


class Feasibility:
    """Judges the groups of one cycle."""

    def __init__(self, placer: Placer, flavors: FlavorUsage) -> None:
        self._placer = placer
        self._flavors = flavors

    def never(self, group: PodGroup) -> Reason | None:
        """Why a group can never start; None when it may."""
        if self.beyond_ceiling(group):  # comes first, as no node that is added would help
            return Reason.EXCEEDS_QUOTA
        if not all(pod_request.could for pod_request in group.needs.counts):
            return Reason.UNSATISFIABLE
        if group.job.gang is not None and self._placer.domains.refusal(group):
            return Reason.UNSATISFIABLE
        return Reason.EXCEEDS_QUOTA if self.beyond_models(group) else None

    def beyond_ceiling(self, group: PodGroup) -> bool:
        """Whether a group needs more than its project can ever hold."""
        return group.needs.least_milli > quota.ceiling_milli(group.project)

    def beyond_models(self, group: PodGroup) -> frozenset[Flavor]:
        """Models of which a project names less than a group needs, if it never borrows."""
        project = group.project
        if project.weight or not project.quota_by_model:
            return frozenset()
        named = ModelBudget(
            self._flavors, lambda flavor: project.quota_by_model.get(flavor, quota.UNBOUNDED)
        )
        return named.short_of(group.needs.counts.items())
