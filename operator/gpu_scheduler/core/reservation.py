"""Room kept for a pod that has waited long although it is first in order and inside its quota.

The room is on the node where the pod fits soonest: time limits say when pods end at the latest,
and where they do not, the node with the least still to be freed is taken. What is free there, and
what frees, goes to nobody ranked after it, except to pods known to end before the room is
complete. Called by ``holds``, by ``rounds`` and by ``plan``.
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest

from gpu_scheduler.core import quota
from gpu_scheduler.core.blocks import Blocks
from gpu_scheduler.core.decision import HoldKind
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Placement
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.gangs.reserving import Soonest
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.pools import Allowance
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, Project, ProjectName, Shape, WaitingJob
from gpu_scheduler.core.snapshot import Picks, Snapshot

MOST_NODES = 256  # looked at to make one reservation
NEVER = float("inf")


class Reservations:
    """The reservations of one cycle."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        occupants: Occupants,
        departures: Departures,
        locator: Locator,
        blocks: Blocks,
        gangs: Gangs,
        within: Allowance,
        now: float,
    ) -> None:
        self._within, self._blocks = within, blocks
        self.joined: dict[int, list[tuple[Shape, Picks, ProjectName]]] = {}
        """Pods that this cycle put on nodes before it looked at reservations."""
        self._snapshot, self._demands, self._occupants = snapshot, demands, occupants
        self._departures, self._locator, self._now = departures, locator, now
        self._gangs = gangs
        self._ahead = Soonest(snapshot, occupants, departures, locator, gangs.placer, now)

    @property
    def wanted(self) -> list[tuple[Demand, frozenset[str]]]:
        """What those want for whom room is reserved, and the nodes they avoid."""
        return [(block.demand, block.pod.avoid) for block in self._blocks.of(HoldKind.RESERVED)]

    def keep(self, entry: Entry, node: int, project: Project) -> None:
        """Reserve room for a pod on a node, if it would fit there in the end."""
        job, pod = entry
        demand = self._demands.of(pod.shape)
        found = self._soonest(demand, node)
        if found is not None:
            self._reserve(job, project, found[0], [((pod, demand), node, found[2])])

    def keep_gang(
        self, request: GangRequest, nodes: Mapping[PodUID, int], project: Project
    ) -> None:
        """Reserve room for all members of a gang, each on its node; or for none."""
        found = self._ahead.at(request, nodes, self._within.purse(project))
        if found is not None:
            self._reserve(request.job, project, *found)

    def _reserve(
        self, job: WaitingJob, project: Project, start: float, placement: Placement
    ) -> None:
        known = None if start == NEVER else start
        self._blocks.keep(job, project, placement, HoldKind.RESERVED, known)

    def make(self, queues: Iterable[Queue], after_seconds: float) -> float | None:
        """Reserve for each project's first pod that has waited long; when to look again."""
        again = NEVER
        for queue in queues:
            entry = next((e for e in queue.pending if self._deserves(queue, e)), None)
            if entry is None or entry[1].uid in self._blocks.by_pod:
                continue
            due = _waits_since(entry) + after_seconds
            if due > self._now:
                again = min(again, due)
                continue
            if entry[0].gang is not None:
                request = self._gangs.of(entry[0])
                purse = self._within.purse(queue.project)
                found = self._ahead.anywhere(request, self._taken(), purse)
                if found is not None:
                    self._reserve(entry[0], queue.project, *found)
                continue
            node = self._best_node(queue, entry)
            if node is not None:
                self.keep(entry, node, queue.project)
        return None if again == NEVER else again

    def _deserves(self, queue: Queue, entry: Entry) -> bool:
        """Whether a waiting pod wants GPUs, could run, and is inside its project's quota."""
        if entry[0].gang is not None:
            return self._gang_deserves(queue, self._gangs.of(entry[0]))
        demand = self._demands.of(entry[1].shape)
        held = self._snapshot.allocated_milli(queue.project.name)
        held -= sum(block.charge_milli for block in self._blocks.mine([entry[1].uid]))
        room = quota.room_inside_milli(queue.project, held)
        room = min(room, self._within.milli(queue.project, demand))
        return not self._gangs.nowhere(entry[1], demand) and 0 < demand.least_milli <= room

    def _gang_deserves(self, queue: Queue, request: GangRequest) -> bool:
        held = self._snapshot.allocated_milli(queue.project.name)
        mine = self._blocks.mine(pod.uid for pod, _ in request.members)
        held -= sum(block.charge_milli for block in mine)
        room = quota.room_inside_milli(queue.project, held)
        return 0 < request.least_milli <= room and self._gangs.startable(request)

    def _best_node(self, queue: Queue, entry: Entry) -> int | None:
        demand, avoid = self._demands.of(entry[1].shape), entry[1].avoid
        nodes, free = self._snapshot.cluster.nodes, self._snapshot.node_free_milli
        taken = self._taken()
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

    def _taken(self) -> set[int]:
        """Nodes of other reservations."""
        return {block.node for block in self._blocks.of(HoldKind.RESERVED)}

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


def _waits_since(entry: Entry) -> float:
    """A gang waits since its last member is there."""
    job, pod = entry
    return pod.since if job.gang is None else max(each.since for each in job.pods)


def _end(pod: Occupant) -> tuple[float, float, str]:
    return (NEVER if pod.ends is None else pod.ends, pod.since, pod.uid)
