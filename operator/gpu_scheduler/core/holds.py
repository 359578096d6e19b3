"""Room that earlier plans kept for pods: used as soon as they fit, kept on, or let go.

Freed devices are held for the pod for which others had to leave until it is bound, so nobody
slips in between, and stay the same ones as long as they are there. A hold that has become pointless
(the pod is gone, its node closed, its quota used up, the room taken by what is not ours) is
dropped, and the pod competes again like all others. Called by ``plan`` before its rounds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core import quota
from gpu_scheduler.core.blocks import Block, Blocks
from gpu_scheduler.core.decision import Hold, HoldKind, Place
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Placement, milli_of
from gpu_scheduler.core.placed import placed
from gpu_scheduler.core.pools import Allowance
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, ProjectName, WaitingPod
from gpu_scheduler.core.reservation import Reservations
from gpu_scheduler.core.rounds import Finder, Room
from gpu_scheduler.core.snapshot import Snapshot


@dataclass(slots=True)
class _Ward:
    """A pod for which room was kept, or all members of a gang."""

    queue: Queue
    kind: HoldKind
    holds: list[Hold] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def name(self) -> ProjectName:
        return self.queue.project.name


class Holds:
    """The holds of one cycle."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        departures: Departures,
        locator: Locator,
        blocks: Blocks,
        reservations: Reservations,
        candidates: Finder,
        gangs: Gangs,
        beyond: Allowance,
    ) -> None:
        self._beyond = beyond
        self._snapshot, self._demands, self._locator = snapshot, demands, locator
        self._departures, self._blocks, self._reservations = departures, blocks, reservations
        self._candidates, self._gangs = candidates, gangs
        self._usable: dict[Demand, frozenset[int]] = {}

    def honour(self, holds: Sequence[Hold], queues: Iterable[Queue]) -> list[Place]:
        """Start what can start now, and keep room for the rest."""
        wards = self._wards(holds, queues)
        freed = [ward for ward in wards if ward.kind is HoldKind.FREED]
        for ward in freed:  # what was freed for one is no room for those who are asked before it
            self._as_before(ward)
        places: list[Place] = []
        reserved = [ward for ward in wards if ward.kind is HoldKind.RESERVED]
        for i, ward in enumerate((*freed, *reserved), 1):
            later = (
                block for other in freed[i:] if other.name == ward.name for block in self._of(other)
            )
            places += self._honour(ward, sum(block.charge_milli for block in later))
        started = {place.pod for place in places}
        for queue in {id(ward.queue): ward.queue for ward in wards}.values() if started else ():
            queue.pending = [e for e in queue.pending if e[1].uid not in started]
        return places

    def _wards(self, holds: Sequence[Hold], queues: Iterable[Queue]) -> list[_Ward]:
        wanted = {hold.pod for hold in holds}
        found: dict[PodUID, tuple[Queue, Entry]] = {}
        for queue in queues:
            found |= {e[1].uid: (queue, e) for e in queue.pending if e[1].uid in wanted}
        wards: dict[tuple[HoldKind, str], _Ward] = {}
        for hold in holds:
            if hold.pod in found:
                queue, entry = found[hold.pod]
                key = hold.kind, hold.job if entry[0].gang is not None else hold.pod
                ward = wards.setdefault(key, _Ward(queue, hold.kind))
                ward.holds.append(hold)
                ward.entries.append(entry)
        return list(wards.values())

    def _as_before(self, ward: _Ward) -> None:
        """Keep the same devices, if they are there or come."""
        placement: Placement = []
        for hold, (_, pod) in zip(ward.holds, ward.entries, strict=True):
            demand, node = self._demands.of(pod.shape), self._locator.node(hold.node)
            if node is None or not self._may_be_on(demand, pod, node):
                return
            picks = self._locator.picks_of(node, hold.grants)
            if len(picks) < sum(request.count for request in pod.shape.devices):
                return
            placement.append(((pod, demand), node, Choice(picks, 0, 0)))
        self._keep(ward, placement)

    def _of(self, ward: _Ward) -> list[Block]:
        return self._blocks.mine(entry[1].uid for entry in ward.entries)

    def _charge_milli(self, ward: _Ward) -> int:
        return sum(block.charge_milli for block in self._of(ward))

    def _honour(self, ward: _Ward, later_milli: int) -> list[Place]:
        """``later_milli``: what its project is charged for those whose turn comes yet."""
        project, room_of = ward.queue.project, _room_of(ward.kind)
        for block in self._of(ward):
            self._blocks.lift(block)
        held = self._snapshot.allocated_milli(ward.name) - later_milli
        job = ward.entries[0][0]
        inside = ward.kind is HoldKind.RESERVED or held < project.quota_milli
        if not self._complete(ward):
            self._let_go(ward)
            return []
        start = self._start if job.gang is None else self._start_gang
        places = start(ward, room_of(project, held), inside)
        if places:
            self._let_go(ward)
        elif ward.kind is HoldKind.RESERVED:
            self._reserve(ward, room_of(project, held))
        else:
            self._go_on(ward, room_of(project, held - self._departures.milli[ward.name]))
        return places

    def _complete(self, ward: _Ward) -> bool:
        """Of a gang: whether room was kept for all of it, and it may start."""
        job = ward.entries[0][0]
        if job.gang is None:
            return True
        return len(ward.entries) == len(job.pods) and self._gangs.startable(self._gangs.of(job))

    def _let_go(self, ward: _Ward) -> None:
        for block in self._of(ward):
            self._blocks.drop(block)

    def _go_on(self, ward: _Ward, room_milli: int) -> None:
        """Keep the room, on the same devices if they are there, as far as the project may."""
        blocks = self._of(ward)
        if blocks:
            if self._charge_milli(ward) > room_milli:
                self._let_go(ward)
            else:
                self._blocks.settle(blocks)
            return
        placement = self._once_they_left(ward, room_milli)
        if placement is not None:
            self._keep(ward, placement)

    def _keep(self, ward: _Ward, placement: Placement) -> None:
        """Keep room, if all of it is there or comes."""
        job = ward.entries[0][0]
        self._blocks.keep(job, ward.queue.project, placement, HoldKind.FREED)
        if not all(block.whole for block in self._of(ward)):
            self._let_go(ward)

    def _once_they_left(self, ward: _Ward, room_milli: int) -> Placement | None:
        job, nodes = ward.entries[0][0], self._nodes(ward)
        snapshot = self._snapshot
        mark = snapshot.mark()
        for node in sorted(set(nodes.values())):
            self._departures.release(node)
        placement: Placement | None = None
        if job.gang is not None:
            request, purse = self._gangs.of(job), self._beyond.purse(ward.queue.project)
            placement = self._gangs.placer.place_at(request, room_milli, nodes, purse)
        else:
            ((_, pod),) = ward.entries
            demand = self._demands.of(pod.shape)
            for node in nodes.values():
                choice = self._fits(demand, pod, node)
                if choice is not None:
                    placement = [((pod, demand), node, choice)]
        snapshot.rollback(mark)
        return placement if placement and milli_of(placement) <= room_milli else None

    def _start(self, ward: _Ward, room_milli: int, inside: bool) -> list[Place]:
        """A place at once: on the node that was kept, else on any other."""
        (entry,), project = ward.entries, ward.queue.project
        job, pod = entry
        demand = self._demands.of(pod.shape)
        if demand.least_milli > room_milli:
            return []
        may, found = self._beyond.judge(project), None
        forbidden = self._gangs.forbidden(pod, demand)
        for node in self._nodes(ward).values():
            choice = self._fits(demand, pod, node)
            fits = choice is not None and sum(pick[2] for pick in choice.picks) <= room_milli
            if choice is not None and fits and (may is None or may(choice)):
                found = node, choice
        if found is None:
            most = None if demand.exact else room_milli
            found = self._candidates(demand).best(pod.avoid, most, may, forbidden)
        lifted: list[Block] = []
        if found is None:
            filled = self._blocks.backfill(
                entry, demand, lambda: room_milli, may, forbidden, inside=inside
            )
            if filled is None:
                return []
            found, lifted = filled[:2], filled[2]
        self._join(found[0], pod, found[1], ward.name)
        place = placed(self._snapshot, self._gangs.peers, job, pod, *found)
        self._blocks.settle(lifted)
        return [place]

    def _start_gang(self, ward: _Ward, room_milli: int, inside: bool) -> list[Place]:
        job, project, placer = ward.entries[0][0], ward.queue.project, self._gangs.placer
        request = self._gangs.of(job)
        purse, nodes = self._beyond.purse(project), self._nodes(ward)
        placement = placer.place_at(request, room_milli, nodes, purse)
        placement = placement or placer.place(request, room_milli, purse=purse)
        if placement is None:
            room = lambda: room_milli  # noqa: E731
            return self._blocks.backfill_gang(request, room, None, purse, inside=inside) or []
        for (pod, _), node, choice in placement:
            self._join(node, pod, choice, ward.name)
        return self._gangs.start(request, placement)

    def _reserve(self, ward: _Ward, room_milli: int) -> None:
        """Reserve anew, on the same nodes."""
        job, nodes = ward.entries[0][0], self._nodes(ward)
        if job.gang is not None:
            request = self._gangs.of(job)
            if request.least_milli <= room_milli:
                self._reservations.keep_gang(request, nodes, ward.queue.project)
            return
        (entry,) = ward.entries
        demand = self._demands.of(entry[1].shape)
        for node in nodes.values():
            if demand.least_milli <= room_milli and self._may_be_on(demand, entry[1], node):
                self._reservations.keep(entry, node, ward.queue.project)

    def _join(self, node: int, pod: WaitingPod, choice: Choice, name: ProjectName) -> None:
        joined = self._reservations.joined.setdefault(node, [])
        joined.append((pod.shape, choice.picks, name))

    def _nodes(self, ward: _Ward) -> dict[PodUID, int]:
        numbers = {hold.pod: self._locator.node(hold.node) for hold in ward.holds}
        return {pod: node for pod, node in numbers.items() if node is not None}

    def _fits(self, demand: Demand, pod: WaitingPod, node: int) -> Choice | None:
        if not self._may_be_on(demand, pod, node):
            return None
        return demand.chooser.choose(node) if self._snapshot.has_room(node, demand.shape) else None

    def _may_be_on(self, demand: Demand, pod: WaitingPod, node: int) -> bool:
        if demand not in self._usable:
            self._usable[demand] = frozenset(demand.usable)
        name = self._snapshot.cluster.nodes[node].name
        usable = node in self._usable[demand] and name not in pod.avoid
        return usable and self._gangs.may(pod, demand, node)


def _room_of(kind: HoldKind) -> Room:
    """What was freed may be borrowed; a reservation is for those inside their quota."""
    return quota.room_above_milli if kind is HoldKind.FREED else quota.room_inside_milli
