"""Each project's waiting groups of pods, in the order in which they are tried.

Kept from cycle to cycle: a job that is the same object as in the cycle before keeps its place and
its groups, as long as nodes, projects and rules stay; thousands wait, and few come or go. A group
waits as long as it has no assignments. Invariant: the queues are those that would be made anew.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import attrgetter

from gpu_scheduler.core.affinity.signatures import AffinitySignatures
from gpu_scheduler.core.model.affinity import AffinityTerm
from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.queue.batches import Batch, Batches, Judge
from gpu_scheduler.core.queue.changes import changes
from gpu_scheduler.core.queue.order import job_rank
from gpu_scheduler.core.queue.pod_group import PodGroup, Position, Signature

MOST_TERMS = 1_000  # remembered, beside those in force
MOST_SIGNATURES = 4_000  # remembered, beside two for each job
FEW = 100  # runs that are put in their places one by one
NONE: frozenset[Signature] = frozenset()
NOBODY: frozenset[JobKey] = frozenset()
_position = attrgetter("position")


@dataclass(slots=True)
class Queue:
    """What waits of one project: its jobs in order, the groups of a job in theirs."""

    project: Project
    batches: list[Batch] = field(default_factory=list)
    heads: list[Batch] = field(default_factory=list)
    """The first run of each job."""
    counts: Counter[Signature] = field(default_factory=Counter)
    """All groups by their signature, also those that are started."""
    until: Position | None = None
    """The groups from there on have their turn later."""

    def groups(
        self, passed: AbstractSet[Signature] = NONE, kept: AbstractSet[JobKey] = NOBODY
    ) -> Iterator[PodGroup]:
        """Those that wait and have their turn, in order.

        Args:
            passed: signatures to pass over; may grow meanwhile.
            kept: jobs of which none is passed over.
        """
        for batch in self.batches:
            if batch.signature in passed and batch.job.key not in kept:
                continue
            for number in range(batch.count):
                group = batch.group(number)
                if group.assignments:
                    continue
                if self.until is not None and group.position >= self.until:
                    return
                yield group
                if batch.signature in passed and batch.job.key not in kept:
                    break
            if len(passed) == len(self.counts) and not kept:
                return

    def firsts(self) -> Iterator[PodGroup]:
        """The first of each signature."""
        seen: set[Signature] = set()
        for group in self.groups(seen):
            seen.add(group.signature)
            yield group

    def place_of(self, job: WaitingJob) -> int:
        """Of a job that waits: its number in ``heads``."""
        return bisect_left(self.heads, (*job_rank(job), 0), key=_position)

    def add(self, batches: Sequence[Batch]) -> None:
        """More runs, in order."""
        for batch in batches:
            self.counts[batch.signature] += batch.count
        _put_in(self.batches, batches)
        _put_in(self.heads, [batch for batch in batches if batch.index == 0])

    def remove(self, batches: Sequence[Batch]) -> None:
        """All runs of some jobs."""
        for batch in batches:
            self.counts[batch.signature] -= batch.count
            if not self.counts[batch.signature]:
                del self.counts[batch.signature]
        _take_out(self.batches, batches)
        _take_out(self.heads, [batch for batch in batches if batch.index == 0])

    @property
    def waits(self) -> bool:
        """Whether there are any."""
        return any(True for _ in self.groups())


def _put_in(line: list[Batch], batches: Sequence[Batch]) -> None:
    if len(batches) > FEW:
        line += batches
        line.sort(key=_position)
        return
    for batch in batches:
        insort(line, batch, key=_position)


def _take_out(line: list[Batch], batches: Sequence[Batch]) -> None:
    if len(batches) > FEW:
        gone = set(map(id, batches))
        line[:] = [batch for batch in line if id(batch) not in gone]
        return
    for batch in batches:
        del line[bisect_left(line, batch.position, key=_position)]


class Queues:
    """The queues on some nodes, with some projects and rules, from cycle to cycle."""

    def __init__(
        self,
        pod_requests: PodRequests,
        projects: Mapping[ProjectName, Project],
        terms: AbstractSet[AffinityTerm] = frozenset(),
    ) -> None:
        """``terms``: anti-affinity of pods that are there or may come."""
        self._pod_requests = pod_requests
        self._projects = dict(projects)
        self._terms = terms
        self._runs = Batches(pod_requests, AffinitySignatures(terms))
        self._jobs: list[WaitingJob] = []
        self._orphans: dict[int, WaitingJob] = {}  # those without a project, by identity
        self._by_project: dict[ProjectName, Queue] = {}
        self._by_job: dict[JobKey, list[Batch]] = {}
        self._whole = True
        self.started: list[PodGroup] = []
        """Groups that were started since the queues were lined up."""

    def renewed(
        self,
        pod_requests: PodRequests,
        projects: Mapping[ProjectName, Project],
        terms: AbstractSet[AffinityTerm] = frozenset(),
    ) -> "Queues":
        """These, if what was made so far is of use with such nodes, projects and rules; or new."""
        if (
            self._whole
            and pod_requests is self._pod_requests
            and projects == self._projects
            and terms <= self._terms
        ):
            return self
        both = terms | self._terms  # those that went may come again, and tell apart too much
        return Queues(pod_requests, projects, both if len(both) <= MOST_TERMS else terms)

    def line_up(
        self, jobs: Sequence[WaitingJob], judge: Judge
    ) -> tuple[list[Queue], list[WaitingJob]]:
        """Queues by project name, and the jobs whose project does not exist."""
        self._whole = False  # what raises leaves nothing to build on
        for group in self.started:
            group.assignments = ()
        self.started.clear()
        gone, new = changes(self._jobs, jobs)
        self._leave(gone)
        self._join(sorted(new, key=job_rank), judge)
        self._jobs = list(jobs)
        self._whole = len(self._runs) <= MOST_SIGNATURES + 2 * len(jobs)
        for queue in self._by_project.values():
            queue.until = None
        return (
            [self._by_project[name] for name in sorted(self._by_project)],
            sorted(self._orphans.values(), key=job_rank),
        )

    def groups_of(self, job: JobKey) -> Iterator[PodGroup]:
        """Those of a job that wait, in order."""
        for batch in self._by_job.get(job, ()):
            for number in range(batch.count):
                group = batch.group(number)
                if not group.assignments:
                    yield group

    def _leave(self, gone: Sequence[WaitingJob]) -> None:
        """These wait no more, or are other objects now."""
        left: dict[ProjectName, list[Batch]] = {}
        for job in gone:
            if self._orphans.pop(id(job), None) is None:
                left.setdefault(job.project, []).extend(self._by_job.pop(job.key))
        for name, batches in left.items():
            if batches:
                self._by_project[name].remove(batches)
                if not self._by_project[name].batches:
                    del self._by_project[name]

    def _join(self, new: Sequence[WaitingJob], judge: Judge) -> None:
        """These wait from now on; in order, as the first of a signature speaks for all."""
        joined: dict[ProjectName, list[Batch]] = {}
        for job in new:
            project = self._projects.get(job.project)
            if project is None:
                self._orphans[id(job)] = job
                continue
            self._by_job[job.key] = self._runs.of(job, project, judge)
            joined.setdefault(project.name, []).extend(self._by_job[job.key])
        for name, batches in joined.items():
            if batches:
                self._by_project.setdefault(name, Queue(self._projects[name])).add(batches)
