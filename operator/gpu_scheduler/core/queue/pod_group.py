"""What waits, in groups of pods that start together: all members of a gang, or one pod.

Every step of the plan deals with groups alone. Groups with the same ``GroupRequest`` fit or do not
fit alike, those of the same ``Signature`` are told apart by nothing but their age; so each
signature is tried once, however many wait. Made by ``batches``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core.model.decision import Assignment, Reason
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import (
    Gang,
    PodUID,
    Project,
    Topology,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.queue.order import job_rank

Member = tuple[WaitingPod, PodRequest]
Order = tuple[Member, ...]
RequestKey = tuple[object, ...]
Position = tuple[object, ...]  # in the queue of a project: smaller ones have their turn before


@dataclass(slots=True, eq=False)
class GroupRequest:
    """What the members of a group ask for together; one object for all groups that are alike."""

    request_key: RequestKey  # equal from cycle to cycle, as long as the nodes stay
    gang: Gang  # of one that is alike: ``missing`` and ``size`` may be others
    counts: Mapping[PodRequest, int]  # members by pod request, in the order of their roles
    least_milli: int  # what they cost at least, together
    exact: bool = field(init=False)  # whether they cost that wherever they land
    devices: int = field(init=False)  # that they want, all together

    def __post_init__(self) -> None:
        self.exact = all(pod_request.exact for pod_request in self.counts)
        self.devices = sum(
            count * sum(request.count for request in pod_request.pod_shape.devices)
            for pod_request, count in self.counts.items()
        )

    @property
    def usable(self) -> bool:
        """Whether there are nodes that take pods of each signature now."""
        return all(pod_request.usable for pod_request in self.counts)

    @property
    def topology(self) -> Topology | None:
        """The domain that binds them, unless it is only preferred."""
        topology = self.gang.topology
        return topology if topology is not None and topology.required else None


@dataclass(slots=True, eq=False)
class Signature:
    """Groups of one project that differ in nothing but their age; one object for all of them."""

    needs: GroupRequest
    priority: int
    time_limit_seconds: int | None
    never: Reason | None = None
    """Why they can never start, as far as that is so."""
    startable: bool = False
    """Whether they may start now: all members exist, and there are nodes that may take them."""
    deserving: bool = False
    """Whether room may be made or kept for them, too."""


@dataclass(slots=True, eq=False)
class PodGroup:
    """Pods of one job that start together, largest first; of equal ones the most picky first."""

    job: WaitingJob
    project: Project
    members: Order
    signature: Signature
    index: int  # of its first pod among the waiting ones of the job
    assignments: tuple[Assignment, ...] = ()
    """Where its pods start, in the order of their indexes, once that is decided."""

    @property
    def needs(self) -> GroupRequest:
        """What its members ask for together."""
        return self.signature.needs

    @property
    def never(self) -> Reason | None:
        """See ``Signature``."""
        return self.signature.never

    @property
    def startable(self) -> bool:
        """See ``Signature``."""
        return self.signature.startable

    @property
    def deserving(self) -> bool:
        """See ``Signature``."""
        return self.signature.deserving

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
        pod_requests = {pod.uid: pod_request for pod, pod_request in self.members}
        by_index = [(pod, pod_requests[pod.uid]) for pod in self.pods]
        for key in (_choice, _cpu):
            order = ordered(by_index, key)
            uids = tuple(pod.uid for pod, _ in order)
            if uids not in tried:
                tried.add(uids)
                yield order


def ordered(members: Iterable[Member], key: Callable[[Member], tuple[int, ...]]) -> Order:
    """Members by a key, but those first that want to be near others."""
    return tuple(sorted(members, key=lambda member: (_follows(member), key(member))))


def _follows(member: Member) -> bool:
    """Whether it wants to be near others: those come first."""
    affinity = member[0].affinity
    return affinity is not None and affinity.rules is not None and bool(affinity.rules.affinity)


def size(member: Member) -> tuple[int, int, int, int]:
    """Sort key: large ones first, of equal ones the most picky."""
    pod_shape = member[1].pod_shape
    return (
        -member[1].least_milli,
        len(member[1].could),
        -pod_shape.cpu_milli,
        -pod_shape.memory_bytes,
    )


def _choice(member: Member) -> tuple[int, int, int]:
    pod_request = member[1]
    return (len(pod_request.could), -pod_request.least_milli, -pod_request.pod_shape.cpu_milli)


def _cpu(member: Member) -> tuple[int, int, int]:
    pod_request = member[1]
    return (
        -pod_request.pod_shape.cpu_milli,
        -pod_request.pod_shape.memory_bytes,
        -pod_request.least_milli,
    )
