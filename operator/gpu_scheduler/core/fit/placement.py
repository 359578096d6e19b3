"""Places for all pods of a group at once, or none.

Members are put on the snapshot one by one, each on the best node for it, and taken off again: the
answer is a placement, the snapshot stays as it was. A gang that stays apart takes whole devices
while it is tried, so no two members meet on one. With a topology the domains are tried one by one,
those first that would have the least GPU left, then by name.
"""

from collections.abc import Iterable, Mapping
from math import inf

import numpy as np

from gpu_scheduler.core.fairness.budget import ModelBudget, ModelSpending
from gpu_scheduler.core.fit.group_domains import GroupDomains
from gpu_scheduler.core.fit.scores import NOBODY, Candidates
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.arrays import Flags
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import Gang, PodShape, PodUID, ProjectName, WaitingPod
from gpu_scheduler.core.model.running_pods import EvictionGroup, RunningPod
from gpu_scheduler.core.model.snapshot import IndexedAllocations
from gpu_scheduler.core.queue.pod_group import Member, Order, PodGroup

PodGroupAssignment = list[tuple[Member, int, NodeAllocation]]  # member, node, devices

_NOBODY = ProjectName("")


class Placer:
    """Tries groups on the snapshot of one cycle, and starts them there."""

    def __init__(self, session: PlannerCache) -> None:
        self._session = session
        self.snapshot = session.snapshot
        self.affinity = session.affinity
        self.domains = GroupDomains(session)
        self._table = session.table
        self._candidates = Candidates(session.snapshot, session.table)
        self._usable: dict[PodRequest, frozenset[int]] = {}
        self._sharing = False  # whether members of any gang may meet on a GPU

    def place(
        self,
        group: PodGroup,
        room_milli: int,
        barred: Flags | None = None,
        model_budget: ModelBudget | None = None,
    ) -> PodGroupAssignment | None:
        """Places for all members on nodes that are not barred, for at most ``room_milli``.

        ``model_budget``: what they may cost by model; None = no matter.
        """
        needs = group.needs
        if needs.least_milli > room_milli:
            return None
        if model_budget is not None and model_budget.short_of(needs.counts.items()):
            return None
        if group.job.gang is None:
            return self._place_lone(group.members[0], room_milli, barred, model_budget)
        for mask in self.domains.masks(group, barred):
            for order in group.orders():
                found = self._run(group, order, room_milli, mask, model_budget)
                if len(found) == len(order):
                    return found
        return None

    def _place_lone(
        self,
        member: Member,
        room_milli: int,
        barred: Flags | None,
        model_budget: ModelBudget | None,
    ) -> PodGroupAssignment | None:
        """The same for one pod: one look at the scores."""
        pod, pod_request = member
        if self.affinity is not None:
            barred = _either(barred, self.affinity.forbidden(pod, pod_request))
        if pod_request.exact and model_budget is None and not pod.avoid:
            hit = self._table.best(pod_request, barred)
        else:
            limit = None if pod_request.exact else room_milli
            may = None if model_budget is None else model_budget.spending(()).may
            hit = self._candidates.best(pod_request, barred, pod.avoid, limit, may)
        return None if hit is None else [(member, *hit)]

    def place_but_for_rules(self, group: PodGroup) -> PodGroupAssignment | None:
        """The same if pods had no rules about each other, whatever it costs."""
        affinity, self.affinity = self.affinity, None
        found = self.place(group, UNBOUNDED)
        self.affinity = affinity
        return found

    def place_sharing(self, group: PodGroup) -> PodGroupAssignment | None:
        """The same if members of a gang might share a GPU, whatever it costs."""
        self._sharing = True
        found = self.place(group, UNBOUNDED)
        self._sharing = False
        return found

    def place_at(
        self,
        group: PodGroup,
        room_milli: int,
        nodes: Mapping[PodUID, int],
        model_budget: ModelBudget | None = None,
    ) -> PodGroupAssignment | None:
        """The same, each member on a node of its own choice."""
        if any(pod.uid not in nodes for pod, _ in group.members):
            return None
        used = {nodes[pod.uid] for pod, _ in group.members}
        if not self.domains.hold_all(group, used):
            return None
        snapshot, found, cost = self.snapshot, PodGroupAssignment(), 0
        mark, seats = snapshot.mark(), self._seats()
        spending = (
            None
            if model_budget is None
            else model_budget.spending(pod_request for _, pod_request in group.members)
        )
        self._keep_off(group.needs.gang)
        for member in group.members:
            node = nodes[member[0].uid]
            choice = self.fits(member, node)
            cost += choice.milli if choice else 0
            if choice is None or cost > room_milli or not _affords(spending, member[1], choice):
                break
            self._take(group.needs.gang, member, node, choice)
            found.append((member, node, choice))
        self._rollback(mark, seats)
        return found if len(found) == len(group.members) else None

    def most(self, group: PodGroup) -> PodGroupAssignment:
        """As many members as find a place at once: in the domain where that is most GPU."""
        best: PodGroupAssignment = []
        for mask in self.domains.masks(group, None, hopeful=False):
            found = self._run(group, group.members, None, mask, None)
            if (milli_of(found), len(found)) > (milli_of(best), len(best)):
                best = found
        return best

    def most_on(self, group: PodGroup, node: int) -> int:
        """How many members find a place at once on one node, in no domain but its own."""
        others: Flags = np.ones(len(self.snapshot.node_shape), dtype=np.bool_)
        others[node] = False
        return len(self._run(group, group.members, None, others, None))

    def fits(self, member: Member, node: int) -> NodeAllocation | None:
        """The devices that a pod would get on a node now; None where it may not or cannot go."""
        if not self.may_go(member, node) or not self.snapshot.has_room(node, member[1].pod_shape):
            return None
        return member[1].chooser.choose(node)

    def may_go(self, member: Member, node: int) -> bool:
        """Whether a node takes such pods now, and the pod need not keep away from it."""
        pod, pod_request = member
        if node not in self._usable_by(pod_request):
            return False
        if pod.avoid and self.snapshot.cluster.nodes[node].name in pod.avoid:
            return False
        return self.affinity is None or self.affinity.allows(pod, pod_request, node)

    def may_after(self, placement: PodGroupAssignment, gone: Iterable[RunningPod]) -> bool:
        """Whether pods may go to their places once these are gone, on whom they may depend."""
        if self.affinity is None:
            return True
        places = [(pod, pod_request, node) for (pod, pod_request), node, _ in placement]
        find = self.snapshot.number_of
        return self.affinity.would_hold(places, [(pod.uid, find(pod.node)) for pod in gone])

    def nowhere(self, group: PodGroup) -> bool:
        """Whether other pods keep a lone pod away from all nodes, full or not."""
        if self.affinity is None or len(group.members) > 1:
            return False
        return self.affinity.nowhere(*group.members[0])

    def fits_alone(self, member: Member) -> bool:
        """Whether a member would find a place now if it were alone."""
        pod, pod_request = member
        return self._candidates.best(pod_request, self._forbidden(member), pod.avoid) is not None

    def place_one(
        self, pod_shape: PodShape, most_milli: int, model_budget: ModelBudget | None
    ) -> tuple[int, NodeAllocation] | None:
        """The best place for a pod of a pod shape that no rules about others concern."""
        may = None if model_budget is None else model_budget.spending(()).may
        return self._candidates.best(
            self._session.pod_requests.of(pod_shape), None, NOBODY, most_milli, may
        )

    def open_to(self, member: Member) -> Flags:
        """[nodes] Whether they have the room for a pod now, whatever rules about others say."""
        found = self._session.table.open(member[1])
        found[self.snapshot.numbers_of(member[0].avoid)] = False
        return found

    def start(self, group: PodGroup, placement: PodGroupAssignment) -> None:
        """Put all members on the snapshot; ``assignments`` of the group says where."""
        self._session.queues.started.append(group)
        if len(placement) == 1:
            group.assignments = (self._put(group, *placement[0]),)
            return
        places = {member[0].uid: self._put(group, member, node, c) for member, node, c in placement}
        group.assignments = tuple(places[uid] for uid in group.uids if uid in places)

    def _put(
        self, group: PodGroup, member: Member, node: int, choice: NodeAllocation
    ) -> Assignment:
        pod, snapshot = member[0], self.snapshot
        snapshot.take(node, pod.pod_shape, choice.picks, group.job.project)
        if self.affinity is not None:
            self.affinity.add(pod, node)
        devices = snapshot.allocations_of(choice.picks)
        return Assignment(group.job.key, pod.uid, snapshot.cluster.nodes[node].name, devices)

    def nodes_of(self, group: PodGroup) -> Flags:
        """[nodes] Where members that want GPUs could ever be, as rules about others stand now."""
        found: Flags = np.zeros(len(self.snapshot.node_shape), dtype=np.bool_)
        for pod, pod_request in {
            (id(d), p.avoid, id(p.affinity)): (p, d) for p, d in group.members
        }.values():
            if not pod_request.least_milli:
                continue
            could = np.zeros_like(found)
            could[pod_request.could] = True
            could[self.snapshot.numbers_of(pod.avoid)] = False
            forbidden = self._forbidden((pod, pod_request))
            if forbidden is not None:
                could &= ~forbidden
            found |= could
        return self.domains.inside(group, found)

    def _usable_by(self, pod_request: PodRequest) -> frozenset[int]:
        nodes = self._usable.get(pod_request)
        if nodes is None:
            nodes = self._usable[pod_request] = frozenset(pod_request.usable)
        return nodes

    def _run(
        self,
        group: PodGroup,
        order: Order,
        room_milli: int | None,
        mask: Flags | None,
        model_budget: ModelBudget | None,
    ) -> PodGroupAssignment:
        """Members one by one, to the first without a place; without a bound all that find one."""
        snapshot, found = self.snapshot, PodGroupAssignment()
        rest = sum(pod_request.least_milli for _, pod_request in order)
        hopeless: set[tuple[int, int, frozenset[str]]] = set()
        spending = (
            None
            if model_budget is None
            else model_budget.spending(pod_request for _, pod_request in order)
        )
        mark, seats = snapshot.mark(), self._seats()
        self._keep_off(group.needs.gang)
        for member in order:
            pod, pod_request = member
            if hopeless and (id(pod_request), id(pod.affinity), pod.avoid) in hopeless:
                continue
            rest -= pod_request.least_milli
            limit = None if pod_request.exact or room_milli is None else room_milli - rest
            may = None
            if spending is not None:
                spending.turn_of(pod_request)
                may = spending.may
            barred = _either(mask, self._forbidden(member))
            hit = self._candidates.best(pod_request, barred, pod.avoid, limit, may)
            if hit is None:
                if room_milli is not None:
                    break
                hopeless.add((id(pod_request), id(pod.affinity), pod.avoid))
                continue
            found.append((member, *hit))
            if len(order) == 1:
                break
            if spending is not None:
                spending.spend(hit[1])
            if room_milli is not None:
                room_milli -= hit[1].milli
            self._take(group.needs.gang, member, *hit)
        self._rollback(mark, seats)
        return found

    def _forbidden(self, member: Member) -> Flags | None:
        """[nodes] Where a member may not go because of other pods."""
        return None if self.affinity is None else self.affinity.forbidden(*member)

    def _seats(self) -> int:
        """A point to which pods that are put on nodes can be taken off again."""
        return 0 if self.affinity is None else self.affinity.counts.mark()

    def _rollback(self, mark: int, seats: int) -> None:
        self.snapshot.rollback(mark)
        if self.affinity is not None:
            self.affinity.counts.rollback(seats)

    def _take(self, gang: Gang, member: Member, node: int, choice: NodeAllocation) -> None:
        picks = self._whole(choice.picks) if self._are_apart(gang) else choice.picks
        self.snapshot.take(node, member[1].pod_shape, picks, _NOBODY, 0)
        if self.affinity is not None:
            self.affinity.add(member[0], node)

    def _are_apart(self, gang: Gang) -> bool:
        return gang.distinct and not self._sharing

    def _whole(self, picks: IndexedAllocations) -> IndexedAllocations:
        """All that is free on the devices that are picked."""
        return self.snapshot.free_on_devices({pick[1] for pick in picks})

    def _keep_off(self, gang: Gang) -> None:
        """Leave nothing on the devices of members that run."""
        if not self._are_apart(gang) or not gang.devices:
            return
        cluster = self.snapshot.cluster
        for node in self.snapshot.numbers_of(gang.nodes):
            devices = range(cluster.first[node], cluster.first[node + 1])
            mine = [(0, d, 0, 0) for d in devices if cluster.dev_id[d] in gang.devices]
            self.snapshot.block(node, self._whole(tuple(mine)))


