"""Runs of groups: those of one job that follow one another and are alike.

A job with hundreds of equal pods is one run, and its groups are made one by one when they are asked
for: most have to wait, and about those nothing is asked but what they are like. Whether groups can
never start is said of each sort when the first of it is made. Called by ``queues``.
"""

from collections import Counter
from typing import Protocol

from gpu_scheduler.core.affinity.peer_sorts import PeerSorts
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.demand import Demands
from gpu_scheduler.core.model.request import Gang, Project, WaitingJob, WaitingPod
from gpu_scheduler.core.queue.order import job_rank
from gpu_scheduler.core.queue.pod_group import (
    Needs,
    PodGroup,
    Position,
    Signature,
    Sort,
    ordered,
    size,
)

_LONE = Gang(1, 1)


class Judge(Protocol):
    """Says what can never be."""

    def never(self, group: PodGroup) -> Reason | None:
        """Why a group can never start on these nodes, or in its project; None when it may."""


class Run:
    """So many groups of a job, from one of its waiting pods on."""

    __slots__ = ("_groups", "count", "index", "job", "position", "project", "sort")

    def __init__(
        self, job: WaitingJob, project: Project, sort: Sort, index: int, group: PodGroup | None
    ) -> None:
        """``index``: of the first pod; ``group``: the first one, where it is made already."""
        self.job = job
        self.project = project
        self.sort = sort
        self.count = 1
        self.index = index
        self._groups = [] if group is None else [group]
        self.position: Position = (*job_rank(job), index)
        """Of the first group."""

    def group(self, number: int) -> PodGroup:
        """One of them; those before it have been asked for."""
        if number == len(self._groups):
            index = self.index + number
            (demand,) = self.sort.needs.counts
            members = ((self.job.pods[index], demand),)
            self._groups.append(PodGroup(self.job, self.project, members, self.sort, index))
        return self._groups[number]


class Batches:
    """Makes them, with one object for all groups that have the same needs, or are of a sort."""

    def __init__(self, demands: Demands, peer_sorts: PeerSorts) -> None:
        self._demands = demands
        self._peer_sorts = peer_sorts
        self._needs: dict[Signature, Needs] = {}
        self._sorts: dict[tuple[object, ...], Sort] = {}

    def __len__(self) -> int:
        """How many sorts are remembered."""
        return len(self._sorts)

    def of(self, job: WaitingJob, project: Project, judge: Judge) -> list[Run]:
        """The runs of a job, in the order of its pods."""
        if job.gang is not None:
            return [self._of_gang(job, project, job.gang, judge)] if job.pods else []
        found: list[Run] = []
        last: WaitingPod | None = None
        for index, pod in enumerate(job.pods):
            if last is not None and _alike(pod, last):
                found[-1].count += 1
            else:
                found.append(self._of_pod(job, project, pod, index, judge))
                last = pod
        return found

    def _of_pod(
        self, job: WaitingJob, project: Project, pod: WaitingPod, index: int, judge: Judge
    ) -> Run:
        demand = self._demands.of(pod.pod_kind)
        signature = (id(demand), pod.avoid, self._peer_sorts.of(pod.peers))
        needs = self._needs.get(signature)
        if needs is None:
            needs = self._needs[signature] = Needs(
                signature, _LONE, {demand: 1}, demand.least_milli
            )
        sort, new = self._sort(job, project, needs, (pod.role,))
        if new:
            _judge(PodGroup(job, project, ((pod, demand),), sort, index), judge)
        return Run(job, project, sort, index, None)

    def _of_gang(self, job: WaitingJob, project: Project, gang: Gang, judge: Judge) -> Run:
        members = [(pod, self._demands.of(pod.pod_kind)) for pod in job.pods]
        told = self._peer_sorts.of
        counted = Counter((id(demand), pod.avoid, told(pod.peers)) for pod, demand in members)
        signature = (
            tuple(counted.items()),
            gang.distinct,
            gang.topology,
            gang.nodes,
            gang.devices,
        )
        needs = self._needs.get(signature)
        if needs is None:
            least = sum(demand.least_milli for _, demand in members)
            counts = Counter(demand for _, demand in members)
            needs = self._needs[signature] = Needs(signature, gang, counts, least)
        sort, new = self._sort(job, project, needs, tuple(pod.role for pod in job.pods))
        group = PodGroup(job, project, ordered(members, size), sort, 0)
        if new:
            _judge(group, judge)
        return Run(job, project, sort, 0, group)

    def _sort(
        self, job: WaitingJob, project: Project, needs: Needs, roles: tuple[str, ...]
    ) -> tuple[Sort, bool]:
        """The sort of a job's groups, and whether it is a new one."""
        gang = job.gang
        key = (
            needs,
            project.name,
            job.priority,
            job.time_limit_seconds,
            job.doubtful,
            job.unseen,
            roles,
            None if gang is None else (gang.missing, gang.size),
        )
        sort = self._sorts.get(key)
        if sort is not None:
            return sort, False
        sort = self._sorts[key] = Sort(needs, job.priority, job.time_limit_seconds)
        return sort, True


def _alike(pod: WaitingPod, other: WaitingPod) -> bool:
    return (
        pod.pod_kind is other.pod_kind
        and pod.peers is other.peers
        and pod.avoid == other.avoid
        and pod.role == other.role
    )


def _judge(group: PodGroup, judge: Judge) -> None:
    """Say of a new sort whether its groups may start, and can ever."""
    sort = group.sort
    sort.never = judge.never(group)
    sort.startable = sort.never is None and group.complete and sort.needs.usable
    sort.deserving = sort.startable and not group.job.doubtful
