"""Room that earlier plans kept for pods: used as soon as they fit, kept on, or let go.

Freed devices are held for the pod for which others had to leave until it is bound, so nobody
slips in between. A hold that has become pointless (the pod is gone, its node closed, its quota
used up, the room taken by what is not ours) is dropped, and the pod competes again like all
others. Called by ``plan`` before its rounds.
"""

from collections.abc import Iterable, Sequence

from gpu_scheduler.core import quota
from gpu_scheduler.core.decision import Hold, HoldKind, Place
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.placed import placed
from gpu_scheduler.core.pools import Allowance
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import JobKey, PodUID, Project, WaitingJob, WaitingPod
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.rounds import Finder, Room
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
        gangs: Gangs,
        beyond: Allowance,
    ) -> None:
        self.kept: list[Hold] = []
        self._beyond = beyond
        self._snapshot, self._demands, self._locator = snapshot, demands, locator
        self._departures, self._reservations = departures, reservations
        self._candidates, self._gangs = candidates, gangs

    def honour(self, holds: Sequence[Hold], queues: Iterable[Queue]) -> list[Place]:
        """Start what can start now, and keep room for the rest."""
        wanted = {hold.pod for hold in holds}
        found: dict[PodUID, tuple[Queue, Entry]] = {}
        for queue in queues:
            found |= {e[1].uid: (queue, e) for e in queue.pending if e[1].uid in wanted}
        places: list[Place] = []
        for kind in (HoldKind.FREED, HoldKind.RESERVED):
            gangs: dict[JobKey, list[Hold]] = {}
            for hold in holds:
                if hold.kind is not kind or hold.pod not in found:
                    continue
                if found[hold.pod][1][0].gang is not None:
                    gangs.setdefault(hold.job, []).append(hold)
                    continue
                place = self._honour(hold, *found[hold.pod])
                if place is not None:
                    places.append(place)
            for together in gangs.values():
                queue, (job, _) = found[together[0].pod]
                places += self._honour_gang(together, queue, job)
        started = {place.pod for place in places}
        for queue in {id(q): q for q, _ in found.values()}.values() if started else ():
            queue.pending = [e for e in queue.pending if e[1].uid not in started]
        return places

    def _honour(self, hold: Hold, queue: Queue, entry: Entry) -> Place | None:
        job, pod = entry
        demand, node = self._demands.of(pod.shape), self._locator.node(hold.node)
        name = queue.project.name
        room_of = _room_of(hold.kind)
        room = room_of(queue.project, self._snapshot.allocated_milli(name))
        if demand.least_milli <= room:
            now = self._now(demand, pod, node, room, queue.project)
            if now is not None:
                joined = self._reservations.joined.setdefault(now[0], [])
                joined.append((pod.shape, now[1].picks, name))
                return placed(self._snapshot, self._gangs.peers, job, pod, *now)
        if node is None or node not in demand.usable or hold.node in pod.avoid:
            return None
        if not self._gangs.may(pod, demand, node):
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
            self._gangs.promised([(pod, node)])
            self.kept.append(hold)
        return None

    def _honour_gang(self, holds: list[Hold], queue: Queue, job: WaitingJob) -> list[Place]:
        """The same for a gang: only all of its holds count, or none."""
        request, placer, kind = self._gangs.of(job), self._gangs.placer, holds[0].kind
        numbers = {hold.pod: self._locator.node(hold.node) for hold in holds}
        nodes = {pod: node for pod, node in numbers.items() if node is not None}
        if any(pod.uid not in nodes for pod in job.pods) or not self._gangs.startable(request):
            return []
        name, room_of = queue.project.name, _room_of(kind)
        held = self._snapshot.allocated_milli(name)
        room = room_of(queue.project, held)
        purse = self._beyond.purse(queue.project)
        placement = placer.place_at(request, room, nodes, purse) or placer.place(
            request, room, purse=purse
        )
        if placement is not None:
            for (pod, _), node, choice in placement:
                joined = self._reservations.joined.setdefault(node, [])
                joined.append((pod.shape, choice.picks, name))
            return self._gangs.start(request, placement)
        if kind is HoldKind.RESERVED:
            if request.least_milli <= room:
                self._reservations.keep_gang(request, nodes, queue.project)
            return []
        later = room_of(queue.project, held - self._departures.milli[name])
        mark = self._snapshot.mark()
        for node in sorted(set(nodes.values())):
            self._departures.release(node)
        placement = placer.place_at(request, later, nodes, purse)
        self._snapshot.rollback(mark)
        if placement is not None:
            for (pod, _), node, choice in placement:
                self._departures.owe(node, pod.shape, choice.picks, name)
            self._gangs.promised([(member[0], node) for member, node, _ in placement])
            self.kept += holds
        return []

    def _now(
        self,
        demand: Demand,
        pod: WaitingPod,
        node: int | None,
        room_milli: int,
        project: Project,
    ) -> tuple[int, Choice] | None:
        """A place at once: on the node that was kept, else on any other."""
        forbidden = self._gangs.forbidden(pod, demand)
        open_ = node is not None and (forbidden is None or not forbidden[node])
        if node is not None and open_ and self._usable(demand, pod, node):
            choice = self._fits(demand, node)
            may = self._beyond.judge(project)
            fits = choice is not None and sum(pick[2] for pick in choice.picks) <= room_milli
            if choice is not None and fits and (may is None or may(choice)):
                return node, choice
        most = None if demand.exact else room_milli
        may = self._beyond.judge(project)
        return self._candidates(demand).best(pod.avoid, most, may, forbidden)

    def _usable(self, demand: Demand, pod: WaitingPod, node: int) -> bool:
        return node in demand.usable and pod.avoid.isdisjoint(self._name(node))

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


def _room_of(kind: HoldKind) -> Room:
    """What was freed may be borrowed; a reservation is for those inside their quota."""
    return quota.room_above_milli if kind is HoldKind.FREED else quota.room_inside_milli
