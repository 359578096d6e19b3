"""Making room: who below its fair share, or of a higher priority, gets devices back from whom.

Pods inside quota come first, then those that would borrow what is theirs by fair share, then
higher priorities inside a project. A pod gets help only if it ends at most at its project's fair
share and every victim's project stays at or above its own, or, where a pod inside quota finds no
other way, at its quota; so no plan can undo the one before. Nobody is evicted for room that comes
anyway. Called by ``plan`` after both rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from gpu_scheduler.core import quota, wording
from gpu_scheduler.core.balance import Balance
from gpu_scheduler.core.decision import Evict, EvictReason, Hold, HoldKind
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.eviction import Ranked, Search, Terms, Way
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.making_room import GangSearch, GangWay
from gpu_scheduler.core.gangs.placing import Flags, Placement
from gpu_scheduler.core.gangs.reclaim import GangReclaim
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.order import project_rank
from gpu_scheduler.core.preemptible import Preemptible
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, Project, ProjectName, WaitingJob, WaitingPod
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.victims import Parties
from gpu_scheduler.core.wording import gpus

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
        gangs: Gangs,
        projects: Mapping[ProjectName, Project],
    ) -> None:
        self.evicts: list[Evict] = []
        self.holds: list[Hold] = []
        self._snapshot, self._demands, self._occupants = snapshot, demands, occupants
        self._departures, self._balance = departures, balance
        self._locator, self._reservations = locator, reservations
        self._gangs, self._parties = gangs, Parties(occupants)
        self._search = Search(snapshot, locator, departures, self._parties, TRIALS)
        self._preemptible = Preemptible(occupants, self._parties, balance, locator, projects)
        search = GangSearch(snapshot, locator, departures, self._parties, gangs.placer)
        self._of_gangs = GangReclaim(search, self._preemptible, balance)
        self._usable: dict[Demand, frozenset[int]] = {}
        self._vacated: set[int] = set()  # nodes where room was reserved for pods helped elsewhere

    def run(
        self,
        queues: Sequence[Queue],
        kept: set[PodUID],
        claimed: set[int],
        barred: Flags | None,
    ) -> None:
        """Decide.

        Args:
            queues: what still waits.
            kept: pods for which room was kept before.
            claimed: nodes that borrowers leave alone.
            barred: the same as flags.
        """

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
                queue, entry, demand, quota.UNBOUNDED, shares, claimed
            ),
            lambda queue, request: self._of_gangs.reclaim(
                queue.project, request, quota.UNBOUNDED, shares, barred
            ),
        )
        waiting = [queue for queue in queues if queue.pending]
        if waiting and (quotas.anyone_over() or self._departures.nodes):
            self._pass(waiting, kept, inside)
            self._pass(waiting, kept, guaranteed)
            self._pass(waiting, kept, above)
        outranked = [queue for queue in waiting if self._outranks(queue)]
        higher = Step(
            EvictReason.PRIORITY,
            self._preempt,
            lambda queue, request: self._of_gangs.preempt(queue.project, request),
        )
        self._pass(outranked, kept, higher)

    def _outranks(self, queue: Queue) -> bool:
        """Whether a waiting pod has a higher priority than one of its project on a node."""
        held = (pod.priority for pod in self._occupants.of(queue.project.name))
        lowest = min(held, default=None)
        return lowest is not None and any(job.priority > lowest for job, _ in queue.pending)

    def _pass(self, queues: list[Queue], kept: set[PodUID], step: Step) -> None:
        """Help one pod or gang after the other, the project with the smallest share first."""
        ways = [self._ways(queue, kept, step) for queue in queues]
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

    def _ways(self, queue: Queue, kept: set[PodUID], step: Step) -> Iterator[Way | GangWay]:
        stuck: set[tuple[object, ...]] = set()
        gang = ""
        for entry in queue.pending:
            job, pod = entry
            if job.gang is not None:
                if gang != job.key:
                    gang = job.key
                    found = self._help_gang(queue, job, kept, step, stuck)
                    if found is not None:
                        yield found
                continue
            demand = self._demands.of(pod.shape)
            key = (demand, job.priority, pod.avoid, id(pod.peers))
            if pod.uid in kept or not demand.least_milli or key in stuck or not demand.usable:
                continue
            block = self._reservations.lift(pod.uid)
            way = step.pod(queue, entry, demand)
            if way and not self._may_after(_seat(pod, demand, way), way.victims):
                way = None
            if way is None:
                stuck.add(key)
                if block is not None:
                    self._reservations.lower(block)
                continue
            kept.add(pod.uid)
            if block is not None:
                self._vacated.add(block.node)
            self._evict(way.victims, job, step.reason, self._balance.of(demand))
            self._promise(job, _seat(pod, demand, way))
            yield way

    def _help_gang(
        self,
        queue: Queue,
        job: WaitingJob,
        kept: set[PodUID],
        step: Step,
        stuck: set[tuple[object, ...]],
    ) -> GangWay | None:
        """A way for all members of a gang together."""
        request = self._gangs.of(job)
        uids = [pod.uid for pod in job.pods]
        key = (*request.signature, job.priority)
        if key in stuck or not request.least_milli or not kept.isdisjoint(uids):
            return None
        if not self._gangs.startable(request):
            return None
        lifted = [block for uid in uids if (block := self._reservations.lift(uid)) is not None]
        way = step.gang(queue, request)
        if way and not self._may_after(way.placement, way.victims):
            way = None
        if way is None:
            stuck.add(key)
            for block in lifted:
                self._reservations.lower(block)
            return None
        kept.update(uids)
        self._vacated.update(block.node for block in lifted)
        self._evict(way.victims, job, step.reason, self._balance)
        self._promise(job, way.placement)
        return way

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
            free = node not in claimed and self._allowed(entry, demand, node)
            return free and by_model.permits(project, demand, node)

        coming = sorted(filter(allowed, self._vacated.union(self._departures.nodes)))
        way = self._search.without(demand, coming, room)
        if way is not None:
            return way
        victims = self._preemptible.of_others(name, balance)
        if not victims:
            return None
        terms = self._preemptible.for_share(balance, room)
        nodes = self._by_node(victims, allowed)
        guard = self._preemptible.guarded
        guarded = {node: kept for node, each in nodes.items() if (kept := guard(each))}
        return self._search.best(demand, guarded, terms)

    def _preempt(self, queue: Queue, entry: Entry, demand: Demand) -> Way | None:
        """A way at the cost of pods of the same project with a lower priority."""
        job, project = entry[0], queue.project

        def allowed(node: int) -> bool:
            return self._allowed(entry, demand, node)

        def permitted(node: int) -> bool:
            return self._balance.beyond.permits(project, demand, node)

        if not any(p.priority < job.priority for p in self._occupants.of(project.name)):
            return None
        by_model = self._balance.beyond
        room = min(self._balance.growth_milli(project), by_model.milli(project, demand))
        nodes = self._vacated.union(self._departures.nodes)
        coming = sorted(n for n in nodes if allowed(n) and permitted(n))
        way = self._search.without(demand, coming, room)
        if way is not None:
            return way
        victims = self._preemptible.lower(project.name, job.priority)
        terms = self._preemptible.for_priority(room)
        by_node = self._by_node(victims, allowed)
        if self._balance.of(demand) is self._balance:  # else victims give of the model it needs
            by_node = {node: each for node, each in by_node.items() if permitted(node)}
        way = self._search.best(demand, by_node, terms)
        free = (node for node in demand.usable if allowed(node) and permitted(node))
        return way or self._for_room(demand, free, victims, terms)

    def _for_room(
        self, demand: Demand, nodes: Iterable[int], victims: Ranked, terms: Terms
    ) -> Way | None:
        """A way where devices are free and only the project's own room is missing."""
        given, gone, interactive = 0, [], 0
        milli = self._parties.milli
        for _, pod in sorted(victims, key=lambda each: each[0]):
            if terms.room_milli(given) >= demand.least_milli:
                break
            if pod.interactive:
                if interactive + milli(pod) > terms.interactive_milli(pod.project):
                    continue
                interactive += milli(pod)
            given += milli(pod)
            gone.append(pod)
        for pod in gone[::-1]:
            if terms.room_milli(given - milli(pod)) >= demand.least_milli:
                given -= milli(pod)
                gone.remove(pod)
        room = terms.room_milli(given)
        way = self._search.without(demand, nodes, room) if room >= demand.least_milli else None
        return way and Way(way.node, tuple(gone), way.choice)

    def _evict(
        self,
        victims: Iterable[Occupant],
        job: WaitingJob,
        reason: EvictReason,
        balance: Balance,
    ) -> None:
        """Decide that these go, each with its whole gang."""
        gone = list(victims)
        for victim in gone:
            if reason is EvictReason.RECLAIM:
                why = f"{balance.stand(job.project)}, {balance.stand(victim.project)}"
            else:
                why = f"its priority is {job.priority}, that of {victim.job} {victim.priority}"
            party = self._parties.of(victim)
            what = f"{victim.name} gives {gpus(victim.milli)} on {victim.node}"
            if victim.gang:
                total = gpus(self._parties.milli(victim))
                what = f"gang {victim.job} gives {total} of its {wording.pods(len(party))}"
            message = f"{what} to {job.key}: {why}"
            for each in party:
                self.evicts.append(
                    Evict(each.uid, each.job, job.key, reason, message, whole_job=each.gang)
                )
        for victim in gone:
            for each in self._preemptible.choose(victim):
                self._departures.add(each)

    def _promise(self, job: WaitingJob, placement: Placement) -> None:
        """Keep the room for those for whom it was made."""
        self._gangs.promised([(pod, node) for (pod, _), node, _ in placement])
        for (pod, _), node, choice in placement:
            self._departures.owe(node, pod.shape, choice.picks, job.project)
            name = self._snapshot.cluster.nodes[node].name
            self.holds.append(Hold(pod.uid, job.key, name, HoldKind.FREED))

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


def _seat(pod: WaitingPod, demand: Demand, way: Way) -> Placement:
    return [((pod, demand), way.node, way.choice)]
