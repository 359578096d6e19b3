"""Making room: who below its fair share, or of a higher priority, gets devices back from whom.

Pods inside quota come first, then those that would borrow what is theirs by fair share, then
higher priorities inside a project. A pod gets help only if it ends at most at its project's fair
share and every victim's project stays at or above its own, so no plan can undo the one before.
Nobody is evicted for room that comes anyway. Called by ``plan`` after both rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from gpu_scheduler.core import quota
from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.decision import Evict, EvictReason, Hold, HoldKind
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.eviction import Ranked, Search, Terms, Way
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.order import project_rank
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, Project, ProjectName
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.units import gpu_from_milli
from gpu_scheduler.core.victims import interactive_spare_milli, preemptible, rank
from gpu_scheduler.core.wording import gpus

MOST_HELPED = 32  # pods per cycle; the others have their turn in the next one
TRIALS = 512  # nodes tried per cycle

Finder = Callable[[Queue, Entry, Demand], Way | None]


class Reclaim:
    """One cycle's evictions; ``evicts`` and ``holds`` are what it decided."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        occupants: Occupants,
        departures: Departures,
        locator: Locator,
        balance: Balance,
        reservations: Reservations,
    ) -> None:
        self.evicts: list[Evict] = []
        self.holds: list[Hold] = []
        self._snapshot, self._demands, self._occupants = snapshot, demands, occupants
        self._departures, self._balance = departures, balance
        self._locator, self._reservations = locator, reservations
        self._search = Search(snapshot, locator, departures, TRIALS)
        self._victims: dict[ProjectName, list[Occupant]] = {}
        self._gone: set[PodUID] = set()
        self._usable: dict[Demand, frozenset[int]] = {}
        self._projects: Mapping[ProjectName, Project] = {}

    def run(
        self,
        projects: Mapping[ProjectName, Project],
        queues: Sequence[Queue],
        kept: set[PodUID],
        claimed: set[int],
    ) -> None:
        """Decide.

        Args:
            projects: all of them.
            queues: what still waits.
            kept: pods for which room was kept before.
            claimed: nodes that borrowers leave alone.
        """
        self._projects = projects

        def inside(queue: Queue, entry: Entry, demand: Demand) -> Way | None:
            held = self._balance.held_milli(queue.project.name)
            return self._reclaim(queue, entry, demand, quota.room_inside_milli(queue.project, held))

        def above(queue: Queue, entry: Entry, demand: Demand) -> Way | None:
            return self._reclaim(queue, entry, demand, quota.UNBOUNDED, claimed)

        waiting = [queue for queue in queues if queue.pending]
        if waiting and (self._balance.most_over() or self._departures.nodes):
            self._pass(waiting, kept, inside, EvictReason.RECLAIM)
            self._pass(waiting, kept, above, EvictReason.RECLAIM)
        outranked = [queue for queue in waiting if self._outranks(queue)]
        self._pass(outranked, kept, self._preempt, EvictReason.PRIORITY)

    def _outranks(self, queue: Queue) -> bool:
        """Whether a waiting pod has a higher priority than one of its project on a node."""
        held = (pod.priority for pod in self._occupants.of(queue.project.name))
        lowest = min(held, default=None)
        return lowest is not None and any(job.priority > lowest for job, _ in queue.pending)

    def _pass(
        self, queues: list[Queue], kept: set[PodUID], find: Finder, reason: EvictReason
    ) -> None:
        """Help one pod after the other, the project with the smallest share first."""
        ways = [self._ways(queue, kept, find, reason) for queue in queues]
        turns = [(self._rank(queue), i) for i, queue in enumerate(queues)]
        heapify(turns)
        while turns and len(self.holds) < MOST_HELPED:
            turn = turns[0][1]
            if next(ways[turn], None) is None:
                heappop(turns)
            else:
                heapreplace(turns, (self._rank(queues[turn]), turn))

    def _rank(self, queue: Queue) -> tuple[float, int, str]:
        name = queue.project.name
        held = self._snapshot.allocated_milli(name)
        return project_rank(name, held, self._balance.shares_milli[name])

    def _ways(
        self, queue: Queue, kept: set[PodUID], find: Finder, reason: EvictReason
    ) -> Iterator[Way]:
        stuck: set[tuple[Demand, int, frozenset[str]]] = set()
        for entry in queue.pending:
            job, pod = entry
            if job.gang is not None:
                continue
            demand = self._demands.of(pod.shape)
            key = (demand, job.priority, pod.avoid)
            if pod.uid in kept or not demand.least_milli or key in stuck or not demand.usable:
                continue
            block = self._reservations.lift(pod.uid)
            way = find(queue, entry, demand)
            if way is None:
                stuck.add(key)
                if block is not None:
                    self._reservations.lower(block)
                continue
            kept.add(pod.uid)
            self._decide(queue, entry, way, reason)
            yield way

    def _reclaim(
        self,
        queue: Queue,
        entry: Entry,
        demand: Demand,
        room_milli: int,
        claimed: frozenset[int] | set[int] = frozenset(),
    ) -> Way | None:
        """A way at the cost of projects above their fair share."""
        name = queue.project.name
        room = min(room_milli, self._balance.missing_milli(name))
        if demand.least_milli > room:
            return None

        def allowed(node: int) -> bool:
            return node not in claimed and self._allowed(entry, demand, node)

        coming = sorted(filter(allowed, self._departures.nodes))
        way = self._search.without(demand, coming, room)
        if way is not None:
            return way
        order = {other: i for i, other in enumerate(self._balance.most_over()) if other != name}
        if not order:
            return None
        victims = [(rank(pod, i), pod) for other, i in order.items() for pod in self._of(other)]
        terms = Terms(self._balance.spare_milli, self._interactive_milli, lambda given: room)
        return self._search.best(demand, self._by_node(victims, allowed), terms)

    def _preempt(self, queue: Queue, entry: Entry, demand: Demand) -> Way | None:
        """A way at the cost of pods of the same project with a lower priority."""
        job, project = entry[0], queue.project

        def allowed(node: int) -> bool:
            return self._allowed(entry, demand, node)

        if not any(p.priority < job.priority for p in self._occupants.of(project.name)):
            return None
        room = self._balance.growth_milli(project)
        coming = sorted(n for n in self._departures.nodes if allowed(n))
        way = self._search.without(demand, coming, room)
        if way is not None:
            return way
        victims = [(rank(p), p) for p in self._of(project.name) if p.priority < job.priority]
        terms = Terms(
            lambda name: quota.UNBOUNDED, self._interactive_milli, lambda given: room + given
        )
        way = self._search.best(demand, self._by_node(victims, allowed), terms)
        return way or self._for_room(demand, filter(allowed, demand.usable), victims, terms)

    def _for_room(
        self, demand: Demand, nodes: Iterable[int], victims: Ranked, terms: Terms
    ) -> Way | None:
        """A way where devices are free and only the project's own room is missing."""
        given, gone, interactive = 0, [], 0
        for _, pod in sorted(victims, key=lambda each: each[0]):
            if terms.room_milli(given) >= demand.least_milli:
                break
            if pod.interactive:
                if interactive + pod.milli > terms.interactive_milli(pod.project):
                    continue
                interactive += pod.milli
            given += pod.milli
            gone.append(pod)
        for pod in gone[::-1]:
            if terms.room_milli(given - pod.milli) >= demand.least_milli:
                given -= pod.milli
                gone.remove(pod)
        room = terms.room_milli(given)
        way = self._search.without(demand, nodes, room) if room >= demand.least_milli else None
        return way and Way(way.node, tuple(gone), way.choice)

    def _decide(self, queue: Queue, entry: Entry, way: Way, reason: EvictReason) -> None:
        job, pod = entry
        name = queue.project.name
        for victim in way.victims:
            if reason is EvictReason.RECLAIM:
                why = f"{self._stand(name)}, {self._stand(victim.project)}"
            else:
                why = f"its priority is {job.priority}, that of {victim.job} {victim.priority}"
            message = (
                f"{victim.name} gives {gpus(victim.milli)} on {victim.node} to {job.key}: {why}"
            )
            self.evicts.append(Evict(victim.uid, victim.job, job.key, reason, message))
        for victim in way.victims:
            self._departures.add(victim)
            self._gone.add(victim.uid)
        self._departures.owe(way.node, pod.shape, way.choice.picks, name)
        node = self._snapshot.cluster.nodes[way.node].name
        self.holds.append(Hold(pod.uid, job.key, node, HoldKind.FREED))

    def _stand(self, name: ProjectName) -> str:
        held, share = self._balance.held_milli(name), self._balance.shares_milli[name]
        return f"project {name} holds {gpus(held)}, its fair share is {gpu_from_milli(share)}"

    def _of(self, name: ProjectName) -> list[Occupant]:
        """Those of a project's pods that may still be evicted."""
        if name not in self._victims:
            self._victims[name] = preemptible(self._occupants.of(name))
        return [pod for pod in self._victims[name] if pod.uid not in self._gone]

    def _interactive_milli(self, name: ProjectName) -> int:
        left = (pod for pod in self._occupants.of(name) if pod.uid not in self._gone)
        return interactive_spare_milli(self._projects[name], left)

    def _by_node(self, victims: Ranked, allowed: Callable[[int], bool]) -> dict[int, Ranked]:
        found: dict[int, Ranked] = {}
        for ranked in sorted(victims, key=lambda each: each[0]):
            node = self._locator.node(ranked[1].node)
            if node is not None:
                found.setdefault(node, []).append(ranked)
        return {node: each for node, each in found.items() if allowed(node)}

    def _allowed(self, entry: Entry, demand: Demand, node: int) -> bool:
        if demand not in self._usable:
            self._usable[demand] = frozenset(demand.usable)
        name = self._snapshot.cluster.nodes[node].name
        return node in self._usable[demand] and name not in entry[1].avoid
