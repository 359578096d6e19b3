"""What projects may still take, under one of two rules: inside their quota, or by borrowing.

A vector: milli-GPU in all, and of each model for which there are guarantees. Charged is what pods
hold that have not ended, and what this cycle placed. Read by all that places pods, and by the
reasons.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from gpu_scheduler.core.fairness.flavors import Flavor, FlavorUsage
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.queue.pod_group import GroupRequest

MOST_MODELS = 6  # looked at together
NO_SHARES: Mapping[ProjectName, int] = {}


class Budget:
    """What projects may take inside their quota, or (``borrowing``) by borrowing."""

    def __init__(
        self,
        snapshot: Snapshot,
        flavors: FlavorUsage,
        *,
        borrowing: bool,
        shares_milli: Mapping[ProjectName, int] = NO_SHARES,
    ) -> None:
        """``shares_milli``: more than that nobody borrows; who is not named, as much as may be."""
        self._flavors = flavors
        self.borrowing = borrowing
        self._shares_milli = shares_milli
        self._held = snapshot.cluster.allocated_milli
        self._most: dict[ProjectName, int] = {}

    def room_milli(self, project: Project, held_milli: int | None = None) -> int:
        """What a project may take of any GPU, given what it holds (None = now); not negative."""
        most = self._most.get(project.name)
        if most is None:
            of = quota.ceiling_milli if self.borrowing else quota.nominal_milli
            share = self._shares_milli.get(project.name, UNBOUNDED)
            most = self._most[project.name] = min(of(project), share)
        held = self._held.get(project.name, 0) if held_milli is None else held_milli
        return most - held if most > held else 0

    def covers(self, project: Project, needs: GroupRequest, mine_milli: int = 0) -> bool:
        """Whether a group may cost what it costs at least.

        ``mine_milli``: what its project is charged already for room that is kept for it.
        """
        held = self._held.get(project.name, 0) - mine_milli
        if needs.least_milli > self.room_milli(project, held):
            return False
        model_budget = self.model_budget(project)
        return model_budget is None or not model_budget.short_of(needs.counts.items())

    def model_budget(self, project: Project) -> "ModelBudget | None":
        """What the pods of a group may cost together by model; None = anything."""
        if not project.quota_by_model or (self.borrowing and project.weight > 0):
            return None
        return ModelBudget(self._flavors, lambda flavor: self._left(project, flavor))

    def _left(self, project: Project, flavor: Flavor) -> int:
        most = project.quota_by_model.get(flavor)
        if most is None:
            return UNBOUNDED
        return max(0, most - self._flavors.held_milli(project.name, flavor))


class ModelBudget:
    """What is left for a project of each model, as of the moment at which it is asked."""

    def __init__(self, flavors: FlavorUsage, left_milli: Callable[[Flavor], int]) -> None:
        self._flavors = flavors
        self.left_milli = left_milli

    def spending(self, pod_requests: Iterable[PodRequest]) -> "ModelSpending":
        """Pods with these requests are about to be placed for trial, one by one, in this order."""
        return ModelSpending(self._flavors, self.left_milli, pod_requests)

    def short_of(self, counts: Iterable[tuple[PodRequest, int]]) -> frozenset[Flavor]:
        """Models of which less is left than pods ask for that can run on no others.

        Empty where that is so of no few models: then they may fit if the right devices are free.
        """
        counts = tuple(counts)
        for pod_request, _ in counts:  # a pod on one device has that of one model
            several = sum(request.count for request in pod_request.pod_shape.devices) > 1
            if not several and pod_request.least_milli > self.most_milli(pod_request):
                return self._flavors.of(pod_request)
        asks = [
            (self._flavors.of(pod_request), pod_request.least_milli * n)
            for pod_request, n in counts
        ]
        named = {flavor for flavors, _ in asks for flavor in flavors if self._bound(flavor)}
        for size in range(1, min(len(named), MOST_MODELS) + 1):
            for some in map(frozenset, combinations(sorted(named), size)):
                asked = sum(milli for flavors, milli in asks if flavors <= some)
                if asked > sum(self.left_milli(flavor) for flavor in some):
                    return some
        return frozenset()

    def most_milli(self, pod_request: PodRequest) -> int:
        """The most that a pod may cost, on the model of which most is left."""
        return max(map(self.left_milli, self._flavors.of(pod_request)), default=UNBOUNDED)

    def _bound(self, flavor: Flavor) -> bool:
        return self.left_milli(flavor) < UNBOUNDED


class ModelSpending:
    """What the pods of a group cost by model, and what is kept for those that have no choice."""

    def __init__(
        self,
        flavors: FlavorUsage,
        left_milli: Callable[[Flavor], int],
        pod_requests: Iterable[PodRequest],
    ) -> None:
        self._flavors = flavors
        self._left_milli = left_milli
        self._spent: Counter[Flavor] = Counter()
        self._kept: Counter[Flavor] = Counter()
        for pod_request in pod_requests:
            self._kept[flavors.only(pod_request)] += pod_request.least_milli

    def turn_of(self, pod_request: PodRequest) -> None:
        """The next pod is to be placed: nothing is kept for it any longer."""
        self._kept[self._flavors.only(pod_request)] -= pod_request.least_milli

    def may(self, choice: NodeAllocation) -> bool:
        """Whether the pod may have these devices."""
        return all(
            self._spent[flavor] + milli + (self._kept[flavor] if flavor else 0)
            <= self._left_milli(flavor)
            for flavor, milli in self._flavors.costs(choice.picks).items()
        )

    def spend(self, choice: NodeAllocation) -> None:
        """The pod gets these devices."""
        self._spent.update(self._flavors.costs(choice.picks))
