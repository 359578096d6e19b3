"""The fewest pods to evict, on any nodes, so that a whole gang really fits.

Tried on the snapshot and rolled back: victims go in their order until the gang fits, found by
halving; then all are spared whose place the gang did not take, and of the rest, within a budget,
every one without whom the gang fits as well. Called by ``reclaim``.
"""

from collections import Counter
from dataclasses import dataclass

from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.eviction import Ranked, Terms
from gpu_scheduler.core.gangs.placing import Flags, Placement, Placer, milli_of
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.gangs.reserving import fewest
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.request import ProjectName
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.victims import Parties

TRIALS = 128  # whole gangs placed for trial in one cycle
MOST_SPARED = 16  # trials of one gang without single victims
MOST_VICTIMS = 512

Cost = tuple[int, int]  # place in the order of the last to go, and how many go


@dataclass(frozen=True, slots=True)
class GangWay:
    """How a gang gets its places: who goes (of a gang one for all), and where its members go."""

    victims: tuple[Occupant, ...]
    placement: Placement


class GangSearch:
    """Looks for ways on one snapshot; ``trials`` is what is left of the cycle's budget."""

    def __init__(
        self,
        snapshot: Snapshot,
        locator: Locator,
        departures: Departures,
        parties: Parties,
        placer: Placer,
    ) -> None:
        self.trials = TRIALS
        self._snapshot, self._locator, self._departures = snapshot, locator, departures
        self._parties, self._placer = parties, placer

    def without(
        self, request: GangRequest, room_milli: int, barred: Flags | None, purse: Purse | None
    ) -> GangWay | None:
        """A way at nobody's cost, once those are gone that leave anyway."""
        mark = self._snapshot.mark()
        self._await()
        found = self._try(request, room_milli, barred, purse)
        self._snapshot.rollback(mark)
        return None if found is None else GangWay((), found)

    def best(
        self,
        request: GangRequest,
        ranked: Ranked,
        terms: Terms,
        barred: Flags | None,
        *,
        anywhere: bool = False,
    ) -> GangWay | None:
        """The way whose last victim comes first in the order, with as few as are needed.

        ``anywhere``: also pods on nodes that the gang cannot use, for the room in their project.
        """
        if not ranked or self.trials <= 0:
            return None
        found: list[tuple[Cost, int, GangWay]] = []
        order = {pod.uid: i for i, (_, pod) in enumerate(sorted(ranked, key=lambda e: e[0]))}
        orders = self._orders(ranked)
        for mask in self._placer.masks(request, barred, hopeful=False):
            for pods in orders:
                if self.trials <= 0:
                    break
                self.trials -= 1
                may = self._eligible(request, pods, terms, mask, anywhere)
                way = self._fewest(request, may, terms, mask)
                if way is not None and self._fair(way, terms):
                    last = max((order[pod.uid] for pod in way.victims), default=-1)
                    count = sum(len(self._parties.of(pod)) for pod in way.victims)
                    found.append(((last, count), len(found), way))
        return min(found, key=lambda each: each[:2])[2] if found else None

    def _fair(self, way: GangWay, terms: Terms) -> bool:
        given = sum(self._parties.milli(pod) for pod in way.victims)
        return terms.fair(given, milli_of(way.placement), (node for _, node, _ in way.placement))

    def _orders(self, ranked: Ranked) -> list[list[Occupant]]:
        """The victims one by one, and node by node: a gang may need whole nodes."""
        pods = [pod for _, pod in sorted(ranked, key=lambda each: each[0])]
        on: dict[str, list[Occupant]] = {}
        for pod in pods:
            for each in self._parties.of(pod):
                on.setdefault(each.node, []).append(pod)
        by_node = {pod.uid: pod for each in on.values() for pod in each}
        return [pods, list(by_node.values())]

    def _fewest(
        self, request: GangRequest, may: list[Occupant], terms: Terms, barred: Flags | None
    ) -> GangWay | None:
        given = sum(self._parties.milli(pod) for pod in may)
        if not may or request.least_milli > terms.room_milli(given):
            return None
        snapshot = self._snapshot
        mark = snapshot.mark()
        self._await()

        def after(count: int) -> Placement | None:
            before = snapshot.mark()
            given = self._release(may[:count])
            found = self._try(request, terms.room_milli(given), barred, terms.purse)
            snapshot.rollback(before)
            return found

        count, placement = fewest(len(may), after)
        way = None
        if placement is not None:
            gone = self._untouched(request, may[:count], placement, terms)
            way = self._needed(request, gone, placement, terms, barred)
        snapshot.rollback(mark)
        return way

    def _eligible(
        self,
        request: GangRequest,
        pods: list[Occupant],
        terms: Terms,
        barred: Flags | None,
        anywhere: bool,
    ) -> list[Occupant]:
        """Those who may go together, in order."""
        useful = {n for demand in request.counts for n in demand.usable}
        if barred is not None:
            useful = {n for n in useful if not barred[n]}
        found: list[Occupant] = []
        given: Counter[tuple[ProjectName, bool]] = Counter()
        spare: dict[tuple[ProjectName, bool], int] = {}
        for pod in pods:
            if len(found) == MOST_VICTIMS:
                break
            party = self._parties.of(pod)
            if not anywhere and all(self._locator.node(p.node) not in useful for p in party):
                continue
            milli = self._parties.milli(pod)
            kinds = [(pod.project, False), *([(pod.project, True)] if pod.interactive else [])]
            for kind in kinds:
                if kind not in spare:
                    ask = terms.interactive_milli if kind[1] else terms.spare_milli
                    spare[kind] = ask(pod.project)
            if all(given[kind] + milli <= spare[kind] for kind in kinds):
                found.append(pod)
                given.update(dict.fromkeys(kinds, milli))
        return found

    def _untouched(
        self, request: GangRequest, gone: list[Occupant], placement: Placement, terms: Terms
    ) -> list[Occupant]:
        """Of those who went, the ones in whose places the gang is."""
        snapshot, project = self._snapshot, request.job.project
        mark = snapshot.mark()
        given, cost = self._release(gone), milli_of(placement)
        for member, node, choice in placement:
            snapshot.take(node, member[0].shape, choice.picks, project)
        stay: set[str] = set()
        for pod in reversed(gone):
            milli = self._parties.milli(pod)
            if terms.room_milli(given - milli) >= cost and self._fits_back(pod):
                self._put_back(pod)
                stay.add(pod.uid)
                given -= milli
        snapshot.rollback(mark)
        return [pod for pod in gone if pod.uid not in stay]

    def _needed(
        self,
        request: GangRequest,
        gone: list[Occupant],
        placement: Placement,
        terms: Terms,
        barred: Flags | None,
    ) -> GangWay:
        """Each of them stays if the gang finds other places then."""
        given = self._release(gone)
        for pod in gone[::-1][:MOST_SPARED]:
            milli = self._parties.milli(pod)
            self._put_back(pod)
            other = self._try(request, terms.room_milli(given - milli), barred, terms.purse)
            if other is None:
                self._release([pod])
            else:
                placement, given = other, given - milli
                gone = [each for each in gone if each is not pod]
        return GangWay(tuple(gone), placement)

    def _try(
        self, request: GangRequest, room_milli: int, barred: Flags | None, purse: Purse | None
    ) -> Placement | None:
        if self.trials <= 0:
            return None
        self.trials -= 1
        return self._placer.place(request, room_milli, barred, purse)

    def _await(self) -> None:
        for node in sorted(self._departures.nodes):
            self._departures.release(node)

    def _release(self, pods: list[Occupant]) -> int:
        """Take pods off their nodes; the milli-GPU that this frees."""
        for pod in pods:
            for each, node in self._seats(pod):
                self._snapshot.release(node, each, self._locator.picks(each), each.project)
        return sum(self._parties.milli(pod) for pod in pods)

    def _put_back(self, pod: Occupant) -> None:
        for each, node in self._seats(pod):
            self._snapshot.take(node, each, self._locator.picks(each), each.project)

    def _fits_back(self, pod: Occupant) -> bool:
        """Whether a pod, with all that go with it, could have stayed."""
        snapshot = self._snapshot
        mark, fits = snapshot.mark(), True
        for each, node in self._seats(pod):
            picks = self._locator.picks(each)
            fits = snapshot.has_room(node, each) and snapshot.has_free(picks)
            if not fits:
                break
            snapshot.take(node, each, picks, each.project)
        snapshot.rollback(mark)
        return fits

    def _seats(self, pod: Occupant) -> list[tuple[Occupant, int]]:
        party = ((each, self._locator.node(each.node)) for each in self._parties.of(pod))
        return [(each, node) for each, node in party if node is not None]
