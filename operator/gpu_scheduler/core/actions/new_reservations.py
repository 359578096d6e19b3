"""Room kept for a group that has waited long although it is first in order and inside its quota.

The room is where the group fits soonest: time limits say when pods end at the latest, and where
they do not, the node with the least still to be freed is taken. What is free there, and what frees,
goes to nobody ranked after it, except to pods known to end before the room is complete.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import numpy as np

from gpu_scheduler.core.eviction.solver import Scope, Solver
from gpu_scheduler.core.fairness.budget import Budget, ModelBudget
from gpu_scheduler.core.fit.lone_searches import LoneSearches, Soonest, alone, state_of
from gpu_scheduler.core.fit.placement import PodGroupAssignment, running_pods_of
from gpu_scheduler.core.model.arrays import Flags
from gpu_scheduler.core.model.decision import ReservationReason
from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.queue.pod_group import PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations
from gpu_scheduler.core.reservation.reserved_nodes import ReservedNodes

MOST_NODES = 256  # looked at for one reservation, beside four per member
NEVER = float("inf")
FutureAssignment = tuple[
    float, int, PodGroupAssignment
]  # when, what must be freed by then, and where


class NewReservations:
    """The reservations of one cycle."""

    def __init__(
        self,
        solver: Solver,
        active: ActiveReservations,
        nominal: Budget,
        searches: LoneSearches,
        now: float,
    ) -> None:
        """``nominal``: what projects may take inside their quota; ``now``: epoch seconds."""
        self.joined: list[PodGroup] = []
        """Groups that this cycle started before it looked at reservations."""
        self._solver = solver
        self._placer = solver.placer
        self._searches = searches
        self._releasing = solver.releasing
        self._active = active
        self._nominal = nominal
        self._now = now
        self._snapshot = solver.placer.snapshot

    def reserve_nodes(self, reserved_nodes: ReservedNodes) -> None:
        """Claim the nodes of those for whom room is reserved."""
        for reserved in self._active.of(ReservationReason.RESERVED):
            reserved_nodes.add(self._placer.nodes_of(reserved.group))

    def keep(self, group: PodGroup, nodes: Mapping[PodUID, int], room_milli: int) -> None:
        """Reserve room on these nodes, one for each member, if it would fit there in the end."""
        if group.needs.least_milli > room_milli:
            return
        if len(group.members) == 1 and group.first_uid in nodes:
            self._reserve(group, self._soonest_on(group, nodes[group.first_uid]))
        else:
            self._reserve(group, self._soonest(group, Scope(nodes, None), set(nodes.values())))

    def make(self, queues: Iterable[Queue], after_seconds: float) -> float | None:
        """Reserve for each project's first group that has waited long; when to look again."""
        again = NEVER
        for queue in queues:
            group = self._first(queue)
            if group is None or self._active.of_group(group):
                continue
            deadline = group.since + after_seconds
            if deadline > self._now:
                again = min(again, deadline)
            else:
                self._reserve(group, self._anywhere(group))
        return None if again == NEVER else again

    def _first(self, queue: Queue) -> PodGroup | None:
        """The first in order that deserves a reservation."""
        passed, kept = set[Signature](), self._active.jobs()
        for group in queue.groups(passed, kept):
            if self._deserves(group):
                return group
            if group.job.key not in kept:
                passed.add(group.signature)
        return None

    def _deserves(self, group: PodGroup) -> bool:
        """Whether a group wants GPUs, could run, and is inside its project's quota."""
        needs, project = group.needs, group.project
        if not needs.least_milli or not group.deserving or self._placer.nowhere(group):
            return False
        mine = sum(reserved.charge_milli for reserved in self._active.of_group(group))
        return self._nominal.covers(project, needs, mine)

    def _anywhere(self, group: PodGroup) -> FutureAssignment | None:
        """Where it fits soonest, on any nodes but those of other reservations."""
        snapshot, taken = (
            self._snapshot,
            {b.node for b in self._active.of(ReservationReason.RESERVED)},
        )
        nodes = {n for pod_request in group.needs.counts for n in pod_request.usable} - taken
        if len(group.members) == 1:
            nodes = {n for n in nodes if self._placer.may_go(group.members[0], n)}
        free = snapshot.node_free_milli
        most = max(MOST_NODES, 4 * len(group.members))
        likely = nlargest(most, nodes, key=lambda n: (free[n], -n))
        if len(group.members) == 1:
            each = [self._soonest_on(group, n) for n in likely]
            return min(filter(None, each), key=lambda f: (f[0], f[1], f[2][0][1]), default=None)
        barred: Flags = np.zeros(len(snapshot.node_shape), dtype=np.bool_)
        barred[list(taken)] = True
        return self._soonest(group, Scope(None, barred), likely)

    def _soonest(
        self, group: PodGroup, scope: Scope, nodes: Iterable[int]
    ) -> FutureAssignment | None:
        """When the group fits, if pods of these nodes end one after the other."""
        found = self._ended(group, scope, nodes, self._nominal.model_budget(group.project))
        return found and self._when(*found)

    def _soonest_on(self, group: PodGroup, node: int) -> FutureAssignment | None:
        """The same for a lone pod on one node."""
        (member,) = group.members
        scope = Scope({group.first_uid: node}, None)
        if not self._by_node_alone(group, node):
            return self._soonest(group, scope, {node})

        def search() -> Soonest | None:
            found = self._ended(group, scope, {node}, None)
            return found and Soonest(found[0], found[1][0][2])

        state = state_of(
            self._snapshot,
            node,
            self._releasing.coming_on(node),
            tuple(self._releasing.staying_on(node)),
        )
        found = self._searches.find(member[1], node, state, search)
        return found and self._when(found.ended, [(member, node, found.choice)])

    def _ended(
        self,
        group: PodGroup,
        scope: Scope,
        nodes: Iterable[int],
        model_budget: ModelBudget | None,
    ) -> tuple[tuple[RunningPod, ...], PodGroupAssignment] | None:
        """The pods of these nodes that have ended as soon as the group fits, and where it fits."""
        pods = self._stayers(nodes)
        found = self._solver.fewest(
            group, scope, [(pod,) for pod in pods], lambda given: UNBOUNDED, model_budget
        )
        if found is None:
            return None
        count, placement = found
        used = {self._snapshot.cluster.nodes[node].name for _, node, _ in placement}
        return tuple(pod for pod in pods[:count] if pod.node in used), placement

    def _by_node_alone(self, group: PodGroup, node: int) -> bool:
        """Whether when a group fits on a node depends on what is and stays there alone."""
        name = self._snapshot.cluster.nodes[node].name
        return (
            alone(group)
            and self._placer.affinity is None
            and self._nominal.model_budget(group.project) is None
            and not any(name == place.node for each in self.joined for place in each.assignments)
        )

    def _when(self, ended: Sequence[RunningPod], placement: PodGroupAssignment) -> FutureAssignment:
        """When these have ended, at the earliest, what they free, and where the group fits then."""
        when = max([self._now, *map(_end, ended)])
        return when, sum(pod.milli for pod in ended), placement

    def _stayers(self, nodes: Iterable[int]) -> list[RunningPod]:
        """In the order in which they end; who started just now goes last."""
        names = {self._snapshot.cluster.nodes[n].name: n for n in nodes}
        on = {name: self._releasing.staying_on(n) for name, n in names.items()}
        held = {name: sum(pod.milli for pod in pods) for name, pods in on.items()}
        found = [pod for pods in on.values() for pod in pods]
        found.sort(key=lambda p: (_end(p), held[p.node], names[p.node], p.since, p.uid))
        joined = (pod for group in self.joined for pod in running_pods_of(group))
        return found + [pod for pod in joined if pod.node in names]

    def _reserve(self, group: PodGroup, found: FutureAssignment | None) -> None:
        if found is not None:
            start = None if found[0] == NEVER else found[0]
            self._active.keep(group, found[2], ReservationReason.RESERVED, start)


def _end(pod: RunningPod) -> float:
    return NEVER if pod.ends is None else pod.ends
