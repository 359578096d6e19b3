"""Room that is kept for pods: on which devices, and what of it is blocked at present.

A block takes what it wants from what comes (see ``departures``), and for the rest blocks what is
free. Freed room is kept on the devices for which others had to go, so that what was promised to
several pods keeps fitting; a reservation blocks what there is of it. Kept room is nobody else's,
except for those who rank before its pod: see ``may_use``. Called by all who keep or use such room.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpu_scheduler.core.decision import Grant, Hold, HoldKind, Place
from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Departures, Room
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Flags, Placement
from gpu_scheduler.core.gangs.request import GangRequest, Member
from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.queues import Entry
from gpu_scheduler.core.request import PodUID, Project, ProjectName, WaitingJob, WaitingPod
from gpu_scheduler.core.snapshot import Picks, Snapshot

_NOTHING: tuple[Room, Picks] = (Room(), ())


@dataclass(slots=True)
class Block:
    """What is kept for one pod."""

    hold: Hold
    job: WaitingJob
    demand: Demand
    pod: WaitingPod
    node: int
    room: Room  # wanted beside GPUs
    picks: Picks  # wanted
    borrowed: bool = False  # its project is above its quota with it
    new: bool = False  # others are evicted for it in this very cycle
    comes: tuple[Room, Picks] = _NOTHING  # of that, what others leave
    taken: tuple[Room, Picks] = _NOTHING  # … and what is blocked at present
    in_force: bool = False

    @property
    def charge_milli(self) -> int:
        """What the project is charged as long as the room is kept."""
        return sum(pick[2] for pick in self.picks)

    @property
    def whole(self) -> bool:
        """Whether all of it is there, or comes."""
        got, free = self.comes, self.taken
        return self.room == got[0] + free[0] and all(
            wanted[2:] == (one[2] + other[2], one[3] + other[3])
            for wanted, one, other in zip(self.picks, got[1], free[1], strict=True)
        )

    @property
    def here(self) -> bool:
        """Whether all of it is free now."""
        return self.room == self.taken[0] and self.picks == self.taken[1]


class Blocks:
    """All that is kept in one cycle, by pod."""

    def __init__(
        self, snapshot: Snapshot, departures: Departures, gangs: Gangs, now: float
    ) -> None:
        self._snapshot, self._departures = snapshot, departures
        self._gangs, self._now = gangs, now
        self.by_pod: dict[PodUID, Block] = {}
        self.charged_milli: Counter[ProjectName] = Counter()
        """What projects are charged for room that is only reserved for their pods."""
        self.charged_by_model: defaultdict[ProjectName, Counter[str]] = defaultdict(Counter)
        """The same by product."""

    def of(self, kind: HoldKind) -> list[Block]:
        """Those of a kind, oldest first."""
        return [block for block in self.by_pod.values() if block.hold.kind is kind]

    def holds(self) -> tuple[Hold, ...]:
        """All of them, freed room first."""
        return tuple(b.hold for kind in (HoldKind.FREED, HoldKind.RESERVED) for b in self.of(kind))

    def keep(
        self,
        job: WaitingJob,
        project: Project,
        placement: Placement,
        kind: HoldKind,
        start: float | None = None,
        *,
        new: bool = False,
    ) -> None:
        """Keep room for a pod, or for all members of a gang."""
        cost = sum(pick[2] for _, _, choice in placement for pick in choice.picks)
        held = self._snapshot.allocated_milli(project.name) + cost
        for member, node, choice in placement:
            block = self.block(job, member, node, choice.picks, kind, start)
            block.borrowed, block.new = held > project.quota_milli, new
            self.by_pod.pop(block.hold.pod, None)
            self.lower(block)

    def block(
        self,
        job: WaitingJob,
        member: Member,
        node: int,
        picks: Picks,
        kind: HoldKind,
        start: float | None = None,
    ) -> Block:
        """A block that is not in force yet."""
        pod, demand = member
        cluster, shape = self._snapshot.cluster, pod.shape
        grants = tuple(Grant(c, cluster.dev_id[d], milli, mib) for c, d, milli, mib in picks)
        hold = Hold(pod.uid, job.key, cluster.nodes[node].name, kind, start, grants)
        room = Room(shape.cpu_milli, shape.memory_bytes, shape.ephemeral_bytes)
        return Block(hold, job, demand, pod, node, room, picks)

    def lower(self, block: Block) -> None:
        """Put a block in force: as much of what it wants as comes, or is free."""
        c, node = self._snapshot.cluster, block.node
        block.comes = self._departures.take(node, block.room, block.picks)
        rest = block.room - block.comes[0]
        room = Room(
            max(0, min(rest.cpu_milli, c.free_cpu_milli[node])),
            max(0, min(rest.memory_bytes, c.free_memory_bytes[node])),
            max(0, min(rest.ephemeral_bytes, c.free_ephemeral_bytes[node])),
        )
        free: dict[int, tuple[int, int]] = {}
        picks = []
        for wanted, come in zip(block.picks, block.comes[1], strict=True):
            container, device, milli, mib = wanted
            left = free.get(device, (c.free_milli[device], c.free_mib[device]))
            part = max(0, min(milli - come[2], left[0])), max(0, min(mib - come[3], left[1]))
            free[device] = (left[0] - part[0], left[1] - part[1])
            picks.append((container, device, *part))
        block.taken = room, tuple(picks)
        self._snapshot.take(node, *block.taken, block.job.project, block.charge_milli)
        block.in_force = True
        self._count(block, 1)
        self.by_pod[block.hold.pod] = block

    def lift(self, block: Block) -> None:
        """Take a block out of force for a while; it keeps its place among the others."""
        project, charge = block.job.project, block.charge_milli
        self._snapshot.release(block.node, *block.taken, project, charge)
        self._departures.give_back(block.node, *block.comes)
        block.in_force = False
        self._count(block, -1)

    def settle(self, blocks: Iterable[Block]) -> None:
        """Put those in force again that are lifted; freed room that is not there any more goes."""
        blocks = sorted(blocks, key=lambda block: block.hold.kind is HoldKind.RESERVED)
        for block in blocks:
            if not block.in_force:
                self.lower(block)
        broken = {b.job.key if b.job.gang else b.hold.pod for b in blocks if self._broken(b)}
        for block in list(self.by_pod.values()) if broken else ():
            if block.hold.pod in broken or block.job.key in broken:
                self.drop(block)

    def drop(self, block: Block) -> None:
        """Keep it no longer."""
        if block.in_force:
            self.lift(block)
        del self.by_pod[block.hold.pod]

    def mine(self, pods: Iterable[PodUID]) -> list[Block]:
        """What is kept for these pods."""
        return [self.by_pod[pod] for pod in pods if pod in self.by_pod]

    def freed_for(self, pod: PodUID) -> bool:
        """Whether freed room is kept for a pod."""
        block = self.by_pod.get(pod)
        return block is not None and block.hold.kind is HoldKind.FREED

    def open_to(self, job: WaitingJob, *, inside: bool) -> list[Block]:
        """Those that pods of a job may use; ``inside``: they are inside their quota."""
        return [b for b in self.by_pod.values() if b.in_force and self.may_use(job, b, inside)]

    def reserved_open_to(self, job: WaitingJob) -> list[Block]:
        """Those of reservations alone: what comes was freed for somebody, and is waited for."""
        return [b for b in self.open_to(job, inside=False) if b.hold.kind is HoldKind.RESERVED]

    def may_use(self, job: WaitingJob, block: Block, inside: bool) -> bool:
        """Whether a pod ranks before the one for which room is kept, or ends before that starts."""
        if job.key == block.job.key or block.new:
            return False
        if job.project == block.job.project:
            if job_rank(job) < job_rank(block.job):
                return True
        elif inside and block.borrowed:
            return True
        limit, start = job.time_limit_seconds, block.hold.start
        return limit is not None and start is not None and self._now + limit <= start

    def backfill(
        self,
        entry: Entry,
        demand: Demand,
        room_milli: Callable[[], int],
        may: Callable[[Choice], bool] | None,
        forbidden: Flags | None,
        *,
        inside: bool,
    ) -> tuple[int, Choice, list[Block]] | None:
        """A place in kept room for a pod that may use it; ``settle`` the blocks once it is there.

        ``room_milli``: what it may cost, as of the moment at which it is asked; ``forbidden``:
        [nodes] where it may not go because of other pods.
        """
        job, pod = entry
        by_node: dict[int, list[Block]] = {}
        for block in self.open_to(job, inside=inside):
            by_node.setdefault(block.node, []).append(block)
        names = self._snapshot.cluster.nodes
        for node, blocks in by_node.items():
            if names[node].name in pod.avoid or node not in demand.usable:
                continue
            if forbidden is not None and forbidden[node]:
                continue
            for block in blocks:
                self.lift(block)
            choice = None
            if self._snapshot.has_room(node, demand.shape):
                choice = demand.chooser.choose(node)
            cost = sum(pick[2] for pick in choice.picks) if choice else 0
            if choice is not None and cost <= room_milli() and (may is None or may(choice)):
                return node, choice, blocks
            self.settle(blocks)
        return None

    def backfill_gang(
        self,
        request: GangRequest,
        room_milli: Callable[[], int],
        barred: Flags | None,
        purse: Purse | None,
        *,
        inside: bool,
    ) -> list[Place] | None:
        """The same for all members of a gang, which then start."""
        blocks = self.open_to(request.job, inside=inside)
        if not blocks:
            return None
        for block in blocks:
            self.lift(block)
        placement = self._gangs.placer.place(request, room_milli(), barred, purse)
        places = None if placement is None else self._gangs.start(request, placement)
        self.settle(blocks)
        return places

    def _broken(self, block: Block) -> bool:
        return block.hold.kind is HoldKind.FREED and not block.whole

    def _count(self, block: Block, sign: int) -> None:
        """Others keep away from where room was freed for a pod; of a reservation: its charge."""
        if block.hold.kind is HoldKind.FREED:
            if self._gangs.peers is not None:
                self._gangs.peers.add(block.pod, block.node, sign, held=True)
            return
        charge, project = sign * block.charge_milli, block.job.project
        self.charged_milli[project] += charge
        if block.picks:  # all of one model
            model = self._snapshot.cluster.dev_model[block.picks[0][1]]
            self.charged_by_model[project][model] += charge
