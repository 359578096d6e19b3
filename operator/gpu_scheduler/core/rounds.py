"""A round over all waiting pods under one rule: inside quota first, then borrowing.

The project with the smallest share goes next, one pod or one whole gang at a time. Within a round
room only shrinks, so a shape that found none is not tried again. Invariant: no placement takes a
project past the room that the rule gives it. Called twice per cycle by ``plan``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.blocks import Block, Blocks
from gpu_scheduler.core.decision import Place
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Barred, Gangs
from gpu_scheduler.core.gangs.request import GangRequest, Signature
from gpu_scheduler.core.order import project_rank
from gpu_scheduler.core.placed import placed
from gpu_scheduler.core.pools import Allowance
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import (
    JobKey,
    Project,
    ProjectName,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.session import Session
from gpu_scheduler.core.snapshot import Snapshot

Room = Callable[[Project, int], int]  # (project, allocated milli) -> milli it may still take
Finder = Callable[[Demand], Candidates]
Flags = npt.NDArray[np.bool_]
Blocked = tuple[Demand, frozenset[str]]  # what found no place, and the nodes it avoided


class Tables:
    """The candidate tables of a cycle, over all usable nodes that are not claimed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._snapshot = session.snapshot
        self._claimed: set[int] = set()
        self._barred: Flags | None = None  # the claimed ones, as flags
        self._open: dict[Demand, Candidates] = {}
        self._unclaimed: dict[Demand, Candidates] = {}

    def claim(self, blocked: Sequence[Blocked], others: Iterable[int] = ()) -> None:
        """Keep for these every node that they could ever use, and ``others``."""
        nodes = self._snapshot.cluster.nodes
        self._claimed.update(others)
        for demand, avoid in blocked:
            if avoid:
                self._claimed.update(n for n in demand.could if nodes[n].name not in avoid)
            else:
                self._claimed.update(demand.could)

    @property
    def claimed(self) -> set[int]:
        """Nodes that borrowers leave alone."""
        return self._claimed

    def barred(self) -> Flags | None:
        """The claimed nodes as flags; only once all claims are made."""
        if self._barred is None and self._claimed:
            self._barred = np.zeros(len(self._snapshot.kind), dtype=np.bool_)
            self._barred[list(self._claimed)] = True
        return self._barred

    def open(self, demand: Demand) -> Candidates:
        """Candidates for pods inside quota."""
        table = self._open.get(demand)
        if table is None:
            table = self._open[demand] = Candidates(demand, self._snapshot, self._session.table)
        return table

    def would_hold(self, demand: Demand, avoid: frozenset[str]) -> Flags:
        """[nodes] Whether a pod finds the room on them now, whatever it costs."""
        found: Flags = self._session.table.open(demand)
        for name in avoid:
            node = self._snapshot.number_of(name)
            if node is not None:
                found[node] = False
        return found

    def unclaimed(self, demand: Demand) -> Candidates:
        """Candidates for pods that borrow."""
        table = self.open(demand)
        if not self._claimed or table.best() is None:
            return table
        found = self._unclaimed.get(demand)
        if found is None:
            found = Candidates(demand, self._snapshot, self._session.table, self.barred())
            self._unclaimed[demand] = found
        return found