def _either(one: Flags | None, other: Flags | None) -> Flags | None:
    """What is left out by one of two."""
    if one is None or other is None:
        return other if one is None else one
    found: Flags = one | other
    return found


def _affords(
    spending: ModelSpending | None, pod_request: PodRequest, choice: NodeAllocation
) -> bool:
    """Whether the next member may have these devices, which it then has."""
    if spending is None:
        return True
    spending.turn_of(pod_request)
    affords = spending.may(choice)
    spending.spend(choice)
    return affords


def milli_of(placement: PodGroupAssignment) -> int:
    """What a placement costs."""
    return sum(choice.milli for _, _, choice in placement)


def running_pods_of(group: PodGroup) -> EvictionGroup:
    """The pods of a group that starts, as if they had been there, started last of all."""
    pods = {pod.uid: pod for pod, _ in group.members}
    return tuple(_running_pod(group, pods[place.pod], place) for place in group.assignments)


def _running_pod(group: PodGroup, pod: WaitingPod, place: Assignment) -> RunningPod:
    job = group.job
    return RunningPod(
        pod.uid,
        pod.name,
        job.key,
        group.project.name,
        place.node,
        place.devices,
        pod.pod_shape.cpu_milli,
        pod.pod_shape.memory_bytes,
        pod.pod_shape.ephemeral_bytes,
        job.interactive,
        job.priority,
        since=inf,
        gang=job.gang is not None,
        pod_shape=pod.pod_shape,
        scalars=pod.pod_shape.scalars,
    )
