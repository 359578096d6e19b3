"""A round over all waiting groups under one rule: inside quota first, then borrowing.

The project with the smallest share goes next, one group at a time. Within a round room only
shrinks, so of groups that are alike none is tried again once one found no place, and once that is
so of all the rest of a long queue is not looked at. Invariant: no placement takes a project past
its budget. Called twice per cycle by ``plan``.
"""

from collections.abc import Iterator, Sequence

from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fit.placement import Placer
from gpu_scheduler.core.model.arrays import Flags
from gpu_scheduler.core.model.quota import UNBOUNDED
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName
from gpu_scheduler.core.queue.order import FairOrder, job_rank
from gpu_scheduler.core.queue.pod_group import GroupRequest, PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations, Starter
from gpu_scheduler.core.reservation.reserved_nodes import ReservedNodes


class Round:
    """One round under one budget; ``reserved_nodes``: nodes that it leaves alone."""

    def __init__(
        self,
        placer: Placer,
        active: ActiveReservations,
        order: FairOrder,
        budget: Budget,
        reserved_nodes: ReservedNodes | None = None,
    ) -> None:
        """Groups for which room is kept are passed over: they had their turn before."""
        self._placer = placer
        self._active = active
        self._order = order
        self._budget = budget
        self._reserved_nodes = reserved_nodes
        self._blocked: dict[GroupRequest, tuple[PodGroup, dict[ProjectName, Project]]] = {}

    def run(self, queues: Sequence[Queue]) -> list[PodGroup]:
        """Start what can start."""
        return list(self._order.by_turns(queues, [self._starts(queue) for queue in queues]))

    def reserve_nodes(self, reserved_nodes: ReservedNodes) -> None:
        """Claim the nodes of what found no devices although its project has the room for it.

        That is asked at the end: pods after it may have used the room up.
        """
        for needs, (group, projects) in self._blocked.items():
            if any(self._budget.covers(project, needs) for project in projects.values()):
                reserved_nodes.add(self._placer.nodes_of(group))

    def _starts(self, queue: Queue) -> Iterator[PodGroup]:
        """The placements of one project, group by group, made when asked for."""
        stuck, noted = set[GroupRequest](), set[GroupRequest]()
        passed: set[Signature] = set()  # of which the others would find no place, either
        kept_out: set[tuple[JobKey, GroupRequest]] = set()  # of room that is kept for others
        kept, start, nominal = self._active.by_pod, self._starter(queue), not self._budget.borrowing
        last = self._active.last_rank(queue.project.name)  # later ones find the same room open
        for group in queue.groups(passed):
            needs, started = group.needs, False
            if not group.startable:
                passed.add(group.signature)
                continue
            if kept and self._active.of_group(group):
                continue
            if needs not in stuck:
                started = start(group)
            if not started and kept and (group.job.key, needs) not in kept_out:
                started = self._active.backfill(group, start, nominal=nominal)
                if not started:
                    kept_out.add((group.job.key, needs))
            if started:
                yield group
                if kept:  # with others in their places kept room may be open for more
                    passed.clear()
                continue
            stuck.add(needs)
            if group.deserving and needs not in noted:
                noted.add(needs)
                self._note(group)
            if not kept or job_rank(group.job) > last:
                passed.add(group.signature)

    def _starter(self, queue: Queue) -> Starter:
        """Starts a group of a queue on what is free."""
        project, budget, placer, barred = queue.project, self._budget, self._placer, self._barred
        model_budget, room_milli = budget.model_budget(project), budget.room_milli

        def start(group: PodGroup) -> bool:
            placement = placer.place(group, room_milli(project), barred, model_budget)
            if placement is not None:
                placer.start(group, placement)
            return placement is not None

        return start

    def _note(self, group: PodGroup) -> None:
        """A group found no place: it is blocked unless only its project's budget is in the way."""
        needs, project, place = group.needs, group.project, self._placer.place
        if needs.least_milli and self._budget.covers(project, needs):
            bound = not needs.exact or self._budget.model_budget(project) is not None
            if not bound or place(group, UNBOUNDED, self._barred) is None:
                self._blocked.setdefault(needs, (group, {}))[1][project.name] = project

    @property
    def _barred(self) -> Flags | None:
        return self._reserved_nodes.barred if self._reserved_nodes else None
