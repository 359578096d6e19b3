"""Making room: who below its fair share, or of a higher priority, gets devices back from whom.

Pods inside quota come first, then those that would borrow what is theirs by fair share, then
higher priorities inside a project. A pod gets help only if it ends at most at its project's fair
share and every victim's project stays at or above its own, or, where a pod inside quota finds no
other way, at its quota; so no plan can undo the one before. Nobody is evicted for room that is
there or comes anyway (ADR 0038). Called by ``plan`` after both rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from gpu_scheduler.core import quota
from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.blocks import Block, Blocks
from gpu_scheduler.core.decision import Evict, EvictReason, HoldKind
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.eviction import Ranked, Search, Terms, Way
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.making_room import GangSearch, GangWay
from gpu_scheduler.core.gangs.placing import Placement, milli_of
from gpu_scheduler.core.gangs.reclaim import GangReclaim
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.order import project_rank
from gpu_scheduler.core.placed import placed
from gpu_scheduler.core.preemptible import Preemptible
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.core.rounds import Tables
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.started import Started
from gpu_scheduler.core.victims import Parties

MOST_HELPED = 32  # pods per cycle; the others have their turn in the next one
TRIALS = 512  # nodes tried per cycle

Finder = Callable[[Queue, Entry, Demand], Way | None]
GangFinder = Callable[[Queue, GangRequest], GangWay | None]


class Step(NamedTuple):
    """One kind of help: why others have to go, and the way for a pod or for a gang."""

    reason: EvictReason
    pod: Finder
    gang: GangFinder


class Reclaim:
    """One cycle's evictions; ``evicts`` is what it decided, beside the room that it keeps."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        occupants: Started,
        departures: Departures,
        locator: Locator,
        balance: Balance,
        blocks: Blocks,
        gangs: Gangs,
        projects: Mapping[ProjectName, Project],
        tables: Tables,
    ) -> None:
        self.evicts: list[Evict] = []
        self._helped = 0
        self._snapshot, self._demands, self._occupants = snapshot, demands, occupants
        self._departures, self._balance = departures, balance
        self._locator, self._blocks, self._tables = locator, blocks, tables
        self._gangs, self._parties = gangs, Parties(occupants)
        self._search = Search(snapshot, locator, departures, self._parties, TRIALS)
        self._preemptible = Preemptible(occupants, self._parties, balance, locator, projects)
        search = GangSearch(snapshot, locator, departures, self._parties, gangs.placer)
        self._of_gangs = GangReclaim(search, self._preemptible, balance)
        self._usable: dict[Demand, frozenset[int]] = {}

    def run(self, queues: Sequence[Queue]) -> None:
        """Decide; the queues hold what still waits."""

        def room(project: Project) -> int:
            return quota.room_inside_milli(project, self._balance.held_milli(project.name))

        shares, quotas = self._balance, self._balance.down_to_quotas()
        inside, guaranteed = (
            Step(
                EvictReason.RECLAIM,
                lambda queue, entry, demand, terms=terms: self._reclaim(  # type: ignore[misc]
                    queue, entry, demand, room(queue.project), terms
                ),
                lambda queue, request, terms=terms: self._of_gangs.reclaim(  # type: ignore[misc]
                    queue.project, request, room(queue.project), terms
                ),
            )
            for terms in (shares, quotas)
        )
        above = Step(
            EvictReason.RECLAIM,
            lambda queue, entry, demand: self._reclaim(
                queue, entry, demand, quota.UNBOUNDED, shares, self._tables.claimed
            ),
            lambda queue, request: self._of_gangs.reclaim(
                queue.project, request, quota.UNBOUNDED, shares, self._tables.barred()
            ),
        )
        waiting = [queue for queue in queues if queue.pending]
        if waiting and (quotas.anyone_over() or self._departures.nodes):
            self._pass(waiting, inside)
            self._pass(waiting, guaranteed)
            self._pass(waiting, above)
        outranked = [q for q in waiting if q.pending and self._outranks(q)]
        higher = Step(
            EvictReason.PRIORITY,
            self._preempt,
            lambda queue, request: (
                self._of_gangs.preempt(queue.project, request, self._tables.claimed)
                if self._occupants.outranks(request.job)
                else None
            ),
        )
        self._pass(outranked, higher)

    def _outranks(self, queue: Queue) -> bool:
        """Whether a waiting pod has a higher priority than one of its project on a node."""
        highest = max((job for job, _ in queue.pending), key=lambda job: job.priority)
        return self._occupants.outranks(highest)

    def _pass(self, queues: list[Queue], step: Step) -> None:
        """Help one pod or gang after the other, the project with the smallest share first."""
        ways = [self._ways(queue, step) for queue in queues]
        turns = [(self._rank(queue), i) for i, queue in enumerate(queues)]
        heapify(turns)
        while turns and self._helped < MOST_HELPED:
            turn = turns[0][1]
            if next(ways[turn], None) is None:
                heappop(turns)
            else:
                heapreplace(turns, (self._rank(queues[turn]), turn))

    def _rank(self, queue: Queue) -> tuple[float, int, str]:
        name = queue.project.name
        held = self._snapshot.allocated_milli(name)
        return project_rank(name, held, self._balance.shares_milli[name])

    def _ways(self, queue: Queue, step: Step) -> Iterator[bool]:
        """One after the other, pods or gangs that are helped."""
        stuck: set[tuple[object, ...]] = set()
        gang = ""
        for job, pod in tuple(queue.pending):
            if job.gang is None:
                if self._help_pod(queue, (job, pod), step, stuck):
                    yield True
            elif gang != job.key:
                gang = job.key
                if self._help_gang(queue, job, step, stuck):
                    yield True

    def _help_pod(
        self, queue: Queue, entry: Entry, step: Step, stuck: set[tuple[object, ...]]
    ) -> bool:
        job, pod = entry
        demand = self._demands.of(pod.shape)
        if self._blocks.freed_for(pod.uid) or not demand.least_milli or not demand.usable:
            return False

        def find() -> GangWay | None:
            way = step.pod(queue, entry, demand)
            seat = [((pod, demand), way.node, way.choice)] if way else []
            return GangWay(way.victims, seat) if way else None

        sort = demand, job.priority, pod.avoid, id(pod.peers)
        balance = self._balance.of(demand)
        return self._help(queue, job, (pod.uid,), step.reason, balance, find, sort, stuck)

    def _help_gang(
        self, queue: Queue, job: WaitingJob, step: Step, stuck: set[tuple[object, ...]]
    ) -> bool:
        request, uids = self._gangs.of(job), [pod.uid for pod in job.pods]
        if not request.least_milli or any(map(self._blocks.freed_for, uids)):
            return False
        if not self._gangs.startable(request):
            return False
        sort = *request.signature, job.priority
        find = partial(step.gang, queue, request)
        return self._help(queue, job, uids, step.reason, self._balance, find, sort, stuck)

    def _help(
        self,
        queue: Queue,
        job: WaitingJob,
        pods: Sequence[PodUID],
        reason: EvictReason,
        balance: Balance,
        find: Callable[[], GangWay | None],
        sort: tuple[object, ...],
        stuck: set[tuple[object, ...]],
    ) -> bool:
        """Decide on the way that is found for pods together; if none, their sort is ``stuck``."""
        own, others = self._blocks.mine(pods), self._blocks.reserved_open_to(job)
        key = *sort, job.key if own or others else ""
        if key in stuck:
            return False
        for block in (*own, *others):
            self._blocks.lift(block)
        way = find()
        if way is None or not self._may_after(way.placement, way.victims):
            stuck.add(key)
            self._blocks.settle((*own, *others))
            return False
        self._evict(way.victims, job, reason, balance)
        self._promise(job, queue, way.placement, others)
        return True

    def _reclaim(
        self,
        queue: Queue,
        entry: Entry,
        demand: Demand,
        room_milli: int,
        whole: Balance,
        claimed: frozenset[int] | set[int] = frozenset(),
    ) -> Way | None:
        """A way at the cost of projects from which the balance lets something be taken."""
        name, balance = queue.project.name, whole.of(demand)
        by_model, project = self._balance.beyond, queue.project
        room = min(room_milli, balance.missing_milli(name), by_model.milli(project, demand))
        if demand.least_milli > room:
            return None

        def allowed(node: int) -> bool:
            return self._allowed(entry, demand, node) and by_model.permits(project, demand, node)

        def unclaimed(node: int) -> bool:
            return node not in claimed and allowed(node)

        table = self._tables.unclaimed(demand) if claimed else self._tables.open(demand)
        way = self._without(entry, demand, table, unclaimed, project, room)
        there = way
        if way is None and claimed:
            table = self._tables.open(demand)
            there = self._without(entry, demand, table, allowed, project, room)
        if there is not None:
            return way  # none where there is room that is only kept from those who borrow
        victims = self._preemptible.of_others(entry[0], balance)
        if not victims:
            return None
        terms = self._preemptible.for_share(entry[0], balance, room)
        nodes = self._by_node(victims, unclaimed)
        guard = self._preemptible.guarded
        guarded = {node: some for node, each in nodes.items() if (some := guard(each))}
        return self._search.best(demand, guarded, terms)

    def _preempt(self, queue: Queue, entry: Entry, demand: Demand) -> Way | None:
        """A way at the cost of pods of the same project with a lower priority."""
        job, project = entry[0], queue.project

        def allowed(node: int) -> bool:
            return self._allowed(entry, demand, node)

        def permitted(node: int) -> bool:
            return self._balance.beyond.permits(project, demand, node)

        if not self._occupants.outranks(job):
            return None
        by_model, balance = self._balance.beyond.milli(project, demand), self._balance
        room = min(balance.growth_milli(project), by_model)
        most = min(balance.ceiling_milli(project), by_model)

        def without(room_milli: int) -> Way | None:
            table = self._tables.open(demand)
            return self._without(
                entry, demand, table, lambda n: allowed(n) and permitted(n), project, room_milli
            )

        way = without(room)
        if way is not None or without(most) is not None:
            return way  # none where there is room that is only kept from those who borrow
        victims = self._preemptible.lower(job)
        terms = self._preemptible.for_priority(most, room, self._tables.claimed)
        way = self._for_room(demand, without, victims, terms) if demand.least_milli > most else None
        if way is not None:
            return way
        by_node = self._by_node(victims, allowed)
        if self._balance.of(demand) is self._balance:  # else victims give of the model it needs
            by_node = {node: each for node, each in by_node.items() if permitted(node)}
        return self._search.best(demand, by_node, terms)

    def _without(
        self,
        entry: Entry,
        demand: Demand,
        table: Candidates,
        allowed: Callable[[int], bool],
        project: Project,
        room_milli: int,
    ) -> Way | None:
        """A way at nobody's cost."""
        may, avoid = self._balance.beyond.judge(project), entry[1].avoid
        forbidden = self._gangs.forbidden(entry[1], demand)

        def now(most_milli: int) -> tuple[int, Choice] | None:
            return table.best(avoid, None if demand.exact else most_milli, may, forbidden)

        coming = sorted(filter(allowed, self._departures.nodes))
        return self._search.without(demand, now, coming, room_milli)

    def _for_room(
        self,
        demand: Demand,
        without: Callable[[int], Way | None],
        victims: Ranked,
        terms: Terms,
    ) -> Way | None:
        """A way where devices are free and only the project's own room is missing."""
        given, gone = self._preemptible.for_room(demand, victims, terms)
        way = without(terms.room_milli(given))
        cost = sum(pick[2] for pick in way.choice.picks) if way else 0
        if way is None or not terms.fair(given, cost, (way.node,)):
            return None
        return Way(way.node, gone, way.choice)

    def _evict(
        self,
        victims: Iterable[Occupant],
        job: WaitingJob,
        reason: EvictReason,
        balance: Balance,
    ) -> None:
        """Decide that these go, each with its whole gang."""
        gone = [pod for pod in victims if not self._unstart(pod)]
        for victim in gone:
            if reason is EvictReason.RECLAIM:
                why = f"{balance.stand(job.project)}, {balance.stand(victim.project)}"
            else:
                why = f"its priority is {job.priority}, that of {victim.job} {victim.priority}"
            self.evicts += self._parties.orders(victim, job.key, reason, why)
        for victim in gone:
            for each in self._preemptible.choose(victim):
                self._departures.add(each)

    def _unstart(self, victim: Occupant) -> bool:
        """Do not start one, with its whole gang, after all; False when it runs."""
        if self._occupants.runs(victim):
            return False
        for each in self._preemptible.choose(victim):
            self._occupants.undo(each)
        return True

    def _promise(
        self, job: WaitingJob, queue: Queue, placement: Placement, others: Iterable[Block]
    ) -> None:
        """Keep the room for those for whom it was made, or start them; ``others`` keep the rest."""
        self._helped += len(placement)
        project = queue.project
        held = self._snapshot.allocated_milli(project.name)
        mine = self._blocks.mine(member[0].uid for member, _, _ in placement)
        for block in mine:
            self._blocks.drop(block)
        free = milli_of(placement) <= quota.room_above_milli(project, held)
        self._blocks.keep(job, project, placement, HoldKind.FREED, new=True)
        mine = self._blocks.mine(member[0].uid for member, _, _ in placement)
        if free and all(block.here for block in mine):
            for block in mine:
                self._blocks.drop(block)
            self._occupants.start(
                queue,
                [
                    placed(self._snapshot, self._gangs.peers, job, pod, node, choice)
                    for (pod, _), node, choice in placement
                ],
            )
        self._blocks.settle(others)

    def _by_node(self, victims: Ranked, allowed: Callable[[int], bool]) -> dict[int, Ranked]:
        found: dict[int, Ranked] = {}
        for ranked in sorted(victims, key=lambda each: each[0]):
            held = [each for each in self._parties.of(ranked[1]) if each.grants]
            for node in dict.fromkeys(self._locator.node(each.node) for each in held):
                if node is not None:
                    found.setdefault(node, []).append(ranked)
        return {node: each for node, each in found.items() if allowed(node)}

    def _allowed(self, entry: Entry, demand: Demand, node: int) -> bool:
        if demand not in self._usable:
            self._usable[demand] = frozenset(demand.usable)
        name = self._snapshot.cluster.nodes[node].name
        usable = node in self._usable[demand] and name not in entry[1].avoid
        return usable and self._gangs.may(entry[1], demand, node)

    def _may_after(self, placement: Placement, victims: Iterable[Occupant]) -> bool:
        """Whether rules about other pods still let them go there once all victims are gone."""
        gone = [each for victim in victims for each in self._parties.of(victim)]
        return self._gangs.may_after(placement, gone)
