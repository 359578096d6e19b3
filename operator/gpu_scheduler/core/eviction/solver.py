"""The fewest pods after which a whole group really fits, and where it does.

One search for all who need it: pods that may be evicted (``preemption``), that may move
(``consolidation``) or that end some day (``reservation``). Pods go in their order until the group
fits, found by halving; then every one is spared without which it fits as well. All of it is tried
on the snapshot and rolled back. A lone pod is tried node by node, a gang in each of its domains.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpu_scheduler.core.eviction import victims
from gpu_scheduler.core.eviction.victims import BudgetKey, Ranked
from gpu_scheduler.core.fairness.budget import ModelBudget
from gpu_scheduler.core.fit.placement import Placer, PodGroupAssignment, milli_of
from gpu_scheduler.core.model.arrays import Flags
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.running_pods import EvictionGroup
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.reservation.releasing import ReleasingResources

TRIALS = 640  # per cycle
MOST_SCOPES = 64  # tried for one group
MOST_PASSED = 32  # trials without the first victims, for one group
MOST_SPARED = 16  # victims of one solution that are tried one by one, whether they are needed
MOST_VICTIMS = 512  # of one trial

Cost = tuple[bool, int, int, bool, float, int, float]


class Scope(NamedTuple):
    """Where a group is tried: each pod on a node of its own, or (None) on all not barred."""

    at: Mapping[PodUID, int] | None
    barred: Flags | None

    def has(self, node: int) -> bool:
        """Whether a node is part of it."""
        if self.at is not None:
            return node in self.at.values()
        return self.barred is None or not self.barred[node]


class Solution(NamedTuple):
    """Who goes, and where the group is then."""

    victims: tuple[EvictionGroup, ...]
    placement: PodGroupAssignment


@dataclass(frozen=True, slots=True)
class Constraints:
    """Under which terms pods may be evicted for a group."""

    gives: Callable[[EvictionGroup], Mapping[BudgetKey, int]]
    """What a victim gives, of each kind of which there is only so much."""
    spare_milli: Callable[[BudgetKey], int]
    """What may be taken of a kind."""
    room_milli: Callable[[int], int]
    """What the group may cost, given the milli-GPU of its victims."""
    model_budget: ModelBudget | None
    """What it may cost by model, once its victims are gone."""
    barred: Flags | None = None
    """[nodes] that it must not use."""
    fair: Callable[[int, int, Iterable[int]], bool] = lambda given, cost, nodes: True
    """Whether that may be done, given what victims give, what the group costs, and its nodes."""


class Solver:
    """Searches on one snapshot, ``placer``'s; ``trials`` is what is left of the cycle's budget."""

    def __init__(self, placer: Placer, releasing: ReleasingResources) -> None:
        self.trials = TRIALS
        self.placer = placer
        self._snapshot = placer.snapshot
        self.releasing = releasing

    @property
    def coming(self) -> bool:
        """Whether room comes on any node."""
        return bool(self.releasing.nodes)

    def without(
        self,
        group: PodGroup,
        room_milli: int,
        barred: Flags | None,
        model_budget: ModelBudget | None,
    ) -> PodGroupAssignment | None:
        """Places at nobody's cost: now, or once those are gone that leave anyway."""
        found = self.placer.place(group, room_milli, barred, model_budget)
        if found is None and self.coming:
            mark = self._snapshot.mark()
            self.releasing.release_all()
            found = self.placer.place(group, room_milli, barred, model_budget)
            self._snapshot.rollback(mark)
        return found

    def best(self, group: PodGroup, ranked: Ranked, constraints: Constraints) -> Solution | None:
        """The solution whose last victim comes first in the order; then the one with the fewest."""
        found: list[tuple[Cost, int, Solution]] = []
        tried: list[tuple[Scope, Ranked]] = []
        for scope, some in self._scopes(group, sorted(ranked, key=_rank), constraints):
            if len(tried) == MOST_SCOPES or self.trials <= 0:
                break
            tried.append((scope, some))
            for each in self._lists(group, scope, some):
                self.trials -= 1
                solution = self._among(group, scope, each, constraints)
                if solution is not None:
                    found.append((_cost(solution, some), len(found), solution))
        if not found:
            return self._passing_over(group, tried, constraints)
        return min(found, key=lambda entry: entry[:2])[2]

    def fewest(
        self,
        group: PodGroup,
        scope: Scope,
        candidates: Sequence[EvictionGroup],
        room_milli: Callable[[int], int],
        model_budget: ModelBudget | None,
    ) -> tuple[int, PodGroupAssignment] | None:
        """How many of these must be gone, in their order, so that the group fits; and where.

        ``room_milli``: what it may cost, given the milli-GPU of those that are gone.
        """

        def after(count: int) -> PodGroupAssignment | None:
            mark = self._snapshot.mark()
            given = self._release(candidates[:count])
            found = self.fits(group, scope, room_milli(given), model_budget)
            self._snapshot.rollback(mark)
            return found

        mark = self._snapshot.mark()
        self.await_releasing(scope)
        low, high, best = -1, len(candidates), after(len(candidates))
        while best is not None and high - low > 1:  # does not fit with low, fits with high
            middle = 0 if low < 0 else (low + high) // 2
            found = after(middle)
            if found is None:
                low = middle
            else:
                high, best = middle, found
        self._snapshot.rollback(mark)
        return None if best is None else (high, best)

    def fits(
        self, group: PodGroup, scope: Scope, room_milli: int, model_budget: ModelBudget | None
    ) -> PodGroupAssignment | None:
        """Places for the group within a scope, on what is free now."""
        if scope.at is not None:
            return self.placer.place_at(group, room_milli, scope.at, model_budget)
        if self.trials <= 0:
            return None
        self.trials -= 1
        return self.placer.place(group, room_milli, scope.barred, model_budget)

    def scopes(
        self, group: PodGroup, nodes: Iterable[int], barred: Flags | None
    ) -> Iterator[Scope]:
        """A lone pod: each of these nodes; a gang: its domains, without barred nodes."""
        if len(group.members) == 1:
            yield from (Scope({group.first_uid: node}, barred) for node in nodes)
        else:
            yield from (
                Scope(None, m) for m in self.placer.domains.masks(group, barred, hopeful=False)
            )

    def await_releasing(self, scope: Scope) -> None:
        """Those that leave anyway are gone, on the snapshot."""
        if scope.at is None:
            self.releasing.release_all()
            return
        for node in sorted(set(scope.at.values())):
            self.releasing.release(node)

    def _scopes(
        self, group: PodGroup, ranked: Ranked, constraints: Constraints
    ) -> Iterator[tuple[Scope, Ranked]]:
        """Where the group is tried, and who could go there; those with the first victims first."""
        model_budget, needs = constraints.model_budget, group.needs
        lacks_room = needs.least_milli > constraints.room_milli(0)
        lacks_room |= model_budget is not None and bool(model_budget.short_of(needs.counts.items()))
        if len(group.members) > 1:
            for scope in self.scopes(group, (), constraints.barred):
                yield scope, ranked if lacks_room else self._useful(group, scope, ranked)
            return
        if lacks_room:  # pods anywhere may give their project's room
            yield Scope(None, constraints.barred), ranked
        on = self._by_node(ranked)
        for node, some in sorted(on.items(), key=lambda item: (item[1][0][0], item[0])):
            if self._could_be(group, node, some, constraints):
                yield Scope({group.first_uid: node}, constraints.barred), some

    def _could_be(
        self, group: PodGroup, node: int, ranked: Ranked, constraints: Constraints
    ) -> bool:
        """Whether a lone pod may go to a node, and enough could be free there."""
        (member,) = group.members
        if constraints.barred is not None and constraints.barred[node]:
            return False
        free = self._snapshot.node_free_milli[node] + self.releasing.coming_milli(node)
        free += sum(victims.milli_of(victim) for _, victim in ranked)
        if member[1].exact and free < member[1].least_milli:  # in MiB, milli say nothing
            return False
        return self.placer.may_go(member, node)

    def _useful(self, group: PodGroup, scope: Scope, ranked: Ranked) -> Ranked:
        """Those on nodes that the group could use."""
        nodes = {n for pod_request in group.needs.counts for n in pod_request.usable}
        if scope.barred is not None:
            nodes = {n for n in nodes if not scope.barred[n]}
        find = self._snapshot.number_of
        return [each for each in ranked if any(find(pod.node) in nodes for pod in each[1])]

    def _by_node(self, ranked: Ranked) -> dict[int, Ranked]:
        found: dict[int, Ranked] = {}
        for each in ranked:
            nodes = [self._snapshot.number_of(pod.node) for pod in each[1] if pod.devices]
            for node in dict.fromkeys(nodes):
                if node is not None:
                    found.setdefault(node, []).append(each)
        return found

    def _lists(self, group: PodGroup, scope: Scope, ranked: Ranked) -> list[Ranked]:
        """Who goes first: as they rank, and those together that free the same device or node."""
        if scope.at is not None:
            return [ranked, *self._by_device(group, scope.at[group.first_uid], ranked)]
        by_node = {each[0]: each for some in self._by_node(ranked).values() for each in some}
        return [ranked, list(by_node.values())]

    def _by_device(self, group: PodGroup, node: int, ranked: Ranked) -> list[Ranked]:
        """The victims on single devices, or on as many as the pod asks for, cheapest first."""
        on: dict[int, Ranked] = {}
        first, last = self._snapshot.cluster.first[node], self._snapshot.cluster.first[node + 1]
        for each in ranked:
            picks = [pick for pod in each[1] for pick in self._snapshot.held_by(pod)]
            for device in {pick[1] for pick in picks if first <= pick[1] < last}:
                on.setdefault(device, []).append(each)
        if len(on) < 2:
            return []
        requests = group.members[0][1].pod_shape.devices
        count = max((request.count for request in requests), default=1)
        if count == 1:
            return list(on.values())
        held = {device: victims.weight(some) for device, some in on.items()}
        chosen = sorted(on, key=lambda d: (held[d], d))[:count]
        return [[each for each in ranked if any(each in on[d] for d in chosen)]]

    def _passing_over(
        self, group: PodGroup, tried: list[tuple[Scope, Ranked]], constraints: Constraints
    ) -> Solution | None:
        """A solution without the first victims, where not all of them may go together."""
        left = MOST_PASSED
        for scope, ranked in tried:
            if len(_may_go(ranked, constraints)) == len(ranked):
                continue
            for first in range(1, len(ranked)):
                if not left or self.trials <= 0:
                    return None
                left, self.trials = left - 1, self.trials - 1
                solution = self._among(group, scope, ranked[first:], constraints)
                if solution is not None:
                    return solution
        return None

    def _among(
        self, group: PodGroup, scope: Scope, ranked: Ranked, constraints: Constraints
    ) -> Solution | None:
        """The fewest of these victims."""
        may = _may_go(ranked, constraints)
        if not may or group.needs.least_milli > constraints.room_milli(_sum(may)):
            return None
        found = self.fewest(group, scope, may, constraints.room_milli, constraints.model_budget)
        if found is None:
            return None
        solution = self._needed(group, scope, may[: found[0]], found[1], constraints)
        given, cost = _sum(solution.victims), milli_of(solution.placement)
        nodes = (node for _, node, _ in solution.placement)
        return solution if constraints.fair(given, cost, nodes) else None

    def _needed(
        self,
        group: PodGroup,
        scope: Scope,
        gone: Sequence[EvictionGroup],
        placement: PodGroupAssignment,
        constraints: Constraints,
    ) -> Solution:
        """Of those who went, the ones without whom the group does not fit."""
        mark = self._snapshot.mark()
        self.await_releasing(scope)
        given = self._release(gone)
        if len(gone) > MOST_SPARED:
            stay = self._untouched(group, gone, placement, constraints)
            self._put_back(stay)
            given -= _sum(stay)
            stayed = set(map(id, stay))
            gone = [victim for victim in gone if id(victim) not in stayed]
        needed = list(gone)
        for victim in gone[-2::-1][:MOST_SPARED]:  # the last one was needed
            milli = victims.milli_of(victim)
            self._put_back([victim])
            other = self.fits(
                group, scope, constraints.room_milli(given - milli), constraints.model_budget
            )
            if other is None:
                self._release([victim])
            else:
                placement, given = other, given - milli
                needed.remove(victim)
        self._snapshot.rollback(mark)
        return Solution(tuple(needed), placement)

    def _untouched(
        self,
        group: PodGroup,
        gone: Sequence[EvictionGroup],
        placement: PodGroupAssignment,
        constraints: Constraints,
    ) -> list[EvictionGroup]:
        """Those who went and in whose places the group is not."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        given, cost = _sum(gone), milli_of(placement)
        for member, node, choice in placement:
            snapshot.take(node, member[0].pod_shape, choice.picks, group.job.project)
        stay: list[EvictionGroup] = []
        for victim in reversed(gone):
            milli = victims.milli_of(victim)
            if constraints.room_milli(given - milli) >= cost and self._fit_back(victim):
                self._put_back([victim])
                stay.append(victim)
                given -= milli
        snapshot.rollback(mark)
        return stay

    def _release(self, candidates: Iterable[EvictionGroup]) -> int:
        """Take pods off their nodes; the milli-GPU that this frees."""
        given = 0
        for victim in candidates:
            for pod in victim:
                self._snapshot.release_pod(pod)
                given += pod.milli
        return given

    def _put_back(self, candidates: Iterable[EvictionGroup]) -> None:
        for victim in candidates:
            for pod in victim:
                self._snapshot.put_back(pod)

    def _fit_back(self, victim: EvictionGroup) -> bool:
        """Whether all of a victim could have stayed."""
        mark, fit = self._snapshot.mark(), True
        for pod in victim:
            fit = fit and self._snapshot.fits_back(pod)
            if fit:
                self._snapshot.put_back(pod)
        self._snapshot.rollback(mark)
        return fit


def _rank(each: tuple[victims.Rank, EvictionGroup]) -> victims.Rank:
    return each[0]


def _sum(candidates: Iterable[EvictionGroup]) -> int:
    return sum(map(victims.milli_of, candidates))


def _may_go(ranked: Ranked, constraints: Constraints) -> list[EvictionGroup]:
    """Those of some victims who may go together, in order."""
    found: list[EvictionGroup] = []
    given: Counter[BudgetKey] = Counter()
    spare: dict[BudgetKey, int] = {}
    for _, victim in ranked:
        if len(found) == MOST_VICTIMS:
            break
        gives = constraints.gives(victim)
        for key in gives:
            if key not in spare:
                spare[key] = constraints.spare_milli(key)
        if all(given[key] + milli <= spare[key] for key, milli in gives.items()):
            found.append(victim)
            given.update(gives)
    return found


def _cost(solution: Solution, ranked: Ranked) -> Cost:
    """The project and priority of the last to go, then how many that run, then how long."""
    ids = set(map(id, solution.victims))
    gone = [(rank, victim) for rank, victim in ranked if id(victim) in ids]
    if not gone:
        return (False, -1, 0, False, 0.0, 0, 0.0)
    last = max(rank for rank, _ in gone)
    work = sum(rank.work for rank, _ in gone)
    count = sum(len(victim) for rank, victim in gone if rank.runs)
    return (last.runs, last.project, last.priority, last.interactive, work, count, last.age)
