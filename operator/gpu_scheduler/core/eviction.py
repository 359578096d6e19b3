"""The fewest pods to evict from one node so that a waiting pod really fits there.

Tried on the snapshot and rolled back: victims go one by one in their order until the pod fits,
then every victim that was not needed after all is spared, those first that would go last. That is
tried with all victims of a node, and with those of the devices that are freed most cheaply. Nodes
are tried in the order of their first victim, up to a budget. Called by ``reclaim``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.request import ProjectName
from gpu_scheduler.core.snapshot import Picks, Snapshot
from gpu_scheduler.core.victims import Parties, Rank

MOST_NODES = 64  # tried for one pod
MOST_PASSED = 32  # trials without the first victims, for one pod
Ranked = list[tuple[Rank, Occupant]]  # of one node, in order


@dataclass(frozen=True, slots=True)
class Way:
    """How a pod gets a place: who goes, and what it gets then."""

    node: int
    victims: tuple[Occupant, ...]
    choice: Choice


@dataclass(slots=True)
class Terms:
    """Under which terms pods may be evicted for another one."""

    spare_milli: Callable[[ProjectName], int]
    """What may be taken from a project in all."""
    interactive_milli: Callable[[ProjectName], int]
    """What may be taken from its interactive pods."""
    room_milli: Callable[[int], int]
    """What the pod may cost, given the milli-GPU of its victims."""
    purse: Purse | None = None
    """What a gang may cost by model, once its victims are gone."""
    fair: Callable[[int, int, Iterable[int]], bool] = lambda given, cost, nodes: True
    """Whether that may be done, given what victims give, what the pod costs, and its nodes."""


Cost = tuple[bool, int, int, bool, int, float]
Spare = Mapping[tuple[ProjectName, bool], int]  # of a project in all, or of its interactive pods


class Search:
    """Looks for ways on one snapshot; ``trials`` is what is left of the cycle's budget."""

    def __init__(
        self,
        snapshot: Snapshot,
        locator: Locator,
        departures: Departures,
        parties: Parties,
        trials: int,
    ) -> None:
        self.trials, self._parties = trials, parties
        self._snapshot, self._locator, self._departures = snapshot, locator, departures

    def without(
        self,
        demand: Demand,
        now: Callable[[int], tuple[int, Choice] | None],
        nodes: Iterable[int],
        room_milli: int,
    ) -> Way | None:
        """A place where room is, or will be once those are gone that leave anyway.

        ``now``: a place on what is free, on any node, for at most so many milli; ``nodes``: those
        that come into question where somebody leaves.
        """
        if demand.least_milli > room_milli:
            return None
        found = now(room_milli)
        if found is not None:
            return Way(found[0], (), found[1])
        for node in nodes:
            mark = self._snapshot.mark()
            self._departures.release(node)
            choice = self._fits(demand, node, room_milli)
            self._snapshot.rollback(mark)
            if choice is not None:
                return Way(node, (), choice)
        return None

    def best(self, demand: Demand, nodes: Mapping[int, Ranked], terms: Terms) -> Way | None:
        """The way whose last victim comes first in the order; then the one with the fewest."""
        projects = {pod.project for ranked in nodes.values() for _, pod in ranked}
        spare = {
            (name, interactive): part(name)
            for interactive, part in ((False, terms.spare_milli), (True, terms.interactive_milli))
            for name in projects
        }
        found: list[tuple[Cost, int, Way]] = []
        tried: list[tuple[int, Ranked]] = []
        for node, ranked in sorted(nodes.items(), key=lambda item: (item[1][0][0], item[0])):
            if len(tried) == MOST_NODES or self.trials <= 0:
                break
            if self._at_most(node, ranked) < demand.least_milli:
                continue
            tried.append((node, ranked))
            way = self._on(demand, node, ranked, spare, terms)
            if way is not None:
                found.append((self._cost(way, ranked), node, way))
        if not found:
            return self._passing_over(demand, tried, spare, terms)
        return min(found, key=lambda entry: entry[:2])[2]

    def _passing_over(
        self, demand: Demand, tried: list[tuple[int, Ranked]], spare: Spare, terms: Terms
    ) -> Way | None:
        """A way without the first victims, where their project cannot give all of them."""
        left = MOST_PASSED
        for node, ranked in tried:
            if self._can_all_go(ranked, spare):
                continue
            for first in range(1, len(ranked)):
                if not left or self.trials <= 0:
                    return None
                left, self.trials = left - 1, self.trials - 1
                way = self._among(demand, node, ranked[first:], spare, terms)
                if way is not None:
                    return way
        return None

    def _can_all_go(self, ranked: Ranked, spare: Spare) -> bool:
        given: Counter[tuple[ProjectName, bool]] = Counter()
        for _, pod in ranked:
            for interactive in (False, True)[: 1 + pod.interactive]:
                given[pod.project, interactive] += self._parties.milli(pod)
        return all(milli <= spare[kind] for kind, milli in given.items())

    def _on(
        self, demand: Demand, node: int, ranked: Ranked, spare: Spare, terms: Terms
    ) -> Way | None:
        """The fewest victims on this node."""
        found: list[tuple[Cost, int, Way]] = []
        for i, some in enumerate((ranked, *self._by_device(demand, node, ranked))):
            self.trials -= 1
            way = self._among(demand, node, some, spare, terms)
            if way is not None:
                found.append((self._cost(way, ranked), i, way))
        return min(found, key=lambda entry: entry[:2])[2] if found else None

    def _cost(self, way: Way, ranked: Ranked) -> Cost:
        """The project and priority of the last to go, then how many that run, then how long."""
        gone = {pod.uid for pod in way.victims}
        last = max(rank for rank, pod in ranked if pod.uid in gone)
        running = (pod for rank, pod in ranked if rank.runs and pod.uid in gone)
        count = sum(len(self._parties.of(pod)) for pod in running)
        return (last.runs, last.project, last.priority, last.interactive, count, last.age)

    def _by_device(self, demand: Demand, node: int, ranked: Ranked) -> Iterable[Ranked]:
        """The victims on single devices, or on as many as the pod asks for, cheapest first."""
        on_device: dict[int, Ranked] = {}
        for each in ranked:
            for device in {p[1] for pod in self._here(node, each[1]) for p in self._picks(pod)}:
                on_device.setdefault(device, []).append(each)
        if len(on_device) < 2:
            return []
        count = max((request.count for request in demand.shape.devices), default=1)
        if count == 1:
            return list(on_device.values())
        milli = self._parties.milli
        held = {d: sum(milli(p) for rank, p in on if rank.runs) for d, on in on_device.items()}
        chosen = sorted(on_device, key=lambda d: (held[d], d))[:count]
        return [[each for each in ranked if any(each in on_device[d] for d in chosen)]]

    def _among(
        self,
        demand: Demand,
        node: int,
        ranked: Ranked,
        spare_milli: Spare,
        terms: Terms,
    ) -> Way | None:
        """The fewest of these victims."""
        snapshot, room_milli = self._snapshot, terms.room_milli
        mark = snapshot.mark()
        self._departures.release(node)
        gone: list[Occupant] = []
        given: Counter[tuple[ProjectName, bool]] = Counter()  # in all, and by interactive pods
        choice: Choice | None = None
        for _, pod in ranked:
            kinds = [(pod.project, False), *([(pod.project, True)] if pod.interactive else [])]
            milli = self._parties.milli(pod)
            if any(given[kind] + milli > spare_milli[kind] for kind in kinds):
                continue
            self._release(node, pod)
            gone.append(pod)
            given.update(dict.fromkeys(kinds, milli))
            total = sum(self._parties.milli(each) for each in gone)
            choice = self._fits(demand, node, room_milli(total))
            if choice is not None:
                break
        if choice is not None:
            total = sum(self._parties.milli(each) for each in gone)
            for pod in gone[-2::-1]:
                milli = self._parties.milli(pod)
                for each in self._here(node, pod):
                    snapshot.take(node, each, self._picks(each), each.project)
                without = self._fits(demand, node, room_milli(total - milli))
                if without is None:
                    self._release(node, pod)
                else:
                    choice, total = without, total - milli
                    gone.remove(pod)
        snapshot.rollback(mark)
        if choice is None:
            return None
        total = sum(self._parties.milli(pod) for pod in gone)
        fair = terms.fair(total, sum(pick[2] for pick in choice.picks), (node,))
        return Way(node, tuple(gone), choice) if fair else None

    def _at_most(self, node: int, ranked: Ranked) -> int:
        """What could be free on a node, if devices were of no matter."""
        coming = self._departures.coming_milli(node)
        return (
            self._snapshot.node_free_milli[node]
            + coming
            + sum(self._parties.milli(pod) for _, pod in ranked)
        )

    def _here(self, node: int, pod: Occupant) -> Iterable[Occupant]:
        """Those who go with a pod and are on the node; room elsewhere does not help."""
        party = self._parties.of(pod)
        return (
            party if len(party) == 1 else [p for p in party if self._locator.node(p.node) == node]
        )

    def _picks(self, pod: Occupant) -> Picks:
        return self._locator.picks(pod)

    def _release(self, node: int, pod: Occupant) -> None:
        for each in self._here(node, pod):
            self._snapshot.release(node, each, self._picks(each), each.project)

    def _fits(self, demand: Demand, node: int, room_milli: int) -> Choice | None:
        if not self._snapshot.has_room(node, demand.shape):
            return None
        choice = demand.chooser.choose(node)
        if choice is None or sum(pick[2] for pick in choice.picks) > room_milli:
            return None
        return choice
