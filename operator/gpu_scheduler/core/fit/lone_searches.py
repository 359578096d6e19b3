"""What searches for a lone pod on one node found, remembered as long as nothing there changes.

Whoever waits with reserved room is looked for anew in every cycle, and most nodes are as they were.
Compared is all on which such a search depends, so nobody has to say what has become void. Called by
``actions.new_reservations``; kept by ``session``.
"""

from collections.abc import Callable
from typing import NamedTuple

from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.queue.pod_group import PodGroup

MOST_KNOWN = 20_000  # searches remembered


class NodeState(NamedTuple):
    """All of a node that decides when a pod fits there.

    Attributes:
        free: milli-GPU and MiB of its devices, then what it has beside them, and pod slots.
        barred: devices that take nothing, whoever leaves them.
        coming: what will be free there and is promised to nobody.
        pods: those that stay.
    """

    free: tuple[int, ...]
    barred: tuple[int, ...]
    coming: object
    pods: tuple[RunningPod, ...]


class Soonest(NamedTuple):
    """Who must have ended so that a pod fits, and the devices that it gets then."""

    ended: tuple[RunningPod, ...]
    choice: NodeAllocation


def state_of(
    snapshot: Snapshot, node: int, coming: object, pods: tuple[RunningPod, ...]
) -> NodeState:
    """A node as it is at this moment of a cycle."""
    cluster, barred = snapshot.cluster, snapshot.barred
    first, last = cluster.first[node], cluster.first[node + 1]
    free = (
        *cluster.free_milli[first:last],
        *cluster.free_mib[first:last],
        *(map(cluster.unheld_milli, range(first, last)) if cluster.fractions else ()),
        cluster.free_cpu_milli[node],
        cluster.free_memory_bytes[node],
        cluster.free_ephemeral_bytes[node],
        cluster.free_pods[node],
        *(free_on[node] for free_on in cluster.free_scalars.values()),
    )
    off = tuple(d for d in range(first, last) if d in barred) if barred else ()
    return NodeState(free, off, coming, pods)


def alone(group: PodGroup) -> bool:
    """Whether a group is one pod, whose place on a node depends on that node alone.

    Not where it has to keep off certain nodes, nor where its devices are found by a search, which
    may take so many steps in a cycle.
    """
    pod_shape = group.members[0][1].pod_shape
    return (
        len(group.members) == 1
        and group.needs.topology is None
        and group.job.gang is None
        and not group.members[0][0].avoid
        and len(pod_shape.devices) <= 1
    )


class LoneSearches:
    """By what a pod asks for and by node; as long as the nodes stay the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[PodRequest, int], tuple[NodeState, Soonest | None]] = {}

    def find(
        self,
        pod_request: PodRequest,
        node: int,
        state: NodeState,
        search: Callable[[], Soonest | None],
    ) -> Soonest | None:
        """What was found on a node in this state, or what ``search`` finds now."""
        known = self._known.get((pod_request, node))
        if known is not None and known[0] == state:
            return known[1]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        found = search()
        self._known[pod_request, node] = state, found
        return found
