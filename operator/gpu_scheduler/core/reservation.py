"""Room kept for a pod that has waited long although it is first in order and inside its quota.

The room is on the node where the pod fits soonest: time limits say when pods end at the latest,
and where they do not, the node with the least still to be freed is taken. What is free there, and
what frees, goes to nobody ranked after it, except to pods known to end before the room is
complete. Called by ``holds``, by ``rounds`` and by ``plan``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest

from gpu_scheduler.core import quota
from gpu_scheduler.core.decision import Hold, HoldKind, Place
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator, Room
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Flags, Placement
from gpu_scheduler.core.gangs.request import GangRequest, Member
from gpu_scheduler.core.gangs.reserving import Soonest
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.pools import Allowance, Purse
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, Project, ProjectName, Shape, WaitingJob
from gpu_scheduler.core.snapshot import Picks, Snapshot

MOST_NODES = 256  # looked at to make one reservation
NEVER = float("inf")


@dataclass(slots=True)
class Block:
    """A reservation in force: what of it is free now is blocked."""

    hold: Hold
    job: WaitingJob
    demand: Demand
    avoid: frozenset[str]
    project: ProjectName
    node: int
    room: Room  # wanted beside GPUs
    picks: Picks  # wanted
    taken: tuple[Room, Picks] = (Room(), ())  # of that, what is blocked at present

    @property
    def charge_milli(self) -> int:
        """What the project is charged as long as the room is kept."""
        return sum(pick[2] for pick in self.picks)


class Reservations:
    """The reservations of one cycle."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        occupants: Occupants,
        departures: Departures,
        locator: Locator,
        gangs: Gangs,
        within: Allowance,
        now: float,
    ) -> None:
        self._within = within
        self.blocks: dict[PodUID, Block] = {}
        self.charged_milli: Counter[ProjectName] = Counter()
        """What projects are charged for room that none of their pods has got yet."""
        self.charged_by_model: defaultdict[ProjectName, Counter[str]] = defaultdict(Counter)
        """The same by product."""
        self.joined: dict[int, list[tuple[Shape, Picks, ProjectName]]] = {}
        """Pods that this cycle put on nodes before it looked at reservations."""
        self._snapshot, self._demands, self._occupants = snapshot, demands, occupants
        self._departures, self._locator, self._now = departures, locator, now
        self._gangs = gangs
        self._ahead = Soonest(snapshot, occupants, departures, locator, gangs.placer, now)

    @property
    def holds(self) -> list[Hold]:
        """Those in force, oldest first."""
        return [block.hold for block in self.blocks.values()]

    @property
    def wanted(self) -> list[tuple[Demand, frozenset[str]]]:
        """What those want for whom room is reserved, and the nodes they avoid."""
        return [(block.demand, block.avoid) for block in self.blocks.values()]

    def keep(self, entry: Entry, node: int) -> Hold | None:
        """Reserve room for a pod on a node; None when it would not even fit in the end."""
        job, pod = entry
        demand = self._demands.of(pod.shape)
        found = self._soonest(demand, node)
        if found is None:
            return None
        start, _, choice = found
        return self._block(job, (pod, demand), node, choice, start)

    def keep_gang(
        self, request: GangRequest, nodes: Mapping[PodUID, int], project: Project
    ) -> bool:
        """Reserve room for all members of a gang, each on its node; or for none."""
        found = self._ahead.at(request, nodes, self._within.purse(project))
        return found is not None and self._block_all(request, *found)

    def _block_all(self, request: GangRequest, start: float, placement: Placement) -> bool:
        for member, node, choice in placement:
            self._block(request.job, member, node, choice, start)
        return True

    def _block(
        self, job: WaitingJob, member: Member, node: int, choice: Choice, start: float
    ) -> Hold:
        pod, demand = member
        name = self._snapshot.cluster.nodes[node].name
        hold = Hold(pod.uid, job.key, name, HoldKind.RESERVED, None if start == NEVER else start)
        shape = pod.shape
        room = Room(shape.cpu_milli, shape.memory_bytes, shape.ephemeral_bytes)
        self.lower(Block(hold, job, demand, pod.avoid, job.project, node, room, choice.picks))
        return hold

    def make(
        self, queues: Iterable[Queue], kept: set[PodUID], after_seconds: float
    ) -> float | None:
        """Reserve for each project's first pod that has waited long; when to look again."""
        again = NEVER
        for queue in queues:
            entry = next((e for e in queue.pending if self._deserves(queue, e)), None)
            if entry is None or entry[1].uid in kept or entry[1].uid in self.blocks:
                continue
            due = _waits_since(entry) + after_seconds
            if due > self._now:
                again = min(again, due)
                continue
            if entry[0].gang is not None:
                request = self._gangs.of(entry[0])
                taken = {b.node for b in self.blocks.values()}
                purse = self._within.purse(queue.project)
                found = self._ahead.anywhere(request, taken, purse)
                if found is not None:
                    self._block_all(request, *found)
                continue
            node = self._best_node(queue, entry)
            if node is not None:
                self.keep(entry, node)
        return None if again == NEVER else again

    def lift(self, pod: PodUID) -> Block | None:
        """Give up a pod's reservation; its block, to be lowered again if need be."""
        block = self.blocks.pop(pod, None)
        if block is not None:
            self._raise(block)
        return block

    def lower(self, block: Block) -> None:
        """Put a block in force: as much of what it wants as is free."""
        c = self._snapshot.cluster
        free_milli, free_mib, node = c.free_milli, c.free_mib, block.node
        room = Room(
            max(0, min(block.room.cpu_milli, c.free_cpu_milli[node])),
            max(0, min(block.room.memory_bytes, c.free_memory_bytes[node])),
            max(0, min(block.room.ephemeral_bytes, c.free_ephemeral_bytes[node])),
        )
        free: dict[int, tuple[int, int]] = {}
        picks = []
        for container, device, milli, mib in block.picks:
            left = free.get(device, (free_milli[device], free_mib[device]))
            part = max(0, min(milli, left[0])), max(0, min(mib, left[1]))
            free[device] = (left[0] - part[0], left[1] - part[1])
            picks.append((container, device, *part))
        block.taken = room, tuple(picks)
        self._snapshot.take(node, *block.taken, block.project, block.charge_milli)
        self._charge(block, 1)
        self.blocks[block.hold.pod] = block

    def backfill(
        self, entry: Entry, demand: Demand, room_milli: int, forbidden: Flags | None = None
    ) -> tuple[int, Choice] | None:
        """A place in reserved room for a pod that may use it: it ranks before, or ends in time."""
        job, pod = entry
        for block in list(self.blocks.values()):
            name = self._snapshot.cluster.nodes[block.node].name
            if name in pod.avoid or not self._may_use(job, block):
                continue
            if block.node not in demand.usable or (forbidden is not None and forbidden[block.node]):
                continue
            self._raise(block)
            choice = None
            if self._snapshot.has_room(block.node, demand.shape):
                choice = demand.chooser.choose(block.node)
            if choice is not None and sum(pick[2] for pick in choice.picks) <= room_milli:
                return block.node, choice
            self.lower(block)
        return None

    def backfill_gang(
        self,
        request: GangRequest,
        room_milli: int,
        barred: Flags | None,
        purse: Purse | None,
    ) -> list[Place] | None:
        """The same for all members of a gang, which then start."""
        blocks = [b for b in self.blocks.values() if self._may_use(request.job, b)]
        if not blocks:
            return None
        for block in blocks:
            self._raise(block)
        placement = self._gangs.placer.place(request, room_milli, barred, purse)
        places = None if placement is None else self._gangs.start(request, placement)
        for block in blocks:
            self.lower(block)
        return places

    def settle(self, node: int) -> None:
        """Put the blocks of a node in force again after ``backfill`` found a place there."""
        for block in [b for b in self.blocks.values() if b.node == node and b.taken == _NOTHING]:
            self.lower(block)

    def _raise(self, block: Block) -> None:
        self._snapshot.release(block.node, *block.taken, block.project, block.charge_milli)
        self._charge(block, -1)
        block.taken = _NOTHING

    def _charge(self, block: Block, sign: int) -> None:
        charge = sign * block.charge_milli
        self.charged_milli[block.project] += charge
        if block.picks:  # all of one model
            model = self._snapshot.cluster.dev_model[block.picks[0][1]]
            self.charged_by_model[block.project][model] += charge

    def _may_use(self, job: WaitingJob, block: Block) -> bool:
        if job.project == block.project and job_rank(job) < job_rank(block.job):
            return True
        limit, start = job.time_limit_seconds, block.hold.start
        return limit is not None and start is not None and self._now + limit <= start

    def _deserves(self, queue: Queue, entry: Entry) -> bool:
        """Whether a waiting pod wants GPUs, could run, and is inside its project's quota."""
        if entry[0].gang is not None:
            return self._gang_deserves(queue, self._gangs.of(entry[0]))
        demand = self._demands.of(entry[1].shape)
        held = self._snapshot.allocated_milli(queue.project.name)
        if entry[1].uid in self.blocks:
            held -= self.blocks[entry[1].uid].charge_milli
        room = quota.room_inside_milli(queue.project, held)
        room = min(room, self._within.milli(queue.project, demand))
        return not self._gangs.nowhere(entry[1], demand) and 0 < demand.least_milli <= room

    def _gang_deserves(self, queue: Queue, request: GangRequest) -> bool:
        held = self._snapshot.allocated_milli(queue.project.name)
        mine = (self.blocks.get(pod.uid) for pod, _ in request.members)
        held -= sum(block.charge_milli for block in mine if block is not None)
        room = quota.room_inside_milli(queue.project, held)
        return 0 < request.least_milli <= room and self._gangs.startable(request)

    def _best_node(self, queue: Queue, entry: Entry) -> int | None:
        demand, avoid = self._demands.of(entry[1].shape), entry[1].avoid
        nodes, free = self._snapshot.cluster.nodes, self._snapshot.node_free_milli
        taken = {block.node for block in self.blocks.values()}
        open_nodes = [
            n
            for n in demand.usable
            if n not in taken
            and nodes[n].name not in avoid
            and self._within.permits(queue.project, demand, n)
            and self._gangs.may(entry[1], demand, n)
        ]
        found = []
        for node in nlargest(MOST_NODES, open_nodes, key=lambda n: (free[n], -n)):
            soonest = self._soonest(demand, node)
            if soonest is not None:
                found.append((soonest[0], soonest[1], node))
        return min(found)[2] if found else None

    def _soonest(self, demand: Demand, node: int) -> tuple[float, int, Choice] | None:
        """When a pod fits on a node, the milli-GPU that must be freed by then, and its devices."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        self._departures.release(node)
        choice = self._fits(demand, node)
        start, freed = self._now, 0
        for pod in sorted(self._stayers(node), key=_end):
            if choice is not None:
                break
            snapshot.release(node, pod, self._locator.picks(pod), pod.project)
            start, freed = max(start, _end(pod)[0]), freed + pod.milli
            choice = self._fits(demand, node)
        for shape, picks, project in self.joined.get(node, ()):
            if choice is not None:
                break
            snapshot.release(node, shape, picks, project)
            start, freed = NEVER, freed + sum(pick[2] for pick in picks)
            choice = self._fits(demand, node)
        snapshot.rollback(mark)
        return None if choice is None else (start, freed, choice)

    def _stayers(self, node: int) -> list[Occupant]:
        name = self._snapshot.cluster.nodes[node].name
        going = self._departures.pods
        return [pod for pod in self._occupants.on(name) if pod.uid not in going]

    def _fits(self, demand: Demand, node: int) -> Choice | None:
        return demand.chooser.choose(node) if self._snapshot.has_room(node, demand.shape) else None


_NOTHING: tuple[Room, Picks] = (Room(), ())


def _waits_since(entry: Entry) -> float:
    """A gang waits since its last member is there."""
    job, pod = entry
    return pod.since if job.gang is None else max(each.since for each in job.pods)


def _end(pod: Occupant) -> tuple[float, float, str]:
    return (NEVER if pod.ends is None else pod.ends, pod.since, pod.uid)
