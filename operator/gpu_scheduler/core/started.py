"""Pods that this very cycle starts, as occupants: nobody is started only to give way at once.

Who makes room finds them among the other victims, and first of all: they have done no work, so
they are not evicted but not started, and wait as before. Not so those near which, or because of
whose spread, others were put: without them those would be where they may not. Called by
``reclaim``.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from math import inf

from gpu_scheduler.core.decision import Place
from gpu_scheduler.core.departures import Locator
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.peer_masks import Peers
from gpu_scheduler.core.queues import Entry, Queue
from gpu_scheduler.core.request import PodUID, ProjectName, WaitingJob
from gpu_scheduler.core.snapshot import Snapshot

Start = tuple[Queue, Entry, Place]


class Started:
    """Occupants, with those that are started; ``places`` is the plan's list of those."""

    def __init__(
        self,
        occupants: Occupants,
        places: list[Place],
        promised: int,
        jobs: Sequence[WaitingJob],
        queues: Iterable[Queue],
        snapshot: Snapshot,
        locator: Locator,
        peers: Peers | None,
    ) -> None:
        """``promised``: so many of the first places use room that was kept, and stay."""
        self._some = slice(promised, len(places))
        self._jobs, self._queues = jobs, queues
        self.undone = False  # somebody was not started after all
        self._occupants, self._places = occupants, places
        self._snapshot, self._locator, self._peers = snapshot, locator, peers
        self._by_project: dict[ProjectName, dict[PodUID, Start]] | None = None  # once asked for
        self._known: dict[ProjectName, list[Occupant]] = {}

    def on(self, node: str) -> Iterable[Occupant]:
        """See ``Occupants``."""
        return self._occupants.on(node)

    def of(self, project: ProjectName) -> Iterable[Occupant]:
        """See ``Occupants``."""
        return [*self._occupants.of(project), *self._mine(project)]

    def outranks(self, job: WaitingJob) -> bool:
        """Whether a job's priority is above that of one of its project on a node."""
        if any(pod.priority < job.priority for pod in self._occupants.of(job.project)):
            return True
        starts = self._starts(job.project).values()
        return any(other.priority < job.priority for _, (other, _), _ in starts)

    def _starts(self, project: ProjectName) -> dict[PodUID, Start]:
        if self._by_project is None:
            self._by_project = {}
            places = {place.pod: place for place in self._places[self._some]}
            queues = {queue.project.name: queue for queue in self._queues}
            keys = {place.job for place in places.values()}
            for job in self._jobs:
                if job.key in keys:
                    mine = self._by_project.setdefault(job.project, {})
                    started = (pod for pod in job.pods if pod.uid in places)
                    mine |= {p.uid: (queues[job.project], (job, p), places[p.uid]) for p in started}
        return self._by_project.get(project, {})

    def _mine(self, project: ProjectName) -> list[Occupant]:
        if project not in self._known:
            self._known[project] = [_occupant(*start) for start in self._starts(project).values()]
        mine, peers = self._known[project], self._peers
        if peers is None or not peers.leaning:
            return mine
        leaned_on = {_whole(pod) for pod in mine if peers.leaned_on(pod.uid)}
        return [pod for pod in mine if _whole(pod) not in leaned_on]

    def started_after(self, job: WaitingJob) -> Iterable[Occupant]:
        """Those of a job's project that are started and come after it; of a gang one for all."""
        found: dict[str, Occupant] = {}
        starts = self._starts(job.project)
        for pod in self._mine(job.project):
            other = starts[pod.uid][1][0]
            if pod.grants and job_rank(job) < job_rank(other):
                found.setdefault(_whole(pod), pod)
        return found.values()

    def leaving(self) -> Iterable[Occupant]:
        """See ``Occupants``."""
        return self._occupants.leaving()

    def start(self, queue: Queue, places: Sequence[Place]) -> None:
        """Start pods of a queue in room that is free."""
        started = {place.pod for place in places}
        queue.pending = [entry for entry in queue.pending if entry[1].uid not in started]
        self._places += places

    def undo(self, pod: Occupant) -> bool:
        """Do not start a pod after all; False when it runs already."""
        start = self._starts(pod.project).pop(pod.uid, None)
        if start is None:
            return False
        queue, entry, place = start
        self.undone = True
        self._places.remove(place)
        node = self._locator.node(pod.node)
        assert node is not None  # it was just found there
        self._snapshot.release(node, pod, self._locator.picks(pod), pod.project)
        if self._peers is not None:
            self._peers.add(entry[1], node, -1)
        insort(queue.pending, entry, key=_order)
        self._known.pop(pod.project, None)
        return True

    def runs(self, pod: Occupant) -> bool:
        """Whether a pod had started before."""
        return pod.uid not in self._starts(pod.project)


def _whole(pod: Occupant) -> str:
    """What goes together with it: the members of its gang, or itself."""
    return pod.job if pod.gang else pod.uid


def _order(entry: Entry) -> tuple[object, ...]:
    job, pod = entry
    return (*job_rank(job), job.pods.index(pod))


def _occupant(queue: Queue, entry: Entry, place: Place) -> Occupant:
    job, pod = entry
    return Occupant(
        pod.uid,
        pod.name,
        job.key,
        queue.project.name,
        place.node,
        place.grants,
        pod.shape.cpu_milli,
        pod.shape.memory_bytes,
        pod.shape.ephemeral_bytes,
        job.interactive,
        job.priority,
        since=inf,
        gang=job.gang is not None,
        shape=pod.shape,
    )
