"""Room that earlier plans kept for pods: used as soon as they fit, kept on, or let go.

Freed devices are held for the pod for which others had to leave until it is bound, so nobody
slips in between. A hold that has become pointless (the pod is gone, its node closed, its quota
used up, the room taken by what is not ours) is dropped, and the pod competes again like all
others. Called by ``plan`` before its rounds.
"""

from collections.abc import Callable, Iterable, Sequence

from gpu_scheduler.core import quota
from gpu_scheduler.core.decision import Hold, HoldKind, Place
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, WaitingPod
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.rounds import Finder, placed
from gpu_scheduler.core.snapshot import Snapshot


class Holds:
    """The holds of one cycle; ``kept`` are those for freed devices that go on."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        departures: Departures,
        locator: Locator,
        reservations: Reservations,
        candidates: Finder,
    ) -> None:
        self.kept: list[Hold] = []
        self._snapshot, self._demands, self._locator = snapshot, demands, locator
        self._departures, self._reservations = departures, reservations
        self._candidates = candidates

    def honour(self, holds: Sequence[Hold], queues: Iterable[Queue]) -> list[Place]:
        """Start what can start now, and keep room for the rest."""
        wanted = {hold.pod for hold in holds}
        found: dict[PodUID, tuple[Queue, Entry]] = {}
        for queue in queues:
            found |= {e[1].uid: (queue, e) for e in queue.pending if e[1].uid in wanted}
        places: list[Place] = []
        for kind in (HoldKind.FREED, HoldKind.RESERVED):
            for hold in holds:
                if hold.kind is kind and hold.pod in found:
                    place = self._honour(hold, *found[hold.pod])
                    if place is not None:
                        places.append(place)
        started = {place.pod for place in places}
        for queue in {id(q): q for q, _ in found.values()}.values() if started else ():
            queue.pending = [e for e in queue.pending if e[1].uid not in started]
        return places

    def _honour(self, hold: Hold, queue: Queue, entry: Entry) -> Place | None:
        job, pod = entry
        demand, node = self._demands.of(pod.shape), self._locator.node(hold.node)
        name = queue.project.name
        room_of: Callable[..., int] = (
            quota.room_above_milli if hold.kind is HoldKind.FREED else quota.room_inside_milli
        )
        room = room_of(queue.project, self._snapshot.allocated_milli(name))
        if demand.least_milli <= room:
            now = self._now(demand, pod, node, room)
            if now is not None:
                joined = self._reservations.joined.setdefault(now[0], [])
                joined.append((pod.shape, now[1].picks, name))
                return placed(self._snapshot, job, pod, *now)
        if node is None or node not in demand.usable or hold.node in pod.avoid:
            return None
        if hold.kind is HoldKind.RESERVED:
            if demand.least_milli <= room:
                self._reservations.keep(entry, node)
            return None
        later = room_of(
            queue.project, self._snapshot.allocated_milli(name) - self._departures.milli[name]
        )
        choice = self._once_they_left(demand, node)
        if choice is not None and sum(pick[2] for pick in choice.picks) <= later:
            self._departures.owe(node, pod.shape, choice.picks, name)
            self.kept.append(hold)
        return None

    def _now(
        self, demand: Demand, pod: WaitingPod, node: int | None, room_milli: int
    ) -> tuple[int, Choice] | None:
        """A place at once: on the node that was kept, else on any other."""
        if node is not None and node in demand.usable and pod.avoid.isdisjoint(self._name(node)):
            choice = self._fits(demand, node)
            if choice is not None and sum(pick[2] for pick in choice.picks) <= room_milli:
                return node, choice
        return self._candidates(demand).best(pod.avoid, None if demand.exact else room_milli)

    def _once_they_left(self, demand: Demand, node: int) -> Choice | None:
        mark = self._snapshot.mark()
        self._departures.release(node)
        choice = self._fits(demand, node)
        self._snapshot.rollback(mark)
        return choice

    def _fits(self, demand: Demand, node: int) -> Choice | None:
        return demand.chooser.choose(node) if self._snapshot.has_room(node, demand.shape) else None

    def _name(self, node: int) -> tuple[str]:
        return (self._snapshot.cluster.nodes[node].name,)
