"""Moving fractional pods together, so that a pod or gang that needs several GPUs can start.

Off by default. Only for what is inside its project's quota and nothing else could start; only
training pods with parts of GPUs move, of projects inside their quota, none more than once an hour.
All of them must have another place in the same plan, in whatever order they come back, and
therefore few move at once. Called by ``plan`` last of all that makes room.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import permutations

from gpu_scheduler.core import quota, wording
from gpu_scheduler.core.blocks import Blocks
from gpu_scheduler.core.decision import Evict, EvictReason, HoldKind
from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Flags, Placement
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.gangs.reserving import fewest
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.pools import Allowance, Purse
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import Project, Shape
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.session import Session
from gpu_scheduler.core.units import DEVICE_MILLI

REST_SECONDS = 3600.0  # between two moves of the same pod
MOST_HELPED = 4  # pods or gangs per cycle
MOST_ASKED = 4  # of one project
MOST_NODES = 64  # looked at for one of them
MOST_MOVED = 4  # for one of them: they are tried in all orders

Move = tuple[Occupant, int, Choice]  # who, and where it would go


class Consolidation:
    """One cycle's moves; ``evicts`` is what it decided."""

    def __init__(
        self,
        session: Session,
        occupants: Occupants,
        departures: Departures,
        locator: Locator,
        blocks: Blocks,
        gangs: Gangs,
        within: Allowance,
        now: float,
    ) -> None:
        self.evicts: list[Evict] = []
        self.again_at: float | None = None
        """When a pod that stays only because it moved lately may move again, epoch seconds."""
        self._session, self._snapshot = session, session.snapshot
        self._occupants, self._departures, self._locator = occupants, departures, locator
        self._blocks, self._gangs, self._now = blocks, gangs, now
        self._within = within
        self._projects: dict[str, Project] = {}

    def run(self, projects: Iterable[Project], queues: Sequence[Queue]) -> None:
        """Decide."""
        self._projects = {project.name: project for project in projects}
        helped = 0
        for queue in queues:
            for request in self._deserving(queue):
                if helped == MOST_HELPED:
                    return
                if self._help(queue.project, request):
                    helped += 1

    def _deserving(self, queue: Queue) -> Iterator[GangRequest]:
        """The first few that need several GPUs and wait, in order."""
        asked, last = 0, ""
        for job, pod in queue.pending:
            if asked == MOST_ASKED:
                return
            if job.key == last or self._blocks.freed_for(pod.uid):
                continue
            request = self._request((job, pod))
            if request is not None:
                last = job.key
                asked += 1
                yield request

    def _request(self, entry: Entry) -> GangRequest | None:
        job, pod = entry
        if job.gang is None:
            several = sum(request.count for request in pod.shape.devices) > 1
            request = self._gangs.lone(job, pod)
        else:
            request = self._gangs.of(job)
            several = sum(r.count for p in job.pods for r in p.shape.devices) > 1
        return request if several and self._gangs.startable(request) else None

    def _help(self, project: Project, request: GangRequest) -> bool:
        lifted = self._blocks.mine(pod.uid for pod, _ in request.members)
        for block in lifted:
            self._blocks.lift(block)
        held = self._snapshot.allocated_milli(project.name) - self._departures.milli[project.name]
        room = quota.room_inside_milli(project, held)
        if request.least_milli <= room:
            for pods, mask in self._attempts(request):
                found = self._attempt(request, pods, mask, room, self._within.purse(project))
                if found is not None:
                    self._decide(project, request, *found)
                    return True
        self._blocks.settle(lifted)
        return False

    def _attempts(self, request: GangRequest) -> Iterator[tuple[list[Occupant], Flags | None]]:
        """Pods that might move: of one node for a single pod, of whole domains for a gang."""
        free = self._snapshot.node_free_milli
        usable = {n for demand in request.counts for n in demand.usable}
        nodes = nlargest(MOST_NODES, usable, key=lambda n: (free[n], -n))
        on = {n: pods for n in nodes if (pods := self._movable(n, request))}
        order = sorted(on, key=lambda n: (sum(pod.milli for pod in on[n]), n))
        if len(request.members) == 1:
            for n in order:
                yield on[n], None
            return
        for mask in self._gangs.placer.masks(request, None, hopeful=False):
            yield [p for n in order if mask is None or not mask[n] for p in on[n]], mask

    def _movable(self, node: int, request: GangRequest) -> list[Occupant]:
        pods = self._occupants.on(self._snapshot.cluster.nodes[node].name)
        found = [pod for pod in pods if pod.job != request.job.key and self._may_move(pod)]
        return sorted(found, key=lambda pod: (pod.milli, pod.uid))

    def _may_move(self, pod: Occupant) -> bool:
        project = self._projects.get(pod.project)
        return (
            bool(pod.grants)
            and all(grant.milli < DEVICE_MILLI for grant in pod.grants)
            and not (pod.interactive or pod.gang or pod.leaving or pod.spared)
            and (self._gangs.peers is None or not self._gangs.peers.concerns(pod.uid))
            and pod.shape is not None
            and pod.uid not in self._departures.pods
            and project is not None
            and self._snapshot.allocated_milli(pod.project) <= project.quota_milli
            and self._has_rested(pod)
        )

    def _has_rested(self, pod: Occupant) -> bool:
        until = pod.moved + REST_SECONDS
        if not pod.moved or until <= self._now:
            return True
        self.again_at = until if self.again_at is None else min(self.again_at, until)
        return False

    def _attempt(
        self,
        request: GangRequest,
        pods: list[Occupant],
        mask: Flags | None,
        room_milli: int,
        purse: Purse | None,
    ) -> tuple[Placement, list[Move]] | None:
        """Places for those who wait and for all that would move, with as few moves as needed."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        for node in sorted(self._departures.nodes):
            self._departures.release(node)

        def after(count: int) -> Placement | None:
            before = snapshot.mark()
            self._release(pods[:count])
            found = self._gangs.placer.place(request, room_milli, mask, purse)
            snapshot.rollback(before)
            return found

        count, placement = fewest(len(pods), after)
        found = None
        if placement is not None and count:
            found = self._rehome(request, pods[:count], placement, room_milli, purse)
        snapshot.rollback(mark)
        return found

    def _rehome(
        self,
        request: GangRequest,
        pods: list[Occupant],
        placement: Placement,
        room_milli: int,
        purse: Purse | None,
    ) -> tuple[Placement, list[Move]] | None:
        """Who has to go and where to; None when they are many or one has no other place."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        self._release(pods)
        self._start(request, placement)
        homeless = [pod for pod in reversed(pods) if not self._back(pod)]
        snapshot.rollback(mark)
        if not 0 < len(homeless) <= MOST_MOVED:
            return None
        # Those who wait get their places node by node once all have gone: see ``holds``.
        self._release(homeless)
        nodes = {member[0].uid: node for member, node, _ in placement}
        final = self._gangs.placer.place_at(request, room_milli, nodes, purse)
        if final is None:
            return None
        self._start(request, final)
        moves = [self._places(order) for order in permutations(homeless)]
        first = moves[0]
        return None if first is None or None in moves else (final, first)

    def _start(self, request: GangRequest, placement: Placement) -> None:
        for member, node, choice in placement:
            self._snapshot.take(node, member[0].shape, choice.picks, request.job.project)

    def _back(self, pod: Occupant) -> bool:
        """Leave a pod where it was, if its place is still free."""
        node, picks = self._node(pod), self._locator.picks(pod)
        fits = self._snapshot.has_room(node, pod) and self._snapshot.has_free(picks)
        if fits:
            self._snapshot.take(node, pod, picks, pod.project)
        return fits

    def _places(self, order: Sequence[Occupant]) -> list[Move] | None:
        """Where pods go that come back in this order."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        moves: list[Move] = []
        for pod in order:
            shape, demand = self._asked(pod)
            may = self._within.judge(self._projects[pod.project])
            table = Candidates(demand, snapshot, self._session.table)
            found = table.best(most_milli=pod.milli, may=may)
            if found is None:
                break
            snapshot.take(found[0], shape, found[1].picks, pod.project)
            moves.append((pod, *found))
        snapshot.rollback(mark)
        return moves if len(moves) == len(order) else None

    def _decide(
        self, project: Project, request: GangRequest, placement: Placement, moves: list[Move]
    ) -> None:
        job, nodes = request.job, self._snapshot.cluster.nodes
        needs = f"{wording.gpus(request.least_milli)} in {wording.pods(len(request.members))}"
        for pod, node, _ in moves:
            where = nodes[node].name if nodes[node].name != pod.node else "another GPU there"
            fits = f"{pod.name} moves from {pod.node} and fits on {where}"
            message = f"{fits}: {job.key} needs {needs}"
            self.evicts.append(Evict(pod.uid, pod.job, job.key, EvictReason.CONSOLIDATE, message))
        for pod, _, _ in moves:
            self._departures.add(pod)
        self._blocks.keep(job, project, placement, HoldKind.FREED)

    def _release(self, pods: Iterable[Occupant]) -> None:
        for pod in pods:
            picks = self._locator.picks(pod)
            self._snapshot.release(self._node(pod), pod, picks, pod.project)

    def _node(self, pod: Occupant) -> int:
        node = self._locator.node(pod.node)
        assert node is not None  # it was found on a node of the snapshot
        return node

    def _asked(self, pod: Occupant) -> tuple[Shape, Demand]:
        assert pod.shape is not None  # others do not move
        return pod.shape, self._session.demands.of(pod.shape)