class Round:
    """One round; ``blocked`` is what has room in its project and found no devices."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        shares_milli: Mapping[ProjectName, int],
        blocks: Blocks,
        room_milli: Room,
        candidates: Finder,
        gangs: Gangs,
        barred: Barred,
        by_model: Allowance,
        *,
        inside: bool,
    ) -> None:
        """``room_milli``: the rule; ``inside``: it is that of pods inside their quota.

        Pods for which room is kept are passed over: they had their turn before.
        """
        self._gangs, self._barred, self._by_model = gangs, barred, by_model
        self._blocked_gangs: list[tuple[GangRequest, Project]] = []
        self._stuck: dict[Blocked, dict[ProjectName, Project]] = {}  # whose pods they are
        self._stuck_by_peers: dict[tuple[Demand, int], tuple[WaitingPod, list[Project]]] = {}
        self._peers = gangs.peers
        self._snapshot = snapshot
        self._demands = demands
        self._blocks, self._inside = blocks, inside
        self._room_milli = room_milli
        self._shares_milli = shares_milli
        self._candidates = candidates

    def run(self, queues: Sequence[Queue]) -> list[Place]:
        """Start what can start; ``pending`` of each queue keeps the rest."""
        places: list[Place] = []
        rests: list[list[Entry]] = [[] for _ in queues]
        starts = [self._starts(q, rest) for q, rest in zip(queues, rests, strict=True)]
        turns = [(self._rank(queue), i) for i, queue in enumerate(queues)]
        heapify(turns)
        while turns:
            turn = turns[0][1]
            started = next(starts[turn], None)
            if started is None:
                heappop(turns)
            else:
                places += started
                heapreplace(turns, (self._rank(queues[turn]), turn))
        for queue, rest in zip(queues, rests, strict=True):
            queue.pending = rest
        return places

    def blocked(self) -> list[Blocked]:
        """What would still fit its project: pods after it may have used that room up."""
        return [
            each
            for each, projects in self._stuck.items()
            if any(each[0].least_milli <= self._room(p, each[0]) for p in projects.values())
        ]

    def blocked_nodes(self) -> list[int]:
        """The nodes of gangs, and of pods with rules about others, that still fit their project."""
        alike = {
            request.signature: request
            for request, project in self._blocked_gangs
            if request.least_milli <= self._room(project)
        }
        nodes: set[int] = set()
        for request in alike.values():
            nodes.update(self._gangs.placer.nodes_of(request))
        nodes.update(self._blocked_by_rules())
        return sorted(nodes)

    def _blocked_by_rules(self) -> list[int]:
        """The nodes to which rules about others let pods go that found no place."""
        found = np.zeros(len(self._snapshot.kind), dtype=np.bool_)
        could: dict[Demand, npt.NDArray[np.int64]] = {}
        for (demand, _), (pod, projects) in self._stuck_by_peers.items():
            if not any(demand.least_milli <= self._room(p, demand) for p in projects):
                continue
            if demand not in could:
                could[demand] = np.array(demand.could, dtype=np.int64)
            forbidden, there = self._gangs.forbidden(pod, demand), could[demand]
            found[there if forbidden is None else there[~forbidden[there]]] = True
        return np.flatnonzero(found).tolist()

    def _room(self, project: Project, demand: Demand | None = None) -> int:
        room = self._room_milli(project, self._snapshot.allocated_milli(project.name))
        if demand is None or not project.quota_by_model:
            return room
        return min(room, self._by_model.milli(project, demand))

    def _rank(self, queue: Queue) -> tuple[float, int, str]:
        name = queue.project.name
        return project_rank(name, self._snapshot.allocated_milli(name), self._shares_milli[name])

    def _starts(self, queue: Queue, rest: list[Entry]) -> Iterator[list[Place]]:
        """The placements of one project, pod by pod or gang by gang, made when asked for."""
        project, kept = queue.project, self._blocks.by_pod
        stuck: set[Demand | tuple[Demand, int]] = set()
        kept_out: set[tuple[JobKey, Demand, int, frozenset[str]]] = set()  # of others' room
        stuck_gangs: set[Signature] = set()
        gang, started = "", False
        for entry in queue.pending:
            job, pod = entry
            if job.gang is not None:
                if gang != job.key:
                    places = self._start_gang(job, project, stuck_gangs)
                    gang, started = job.key, bool(places)
                    if places:
                        yield places
                if not started:
                    rest.append(entry)
                continue
            if kept and pod.uid in kept:
                rest.append(entry)
                continue
            demand = self._demands.of(pod.shape)
            forbidden = None if self._peers is None else self._peers.forbidden(pod, demand)
            sort = demand if forbidden is None else (demand, id(pod.peers))
            found = None if sort in stuck else self._find(demand, pod, project, forbidden)
            lifted: Sequence[Block] = ()
            if found is None and kept:
                alike = job.key, demand, id(pod.peers), pod.avoid
                if alike not in kept_out:
                    found, lifted = self._backfill(entry, demand, project, forbidden)
                if found is None:
                    kept_out.add(alike)
            if found is None:
                rest.append(entry)
                if not pod.avoid:
                    stuck.add(sort)
                continue
            place = placed(self._snapshot, self._peers, job, pod, *found)
            if lifted:
                self._blocks.settle(lifted)
            yield [place]

    def _start_gang(
        self, job: WaitingJob, project: Project, stuck: set[Signature]
    ) -> list[Place] | None:
        """Start all members, or none."""
        request, room = self._gangs.of(job), self._room(project)
        if any(pod.uid in self._blocks.by_pod for pod in job.pods) or not self._gangs.startable(
            request
        ):
            return None
        purse, place = self._by_model.purse(project), self._gangs.placer.place
        placement = None
        if request.signature not in stuck:
            placement = place(request, room, self._barred(), purse)
        if placement is not None:
            return self._gangs.start(request, placement)
        places = self._blocks.backfill_gang(
            request, lambda: self._room(project), self._barred(), purse, inside=self._inside
        )
        if places is None and request.least_milli <= room:
            stuck.add(request.signature)
            # Where devices are free for it, only its quota of a model is in the way.
            if request.least_milli and (purse is None or not place(request, room, self._barred())):
                self._blocked_gangs.append((request, project))
        return places

    def _find(
        self, demand: Demand, pod: WaitingPod, project: Project, forbidden: Flags | None
    ) -> tuple[int, Choice] | None:
        room = self._room(project, demand)
        if demand.least_milli > room:
            return None
        table = self._candidates(demand)
        may = self._by_model.judge(project) if project.quota_by_model else None
        found = table.best(pod.avoid, None if demand.exact else room, may, forbidden)
        sure = demand.exact and may is None
        if found is None and (sure or table.best(pod.avoid, forbidden=forbidden) is None):
            if forbidden is None:
                self._stuck.setdefault((demand, pod.avoid), {})[project.name] = project
            elif demand.least_milli:
                key = demand, id(pod.peers)
                self._stuck_by_peers.setdefault(key, (pod, []))[1].append(project)
        return found

    def _backfill(
        self, entry: Entry, demand: Demand, project: Project, forbidden: Flags | None
    ) -> tuple[tuple[int, Choice] | None, list[Block]]:
        """A place in room that is kept for others, and the blocks to be settled then."""
        may = self._by_model.judge(project)
        found = self._blocks.backfill(
            entry,
            demand,
            lambda: self._room(project, demand),
            may,
            forbidden,
            inside=self._inside,
        )
        if found is None:
            return None, []
        self._stuck.pop((demand, entry[1].avoid), None)
        self._stuck_by_peers.pop((demand, id(entry[1].peers)), None)
        return found[:2], found[2]
