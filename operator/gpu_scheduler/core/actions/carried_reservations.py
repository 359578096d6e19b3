"""Room that earlier plans kept for groups: used as soon as they fit, kept on, or let go.

Freed devices are held for the group for which others had to leave until it is bound, so nobody
slips in between, and stay the same ones as long as they are there. A hold that has become pointless
(the pod is gone, its node closed, its quota used up, the room taken by what is not ours) is
dropped, and the group competes again like all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core.actions.new_reservations import NewReservations
from gpu_scheduler.core.eviction.solver import Solver
from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fit.placement import PodGroupAssignment
from gpu_scheduler.core.model.decision import Reservation, ReservationReason
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.queue.queues import Queues
from gpu_scheduler.core.reservation.active import ActiveReservation, ActiveReservations


@dataclass(slots=True)
class _CarriedGroup:
    """A group for which room was kept."""

    group: PodGroup
    reason: ReservationReason
    reservations: list[Reservation] = field(default_factory=list)


class CarriedReservations:
    """The holds of one cycle."""

    def __init__(
        self, solver: Solver, active: ActiveReservations, reservations: NewReservations
    ) -> None:
        self._placer = solver.placer
        self._snapshot = solver.placer.snapshot
        self._releasing = solver.releasing
        self._active = active
        self._reservations = reservations

    def resolve(
        self,
        reservations: Sequence[Reservation],
        queues: Queues,
        budgets: Mapping[ReservationReason, Budget],
    ) -> list[PodGroup]:
        """Start what can start now, and keep room for the rest.

        ``budgets``: by kind; what was freed may be borrowed, a reservation is for those inside.
        """
        carried_groups = _carried_groups(reservations, queues)
        freed = [carried for carried in carried_groups if carried.reason is ReservationReason.FREED]
        for carried in freed:  # what was freed for one is no room for those who are asked before it
            self._as_before(carried)
        started: list[PodGroup] = []
        reserved = [
            carried for carried in carried_groups if carried.reason is ReservationReason.RESERVED
        ]
        for i, carried in enumerate((*freed, *reserved), 1):
            name = carried.group.project.name
            later = [each for each in freed[i:] if each.group.project.name == name]
            charged = sum(
                b.charge_milli for each in later for b in self._active.of_group(each.group)
            )
            if self._resolve(carried, budgets[carried.reason], charged):
                started.append(carried.group)
        return started

    def _as_before(self, carried: _CarriedGroup) -> None:
        """Keep the same devices, if they are there or come."""
        placement: PodGroupAssignment = []
        members = {member[0].uid: member for member in carried.group.members}
        for reservation in carried.reservations:
            member, node = members[reservation.pod], self._snapshot.number_of(reservation.node)
            if node is None or not self._placer.may_go(member, node):
                return
            picks = self._snapshot.picks_of(node, reservation.devices)
            if len(picks) < sum(request.count for request in member[0].pod_shape.devices):
                return
            placement.append(
                (
                    member,
                    node,
                    NodeAllocation(picks, 0, 0, sum(map(self._snapshot.charge_milli, picks))),
                )
            )
        self._keep(carried, placement)

    def _resolve(self, carried: _CarriedGroup, budget: Budget, later_milli: int) -> bool:
        """``later_milli``: what its project is charged for those whose turn comes yet."""
        group, active = carried.group, self._active.of_group(carried.group)
        for reserved in active:
            self._active.release(reserved)
        self._active.let_wait(active)
        held = self._snapshot.allocated_milli(group.project.name) - later_milli
        if len(carried.reservations) < len(group.members) or not group.deserving:
            self._let_go(active)
            return False
        started = self._start(carried, budget, held)
        if started:
            self._let_go(active)
        elif carried.reason is ReservationReason.RESERVED:
            self._reservations.keep(
                group, self._nodes(carried), budget.room_milli(group.project, held)
            )
        else:
            held -= self._releasing.milli[group.project.name]
            self._go_on(carried, active, budget.room_milli(group.project, held))
        return started

    def _let_go(self, active: Iterable[ActiveReservation]) -> None:
        for reserved in active:
            self._active.drop(reserved)

    def _go_on(
        self, carried: _CarriedGroup, active: Sequence[ActiveReservation], room_milli: int
    ) -> None:
        """Keep the room, on the same devices if they are there, as far as the project may."""
        if not active:
            placement = self._once_they_left(carried, room_milli)
            if placement is not None:
                self._keep(carried, placement)
        elif sum(reserved.charge_milli for reserved in active) > room_milli:
            self._let_go(active)
        else:
            self._active.restore(active)

    def _keep(self, carried: _CarriedGroup, placement: PodGroupAssignment) -> None:
        """Keep room, if all of it is there or comes."""
        self._active.keep(carried.group, placement, ReservationReason.FREED)
        active = self._active.of_group(carried.group)
        if not all(reserved.whole for reserved in active):
            self._let_go(active)

    def _once_they_left(self, carried: _CarriedGroup, room_milli: int) -> PodGroupAssignment | None:
        mark = self._snapshot.mark()
        nodes = self._nodes(carried)
        for node in sorted(set(nodes.values())):
            self._releasing.release(node)
        placement = self._placer.place_at(carried.group, room_milli, nodes)
        self._snapshot.rollback(mark)
        return placement

    def _start(self, carried: _CarriedGroup, budget: Budget, held_milli: int) -> bool:
        """Places at once: on the nodes that were kept, else on any others."""
        group, project = carried.group, carried.group.project
        room, model_budget = budget.room_milli(project, held_milli), budget.model_budget(project)
        placement = self._placer.place_at(group, room, self._nodes(carried), model_budget)
        if placement is not None:
            return self._begin(group, placement)

        def start(group: PodGroup) -> bool:
            placement = self._placer.place(group, room, None, model_budget)
            return placement is not None and self._begin(group, placement)

        nominal = not budget.borrowing or held_milli < project.quota_milli
        return start(group) or self._active.backfill(group, start, nominal=nominal)

    def _begin(self, group: PodGroup, placement: PodGroupAssignment) -> bool:
        self._placer.start(group, placement)
        self._reservations.joined.append(group)
        return True

    def _nodes(self, carried: _CarriedGroup) -> dict[PodUID, int]:
        numbers = {
            reservation.pod: self._snapshot.number_of(reservation.node)
            for reservation in carried.reservations
        }
        return {pod: node for pod, node in numbers.items() if node is not None}


def _carried_groups(reservations: Sequence[Reservation], queues: Queues) -> list[_CarriedGroup]:
    wanted = {reservation.pod for reservation in reservations}
    groups: dict[PodUID, PodGroup] = {}
    for job in {reservation.job for reservation in reservations}:
        for group in queues.groups_of(job):
            for pod, _ in group.members:
                if pod.uid in wanted:
                    groups[pod.uid] = group
    carried_groups: dict[tuple[ReservationReason, PodUID], _CarriedGroup] = {}
    for reservation in reservations:
        if reservation.pod in groups:
            group = groups[reservation.pod]
            key = reservation.reason, group.first_uid
            carried_groups.setdefault(
                key, _CarriedGroup(group, reservation.reason)
            ).reservations.append(reservation)
    return list(carried_groups.values())
