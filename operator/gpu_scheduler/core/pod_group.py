"""What waits, in groups of pods that start together: all members of a gang, or one pod.

Made once per cycle for each gang and each lone pod; every step of the plan deals with groups alone.
Groups with the same ``Needs`` fit or do not fit alike, so each sort is tried once. Whether a group
can never start is said when it is made and carried with it. Called by ``queues``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpu_scheduler.core.model.decision import Assignment, Reason
from gpu_scheduler.core.model.demand import Demand, Demands
from gpu_scheduler.core.model.request import (
    Gang,
    PodUID,
    Project,
    ProjectName,
    Topology,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.order import job_rank

Member = tuple[WaitingPod, Demand]
Order = tuple[Member, ...]
Signature = tuple[object, ...]
Position = tuple[object, ...]  # in the queue of a project: smaller ones have their turn before
_LONE = Gang(1, 1)


@dataclass(slots=True, eq=False)
class Needs:
    """What the members of a group ask for together; one object for all groups that are alike."""

    signature: Signature  # equal from cycle to cycle, as long as the nodes stay
    gang: Gang  # of one that is alike: ``missing`` and ``size`` may be others
    counts: Mapping[Demand, int]  # members by demand, in the order of their roles
    least_milli: int  # what they cost at least, together
    exact: bool = field(init=False)  # whether they cost that wherever they land

    def __post_init__(self) -> None:
        self.exact = all(demand.exact for demand in self.counts)

    @property
    def usable(self) -> bool:
        """Whether there are nodes that take pods of each sort now."""
        return all(demand.usable for demand in self.counts)

    @property
    def topology(self) -> Topology | None:
        """The domain that binds them, unless it is only preferred."""
        topology = self.gang.topology
        return topology if topology is not None and topology.required else None


@dataclass(slots=True, eq=False)
class PodGroup:
    """Pods of one job that start together, largest first; of equal ones the most picky first."""

    job: WaitingJob
    project: Project
    members: Order
    needs: Needs
    index: int  # of its first pod among the waiting ones of the job
    never: Reason | None = None
    """Why it can never start, as far as that is so."""
    startable: bool = False
    """Whether it may start now: all members exist, and there are nodes that may take them."""
    assignments: tuple[Assignment, ...] = ()
    """Where its pods start, in the order of their indexes, once that is decided."""

    @property
    def pods(self) -> Sequence[WaitingPod]:
        """Its pods, in the order of their indexes."""
        return [self.members[0][0]] if self.job.gang is None else self.job.pods

    @property
    def uids(self) -> list[PodUID]:
        """Those of its pods, in the order of their indexes."""
        return [pod.uid for pod in self.pods]

    @property
    def first_uid(self) -> PodUID:
        """That of its first pod, under which it is known."""
        return (self.members[0][0] if self.job.gang is None else self.job.pods[0]).uid

    @property
    def complete(self) -> bool:
        """Whether there are enough waiting pods to start."""
        return self.job.gang is None or len(self.members) >= self.job.gang.missing

    @property
    def position(self) -> Position:
        """Its place in the queue of its project."""
        return (*job_rank(self.job), self.index)

    @property
    def since(self) -> float:
        """When it began to wait: a gang waits since its last member is there; epoch seconds."""
        return max(pod.since for pod in self.pods)

    def orders(self) -> Iterator[Order]:
        """The orders in which its members are tried: as they are, then two more if they differ."""
        yield self.members
        if len(self.members) == 1:
            return
        tried = {tuple(pod.uid for pod, _ in self.members)}
        demands = {pod.uid: demand for pod, demand in self.members}
        by_index = [(pod, demands[pod.uid]) for pod in self.pods]
        for key in (_choice, _cpu):
            order = _ordered(by_index, key)
            uids = tuple(pod.uid for pod, _ in order)
            if uids not in tried:
                tried.add(uids)
                yield order


class Judge(Protocol):
    """Says what can never be."""

    def never(self, group: PodGroup) -> Reason | None:
        """Why a group can never start on these nodes, or in its project; None when it may."""


class PodGroups:
    """Makes the groups of one cycle."""

    def __init__(self, demands: Demands, judge: Judge) -> None:
        self._demands, self._judge = demands, judge
        self._needs: dict[Signature, Needs] = {}
        self._never: dict[tuple[Needs, ProjectName], Reason | None] = {}

    def of(self, job: WaitingJob, project: Project) -> list[PodGroup]:
        """The groups of a job, in the order of its pods."""
        if job.gang is not None:
            return [self._gang(job, project, job.gang)] if job.pods else []
        found: list[PodGroup] = []
        pod_kind = avoid = peers = None
        for index, pod in enumerate(job.pods):
            if pod.pod_kind is not pod_kind or pod.avoid != avoid or pod.peers is not peers:
                pod_kind, avoid, peers = pod.pod_kind, pod.avoid, pod.peers
                demand = self._demands.of(pod_kind)
                needs = self._lone(pod, demand)
                group = self._judged(PodGroup(job, project, ((pod, demand),), needs, index))
                never, startable = group.never, group.startable
                found.append(group)
            else:
                one = ((pod, demand),)
                found.append(PodGroup(job, project, one, needs, index, never, startable))
        return found

    def _lone(self, pod: WaitingPod, demand: Demand) -> Needs:
        signature = (id(demand), pod.avoid, id(pod.peers))
        needs = self._needs.get(signature)
        if needs is None:
            needs = self._needs[signature] = Needs(
                signature, _LONE, {demand: 1}, demand.least_milli
            )
        return needs

    def _gang(self, job: WaitingJob, project: Project, gang: Gang) -> PodGroup:
        members = [(pod, self._demands.of(pod.pod_kind)) for pod in job.pods]
        counted = Counter((id(demand), pod.avoid, pod.peers) for pod, demand in members)
        signature = (
            frozenset(counted.items()),
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
        return self._judged(PodGroup(job, project, _ordered(members, _size), needs, 0))

    def _judged(self, group: PodGroup) -> PodGroup:
        key = group.needs, group.project.name
        if key not in self._never:
            self._never[key] = self._judge.never(group)
        group.never = self._never[key]
        group.startable = group.never is None and group.complete and group.needs.usable
        return group


def _ordered(members: Iterable[Member], key: Callable[[Member], tuple[int, ...]]) -> Order:
    return tuple(sorted(members, key=lambda member: (_follows(member), key(member))))


def _follows(member: Member) -> bool:
    """Whether it wants to be near others: those come first."""
    peers = member[0].peers
    return peers is not None and peers.rules is not None and bool(peers.rules.affinity)


def _size(member: Member) -> tuple[int, int, int, int]:
    pod_kind = member[1].pod_kind
    return (
        -member[1].least_milli,
        len(member[1].could),
        -pod_kind.cpu_milli,
        -pod_kind.memory_bytes,
    )


def _choice(member: Member) -> tuple[int, int, int]:
    demand = member[1]
    return (len(demand.could), -demand.least_milli, -demand.pod_kind.cpu_milli)


def _cpu(member: Member) -> tuple[int, int, int]:
    demand = member[1]
    return (-demand.pod_kind.cpu_milli, -demand.pod_kind.memory_bytes, -demand.least_milli)
