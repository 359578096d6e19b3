"""What a gang asks for in one cycle: its waiting members, in the order in which they are tried.

Largest first, of equal ones those with the fewest nodes to go to; where that fails, two more
orders are tried. Made once per gang and cycle by ``Requests``.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.request import Gang, JobKey, Topology, WaitingJob, WaitingPod

Member = tuple[WaitingPod, Demand]
Order = tuple[Member, ...]
Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class GangRequest:
    """The members to be placed at once; ``orders`` has at least one order of them."""

    job: WaitingJob
    gang: Gang
    orders: tuple[Order, ...]
    counts: Mapping[Demand, int]  # members by demand, in the order of their roles
    least_milli: int  # what they cost at least, together
    signature: Signature  # equal for gangs that fit or do not fit alike

    @property
    def members(self) -> Order:
        """All of them, largest first."""
        return self.orders[0]

    @property
    def complete(self) -> bool:
        """Whether there are enough waiting pods to start."""
        return len(self.members) >= self.gang.missing

    @property
    def exact(self) -> bool:
        """Whether they cost ``least_milli`` wherever they land."""
        return all(demand.exact for _, demand in self.members)

    @property
    def topology(self) -> Topology | None:
        """The domain that binds them, unless it is only preferred."""
        topology = self.gang.topology
        return topology if topology is not None and topology.required else None


class Requests:
    """The gangs of one cycle."""

    def __init__(self, demands: Demands) -> None:
        self._demands = demands
        self._known: dict[JobKey, GangRequest] = {}

    def of(self, job: WaitingJob, gang: Gang) -> GangRequest:
        """What a gang asks for."""
        request = self._known.get(job.key)
        if request is None:
            request = self._known[job.key] = _request(self._demands, job, job.pods, gang)
        return request

    def lone(self, job: WaitingJob, pod: WaitingPod) -> GangRequest:
        """A single pod, treated as a gang of one."""
        return _request(self._demands, job, (pod,), Gang(1, 1))


def _request(
    demands: Demands, job: WaitingJob, pods: Iterable[WaitingPod], gang: Gang
) -> GangRequest:
    members = [(pod, demands.of(pod.shape)) for pod in pods]
    counted = Counter((id(demand), pod.avoid, pod.peers) for pod, demand in members)
    signature = (
        frozenset(counted.items()),
        gang.distinct,
        gang.topology,
        gang.nodes,
        gang.devices,
    )
    orders: dict[tuple[str, ...], Order] = {}
    for key in (_size, _choice, _cpu):
        order = tuple(sorted(members, key=lambda member: (_follows(member), key(member))))
        orders.setdefault(tuple(pod.uid for pod, _ in order), order)
    least = sum(demand.least_milli for _, demand in members)
    counts = Counter(demand for _, demand in members)
    return GangRequest(job, gang, tuple(orders.values()), counts, least, signature)


def _follows(member: Member) -> bool:
    """Whether it wants to be near others: those come first."""
    peers = member[0].peers
    return peers is not None and peers.rules is not None and bool(peers.rules.affinity)


def _size(member: Member) -> tuple[int, int, int, int]:
    shape = member[1].shape
    return (-member[1].least_milli, len(member[1].could), -shape.cpu_milli, -shape.memory_bytes)


def _choice(member: Member) -> tuple[int, int, int]:
    demand = member[1]
    return (len(demand.could), -demand.least_milli, -demand.shape.cpu_milli)


def _cpu(member: Member) -> tuple[int, int, int]:
    demand = member[1]
    return (-demand.shape.cpu_milli, -demand.shape.memory_bytes, -demand.least_milli)
