"""Room that earlier plans kept for groups: used as soon as they fit, kept on, or let go.

Freed devices are held for the group for which others had to leave until it is bound, so nobody
slips in between, and stay the same ones as long as they are there. A hold that has become pointless
(the pod is gone, its node closed, its quota used up, the room taken by what is not ours) is
dropped, and the group competes again like all others. Called by ``plan`` before its rounds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core.actions.reservation import Reserver
from gpu_scheduler.core.eviction.solver import Solver
from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fit.placement import Placement
from gpu_scheduler.core.model.decision import Reservation, ReservationKind
from gpu_scheduler.core.model.devices import Choice
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.queue.queues import Queues
from gpu_scheduler.core.reservation.blocks import Block, Blocks


@dataclass(slots=True)
class _Ward:
    """A group for which room was kept."""

    group: PodGroup
    kind: ReservationKind
    holds: list[Reservation] = field(default_factory=list)


class KeptReservations:
    """The holds of one cycle."""

    def __init__(self, solver: Solver, blocks: Blocks, reservations: Reserver) -> None:
        self._placer = solver.placer
        self._snapshot = solver.placer.snapshot
        self._releasing = solver.releasing
        self._blocks = blocks
        self._reservations = reservations

    def resolve(
        self,
        holds: Sequence[Reservation],
        queues: Queues,
        budgets: Mapping[ReservationKind, Budget],
    ) -> list[PodGroup]:
        """Start what can start now, and keep room for the rest.

        ``budgets``: by kind; what was freed may be borrowed, a reservation is for those inside.
        """
        wards = _wards(holds, queues)
        freed = [ward for ward in wards if ward.kind is ReservationKind.FREED]
        for ward in freed:  # what was freed for one is no room for those who are asked before it
            self._as_before(ward)
        started: list[PodGroup] = []
        reserved = [ward for ward in wards if ward.kind is ReservationKind.RESERVED]
        for i, ward in enumerate((*freed, *reserved), 1):
            name = ward.group.project.name
            later = [each for each in freed[i:] if each.group.project.name == name]
            charged = sum(
                b.charge_milli for each in later for b in self._blocks.of_group(each.group)
            )
            if self._resolve(ward, budgets[ward.kind], charged):
                started.append(ward.group)
        return started

    def _as_before(self, ward: _Ward) -> None:
        """Keep the same devices, if they are there or come."""
        placement: Placement = []
        members = {member[0].uid: member for member in ward.group.members}
        for hold in ward.holds:
            member, node = members[hold.pod], self._snapshot.number_of(hold.node)
            if node is None or not self._placer.may_go(member, node):
                return
            picks = self._snapshot.picks_of(node, hold.grants)
            if len(picks) < sum(request.count for request in member[0].pod_kind.devices):
                return
            placement.append((member, node, Choice(picks, 0, 0)))
        self._keep(ward, placement)

    def _resolve(self, ward: _Ward, budget: Budget, later_milli: int) -> bool:
        """``later_milli``: what its project is charged for those whose turn comes yet."""
        group, blocks = ward.group, self._blocks.of_group(ward.group)
        for block in blocks:
            self._blocks.release(block)
        self._blocks.let_wait(blocks)
        held = self._snapshot.allocated_milli(group.project.name) - later_milli
        if len(ward.holds) < len(group.members) or not group.deserving:
            self._let_go(blocks)
            return False
        started = self._start(ward, budget, held)
        if started:
            self._let_go(blocks)
        elif ward.kind is ReservationKind.RESERVED:
            self._reservations.keep(
                group, self._nodes(ward), budget.room_milli(group.project, held)
            )
        else:
            held -= self._releasing.milli[group.project.name]
            self._go_on(ward, blocks, budget.room_milli(group.project, held))
        return started

    def _let_go(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self._blocks.drop(block)

    def _go_on(self, ward: _Ward, blocks: Sequence[Block], room_milli: int) -> None:
        """Keep the room, on the same devices if they are there, as far as the project may."""
        if not blocks:
            placement = self._once_they_left(ward, room_milli)
            if placement is not None:
                self._keep(ward, placement)
        elif sum(block.charge_milli for block in blocks) > room_milli:
            self._let_go(blocks)
        else:
            self._blocks.restore(blocks)

    def _keep(self, ward: _Ward, placement: Placement) -> None:
        """Keep room, if all of it is there or comes."""
        self._blocks.keep(ward.group, placement, ReservationKind.FREED)
        blocks = self._blocks.of_group(ward.group)
        if not all(block.whole for block in blocks):
            self._let_go(blocks)

    def _once_they_left(self, ward: _Ward, room_milli: int) -> Placement | None:
        mark = self._snapshot.mark()
        nodes = self._nodes(ward)
        for node in sorted(set(nodes.values())):
            self._releasing.release(node)
        placement = self._placer.place_at(ward.group, room_milli, nodes)
        self._snapshot.rollback(mark)
        return placement

    def _start(self, ward: _Ward, budget: Budget, held_milli: int) -> bool:
        """Places at once: on the nodes that were kept, else on any others."""
        group, project = ward.group, ward.group.project
        room, model_budget = budget.room_milli(project, held_milli), budget.model_budget(project)
        placement = self._placer.place_at(group, room, self._nodes(ward), model_budget)
        if placement is not None:
            return self._begin(group, placement)

        def start(group: PodGroup) -> bool:
            placement = self._placer.place(group, room, None, model_budget)
            return placement is not None and self._begin(group, placement)

        inside = not budget.above or held_milli < project.quota_milli
        return start(group) or self._blocks.backfill(group, start, inside=inside)

    def _begin(self, group: PodGroup, placement: Placement) -> bool:
        self._placer.start(group, placement)
        self._reservations.joined.append(group)
        return True

    def _nodes(self, ward: _Ward) -> dict[PodUID, int]:
        numbers = {hold.pod: self._snapshot.number_of(hold.node) for hold in ward.holds}
        return {pod: node for pod, node in numbers.items() if node is not None}


def _wards(holds: Sequence[Reservation], queues: Queues) -> list[_Ward]:
    wanted = {hold.pod for hold in holds}
    groups: dict[PodUID, PodGroup] = {}
    for job in {hold.job for hold in holds}:
        for group in queues.groups_of(job):
            for pod, _ in group.members:
                if pod.uid in wanted:
                    groups[pod.uid] = group
    wards: dict[tuple[ReservationKind, PodUID], _Ward] = {}
    for hold in holds:
        if hold.pod in groups:
            group = groups[hold.pod]
            key = hold.kind, group.first_uid
            wards.setdefault(key, _Ward(group, hold.kind)).holds.append(hold)
    return list(wards.values())
