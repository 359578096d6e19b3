"""Who gets devices back from whom: reclaim between projects, priorities inside one.

Groups inside quota come first, then those that would borrow what is theirs by fair share, then
higher priorities inside a project. A group gets help only if it ends at most at its project's fair
share and every victim's project stays at or above its own, or, for a group inside quota, at its
quota; so no plan can undo the one before. Nobody is evicted for room that is there or comes anyway
(ADR 0038), nor before it is due (``deadlines``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from gpu_scheduler.core.eviction.deadlines import Deadline, Deadlines, Entitlement
from gpu_scheduler.core.eviction.fair_share_state import FairShareState
from gpu_scheduler.core.eviction.solver import Constraints, Solution, Solver
from gpu_scheduler.core.eviction.victims import BudgetKey, Victims, orders
from gpu_scheduler.core.fit.placement import PodGroupAssignment, milli_of
from gpu_scheduler.core.model.decision import Evict, EvictReason, ReservationReason
from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import JobKey, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import EvictionGroup
from gpu_scheduler.core.queue.order import FairOrder
from gpu_scheduler.core.queue.pod_group import GroupRequest, PodGroup, Position, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservation, ActiveReservations
from gpu_scheduler.core.reservation.reserved_nodes import ReservedNodes

Groups = Callable[[Queue, set[Signature], set[JobKey]], Iterable[PodGroup]]
Costs = dict[tuple[GroupRequest, int, JobKey | None], float]  # seconds of work for each GPU
NEVER = -1.0  # at no cost
MOST_HELPED = 32  # pods per cycle; the others have their turn in the next one


class Action(NamedTuple):
    """One kind of help.

    Why others have to go and what for, which groups of a queue may get it (see ``Queue.groups``),
    by when, and the solution for it.
    """

    reason: EvictReason
    owed: Entitlement
    groups: Groups
    deadline: Callable[[PodGroup], Deadline | None]
    solve: Callable[[PodGroup], Solution | None]


class Preemption:
    """One cycle's evictions; ``evicts`` is what it decided, beside the room that it keeps."""

    def __init__(
        self,
        solver: Solver,
        victims: Victims,
        balance: FairShareState,
        active: ActiveReservations,
        reserved_nodes: ReservedNodes,
        deadlines: Deadlines,
    ) -> None:
        self.evicts: list[Evict] = []
        self.looks: dict[JobKey, None] = {}
        """Jobs for which somebody would have been evicted, had they been looked at."""
        self.in_the_way: dict[ProjectName, Position] = {}
        """From where on the groups of projects should have had their turn after these."""
        self._helped = 0
        self._placer = solver.placer
        self._solver = solver
        self._victims = victims
        self._balance = balance
        self._active = active
        self._reserved_nodes = reserved_nodes
        self._deadlines = deadlines

    def run(self, queues: Sequence[Queue], order: FairOrder) -> None:
        """Decide; the queues hold what still waits."""
        shares, quotas, deadlines = self._balance, self._balance.down_to_quotas(), self._deadlines
        # By strict rules those go first that hold more than their fair share, else the cheapest.
        guaranteed = [
            Action(
                EvictReason.RECLAIM,
                Entitlement.GUARANTEE,
                deadlines.nominal_groups,
                deadlines.guarantee,
                lambda group, balance=balance: self._reclaim(  # type: ignore[misc]
                    group, balance, borrows=False
                ),
            )
            for balance in ((shares, quotas) if deadlines.preemption_policy.strict else (quotas,))
        ]
        above = Action(
            EvictReason.RECLAIM,
            Entitlement.SHARE,
            self._behind,
            lambda group: deadlines.share(group, shares.shares_milli[group.project.name]),
            lambda group: self._reclaim(group, shares, borrows=True),
        )
        waiting = [queue for queue in queues if queue.waits]
        if waiting and (quotas.anyone_over() or self._solver.coming):
            deadlines.note_nominal(waiting, shares, self._active)
            for action in guaranteed:
                self._pass(waiting, order, action)
            self._pass(waiting, order, above)
        outranked = [queue for queue in waiting if queue.waits and self._outranks(queue)]
        higher = Action(
            EvictReason.PRIORITY,
            Entitlement.PRIORITY,
            Queue.groups,
            deadlines.priority,
            self._preempt,
        )
        self._pass(outranked, order, higher)

    def _outranks(self, queue: Queue) -> bool:
        """Whether what waits has a higher priority than one of its project on a node."""
        highest = max((group.job for group in queue.firsts()), key=lambda job: job.priority)
        return self._victims.running_pods.outranks(highest)

    def _behind(
        self, queue: Queue, passed: set[Signature], kept: set[JobKey]
    ) -> Iterable[PodGroup]:
        name = queue.project.name
        is_behind = self._deadlines.is_behind(name, self._balance.shares_milli[name])
        return queue.groups(passed, kept) if is_behind else ()

    def _pass(self, queues: Sequence[Queue], order: FairOrder, action: Action) -> None:
        """Help one group after the other, the project with the smallest share first."""
        turns = [self._turns(queue, action) for queue in queues]
        if self._helped < MOST_HELPED and not self.in_the_way:
            for _ in order.by_turns(queues, turns):
                if self._helped >= MOST_HELPED or self.in_the_way:
                    break

    def _turns(self, queue: Queue, action: Action) -> Iterator[bool]:
        """One after the other, groups that are helped."""
        costs: Costs = {}
        passed: set[Signature] = set()
        kept = self._active.jobs()
        for group in action.groups(queue, passed, kept):
            if not (group.deserving and group.needs.least_milli):
                passed.add(group.signature)
            elif group.job.key in self.looks:
                continue
            elif group.job.unseen and len(self.looks) >= MOST_HELPED:
                passed.add(group.signature)
            elif not self._active.freed_for(group):
                if self._help(group, action, costs):
                    yield True
                elif costs.get((group.needs, group.job.priority, None)) == NEVER:
                    self._deadlines.note_in_vain(action.owed, group.signature)
                    if group.job.key not in kept and not self._active.reserved_open_to(group.job):
                        passed.add(group.signature)

    def _help(self, group: PodGroup, action: Action, costs: Costs) -> bool:
        """Decide on the solution for a group; ``costs``: what it would cost to help those alike."""
        job = group.job
        own, others = self._active.of_group(group), self._active.reserved_open_to(job)
        key = group.needs, job.priority, job.key if own or others else None
        cost = costs.get(key)
        if cost == NEVER:
            return False
        deadline = action.deadline(group)
        if deadline is None or (cost is not None and not self._deadlines.may_cost(deadline, cost)):
            return False
        for reserved in (*own, *others):
            self._active.release(reserved)
        found = action.solve(group)
        gone = [pod for victim in found.victims for pod in victim] if found else ()
        if found is None or not self._placer.may_after(found.placement, gone):
            costs[key], found = NEVER, None
        else:
            costs[key] = self._lost_seconds(found)
        helps = found is not None and self._deadlines.may_cost(deadline, costs[key])
        if helps and job.unseen and found is not None and self._run(found.victims):
            self.looks[job.key], helps = None, False
        if found is None or not helps:
            self._active.restore((*own, *others))
            return False
        if self._are_in_the_way(group, found.victims):
            return True
        self._evict(found.victims, group, action)
        self._promise(group, found.placement, others)
        return True

    def _reclaim(self, group: PodGroup, whole: FairShareState, *, borrows: bool) -> Solution | None:
        """A solution at the cost of projects from which the balance lets something be taken."""
        project, balance = group.project, whole.of(group.needs)
        room = balance.missing_milli(project.name)
        if not borrows:
            room = min(room, self._balance.nominal_milli(project))
        if group.needs.least_milli > room:
            return None
        model_budget, barred = (
            self._balance.borrowing.model_budget(project),
            self._reserved_nodes.barred if borrows else None,
        )
        placement = self._solver.without(group, room, barred, model_budget)
        if placement is not None:
            return Solution((), placement)
        if barred is not None and self._solver.without(group, room, None, model_budget) is not None:
            return None  # there is room that is only kept from those who borrow

        def spare(reason: BudgetKey) -> int:
            if reason.interactive:
                return self._victims.interactive_milli(reason.project)
            if reason.model is not None:
                return self._balance.spare_of_model_milli(reason.project, reason.model)
            return balance.spare_milli(reason.project)

        gives = partial(self._victims.gives, project.name)
        constraints = Constraints(gives, spare, lambda given: room, model_budget, barred)
        over = [
            name for name in balance.most_over() if not borrows or self._deadlines.is_ahead(name)
        ]
        ranked = self._victims.of_others(group.job, over, protected=borrows)
        return self._solver.best(group, ranked, constraints)

    def _preempt(self, group: PodGroup) -> Solution | None:
        """A solution at the cost of pods of the same project with a lower priority."""
        project, job = group.project, group.job
        if not self._victims.running_pods.outranks(job):
            return None
        growth, most = self._balance.growth_milli(project), self._balance.ceiling_milli(project)
        model_budget = self._balance.borrowing.model_budget(project)
        placement = self._solver.without(group, growth, None, model_budget)
        if placement is not None:
            return Solution((), placement)
        if self._solver.without(group, most, None, model_budget) is not None:
            return None  # there is room that is only kept from those who borrow

        def spare(reason: BudgetKey) -> int:
            return (
                self._victims.interactive_milli(reason.project) if reason.interactive else UNBOUNDED
            )

        def fair(given: int, cost: int, nodes: Iterable[int]) -> bool:
            """Beyond its growth a project takes no nodes for which those inside quota wait."""
            return cost <= growth + given or not any(node in self._reserved_nodes for node in nodes)

        gives = partial(self._victims.gives, project.name)
        constraints = Constraints(
            gives, spare, lambda given: most + given, model_budget, None, fair
        )
        return self._solver.best(group, self._victims.of_lower_priority(job), constraints)

    def _run(self, victims: Iterable[EvictionGroup]) -> bool:
        """Whether any of these runs already, and is not only started by this cycle."""
        return any(self._victims.running_pods.group_of(victim) is None for victim in victims)

    def _lost_seconds(self, solution: Solution) -> float:
        """What others lose for each GPU of a solution."""
        lost = sum(map(self._victims.lost_milli_seconds, solution.victims))
        return lost / max(1, milli_of(solution.placement))

    def _are_in_the_way(self, group: PodGroup, victims: Iterable[EvictionGroup]) -> bool:
        """Whether some are only started by this cycle: then all is planned again without them."""
        for victim in victims:
            other = self._victims.running_pods.group_of(victim)
            if other is not None:
                mine = other.project is group.project
                self.in_the_way[other.project.name] = (
                    (*group.position, 0) if mine else other.position
                )
        return bool(self.in_the_way)

    def _evict(self, victims: Sequence[EvictionGroup], group: PodGroup, action: Action) -> None:
        """Decide that these go."""
        name_of = self._placer.snapshot.cluster.name_of
        for victim in victims:
            why = self._why(group, victim, action.owed) + self._victims.loss(victim)
            self.evicts += orders(victim, group.job.key, action.reason, why, name_of)
        for victim in victims:
            self._victims.evict(victim)

    def _why(self, group: PodGroup, victim: EvictionGroup, owed: Entitlement) -> str:
        job: WaitingJob = group.job
        first = victim[0]
        if owed is Entitlement.PRIORITY or first.project == job.project:
            other = self._placer.snapshot.cluster.name_of(first.job)
            return f"its priority is {job.priority}, that of {other} {first.priority}"
        balance = self._balance.of(group.needs)
        if owed is Entitlement.SHARE:
            return f"{balance.stand(job.project)}, {balance.stand(first.project)}"
        mine, other = (balance.above_quota(name) for name in (job.project, first.project))
        return f"its quota is a guarantee: {mine}, {other}"

    def _promise(
        self, group: PodGroup, placement: PodGroupAssignment, others: Iterable[ActiveReservation]
    ) -> None:
        """Keep the room for those for whom it was made, or start them; ``others`` keep the rest."""
        self._helped += len(placement)
        for reserved in self._active.of_group(group):
            self._active.drop(reserved)
        affordable = milli_of(placement) <= self._balance.borrowing.room_milli(group.project)
        self._active.keep(group, placement, ReservationReason.FREED, new=True)
        mine = self._active.of_group(group)
        if affordable and all(reserved.here for reserved in mine):
            for reserved in mine:
                self._active.drop(reserved)
            self._placer.start(group, placement)
            self._victims.running_pods.start(group)
        self._active.restore(others)
