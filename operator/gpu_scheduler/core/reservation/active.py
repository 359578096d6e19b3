"""Room that is kept for pods: on which devices, and what of it is blocked at present.

A block takes what it wants from what comes (see ``releasing``), and for the rest blocks what is
free. Freed room is kept on the devices for which others had to go, so that what was promised to
several pods keeps fitting; a reservation blocks what there is of it. Kept room is nobody else's,
except for those who rank before its pod: see ``may_use``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

from gpu_scheduler.core.affinity.masks import AffinityMasks
from gpu_scheduler.core.fit.placement import PodGroupAssignment, milli_of
from gpu_scheduler.core.model.decision import Reservation, ReservationReason
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName, WaitingJob, WaitingPod
from gpu_scheduler.core.model.resources import NOTHING, NodeResources, resources_of
from gpu_scheduler.core.model.snapshot import IndexedAllocations, Snapshot
from gpu_scheduler.core.queue.order import FIRST, JobRank, job_rank
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.core.reservation.releasing import ReleasingResources

Starter = Callable[[PodGroup], bool]  # starts a group where there is room; False = there is none
_number = attrgetter("number")
_NOTHING: tuple[NodeResources, IndexedAllocations] = (NOTHING, ())


@dataclass(slots=True)
class ActiveReservation:
    """What is kept for one pod."""

    reservation: Reservation
    group: PodGroup
    pod: WaitingPod
    node: int
    room: NodeResources  # wanted beside GPUs
    picks: IndexedAllocations  # wanted
    borrowed: bool = False  # its project is above its quota with it
    new: bool = False  # others are evicted for it in this very cycle
    comes: tuple[NodeResources, IndexedAllocations] = _NOTHING  # of that, what others leave
    taken: tuple[NodeResources, IndexedAllocations] = _NOTHING  # … and what is blocked at present
    in_force: bool = False
    number: int = 0  # in the order in which they were made

    @property
    def charge_milli(self) -> int:
        """What the project is charged as long as the room is kept."""
        return sum(allocated.milli for allocated in self.reservation.devices)

    @property
    def whole(self) -> bool:
        """Whether all of it is there, or comes."""
        got, free = self.comes, self.taken
        return self.room == got[0] + free[0] and all(
            wanted[2:] == (one[2] + other[2], one[3] + other[3])
            for wanted, one, other in zip(self.picks, got[1], free[1], strict=True)
        )

    @property
    def here(self) -> bool:
        """Whether all of it is free now."""
        return self.room == self.taken[0] and self.picks == self.taken[1]


class ActiveReservations:
    """All that is kept in one cycle, by pod."""

    def __init__(
        self,
        snapshot: Snapshot,
        releasing: ReleasingResources,
        affinity: AffinityMasks | None,
        now: float,
    ) -> None:
        self._snapshot = snapshot
        self._releasing = releasing
        self._affinity = affinity
        self._now = now
        self.by_pod: dict[PodUID, ActiveReservation] = {}
        self._of_project: defaultdict[ProjectName, dict[PodUID, ActiveReservation]]
        self._of_project = defaultdict(dict)
        self._borrowed: dict[PodUID, ActiveReservation] = {}
        self._numbers = count()
        self.charged_milli: Counter[ProjectName] = Counter()
        """What projects are charged for room that is only reserved for their pods."""
        self.charged_by_model: defaultdict[ProjectName, Counter[str]] = defaultdict(Counter)
        """The same by product."""

    def of(self, reason: ReservationReason) -> list[ActiveReservation]:
        """Those of a kind, oldest first."""
        return [
            reserved for reserved in self.by_pod.values() if reserved.reservation.reason is reason
        ]

    def reservations(self) -> tuple[Reservation, ...]:
        """All of them, freed room first."""
        return tuple(
            b.reservation
            for reason in (ReservationReason.FREED, ReservationReason.RESERVED)
            for b in self.of(reason)
        )

    def keep(
        self,
        group: PodGroup,
        placement: PodGroupAssignment,
        reason: ReservationReason,
        start: float | None = None,
        *,
        new: bool = False,
    ) -> None:
        """Keep room for all members of a group."""
        cluster, project = self._snapshot.cluster, group.project
        held = self._snapshot.allocated_milli(project.name) + milli_of(placement)
        for (pod, _), node, choice in placement:
            picks, pod_shape = choice.picks, pod.pod_shape
            devices = self._snapshot.allocations_of(picks)
            reservation = Reservation(
                pod.uid, group.job.key, cluster.nodes[node].name, reason, start, devices
            )
            borrowed = held > project.quota_milli
            self._forget(pod.uid)
            self.reserve(
                ActiveReservation(
                    reservation, group, pod, node, resources_of(pod_shape), picks, borrowed, new
                )
            )

    def reserve(self, reserved: ActiveReservation) -> None:
        """Put a block in force: as much of what it wants as comes, or is free."""
        c, node = self._snapshot.cluster, reserved.node
        reserved.comes = self._releasing.take(node, reserved.room, reserved.picks)
        rest = reserved.room - reserved.comes[0]
        room = rest.at_most(self._snapshot.free_on(node, rest.scalars)).at_least(NOTHING)
        free: dict[int, tuple[int, int]] = {}
        picks = []
        for wanted, come in zip(reserved.picks, reserved.comes[1], strict=True):
            container, device, milli, mib = wanted
            left = free.get(device, (c.unheld_milli(device), c.free_mib[device]))
            part = max(0, min(milli - come[2], left[0])), max(0, min(mib - come[3], left[1]))
            free[device] = (left[0] - part[0], left[1] - part[1])
            picks.append((container, device, *part))
        reserved.taken = room, tuple(picks)
        self._snapshot.take(
            node, *reserved.taken, reserved.group.job.project, reserved.charge_milli
        )
        reserved.in_force = True
        self._count(reserved, 1)
        uid = reserved.reservation.pod
        if uid not in self.by_pod:
            reserved.number = next(self._numbers)
            self.by_pod[uid] = self._of_project[reserved.group.job.project][uid] = reserved
            if reserved.borrowed:
                self._borrowed[uid] = reserved

    def release(self, reserved: ActiveReservation) -> None:
        """Take a block out of force for a while; it keeps its place among the others."""
        project, charge = reserved.group.job.project, reserved.charge_milli
        self._snapshot.release(reserved.node, *reserved.taken, project, charge)
        self._releasing.give_back(reserved.node, *reserved.comes)
        reserved.in_force = False
        self._count(reserved, -1)

    def let_wait(self, released: Iterable[ActiveReservation]) -> None:
        """Who keeps free room of the devices of these waits for what comes there instead."""
        coming = {pick[1] for reserved in released for pick in reserved.comes[1] if any(pick[2:])}
        for other in list(self.by_pod.values()) if coming else ():
            free = {pick[1] for pick in other.taken[1] if any(pick[2:])}
            if other.in_force and other.whole and free & coming:
                self.release(other)
                self.reserve(other)

    def restore(self, active: Iterable[ActiveReservation]) -> None:
        """Put those in force again that are lifted; freed room that is not there any more goes."""
        active = sorted(
            active, key=lambda reserved: reserved.reservation.reason is ReservationReason.RESERVED
        )
        for reserved in active:
            if not reserved.in_force:
                self.reserve(reserved)
        broken = {
            b.group.job.key if b.group.job.gang else b.reservation.pod
            for b in active
            if self._broken(b)
        }
        for reserved in list(self.by_pod.values()) if broken else ():
            if reserved.reservation.pod in broken or reserved.group.job.key in broken:
                self.drop(reserved)

    def drop(self, reserved: ActiveReservation) -> None:
        """Keep it no longer."""
        if reserved.in_force:
            self.release(reserved)
        self._forget(reserved.reservation.pod)

    def _forget(self, uid: PodUID) -> None:
        reserved = self.by_pod.pop(uid, None)
        if reserved is not None:
            del self._of_project[reserved.group.job.project][uid]
            self._borrowed.pop(uid, None)

    def missing(self) -> dict[PodUID, NodeResources]:
        """What others hold beside GPUs of rooms that are reserved for lone pods.

        Of those whose GPUs are free, or as many others on their nodes.
        """
        found = {}
        for reserved in self.of(ReservationReason.RESERVED):
            missing = reserved.room - reserved.comes[0] - reserved.taken[0]
            if missing == NOTHING or len(reserved.group.members) > 1:
                continue
            (_, pod_request) = reserved.group.members[0]
            if (
                reserved.picks == reserved.taken[1]
                or pod_request.chooser.choose(reserved.node) is not None
            ):
                found[reserved.reservation.pod] = missing
        return found

    def jobs(self) -> set[JobKey]:
        """For whom room is kept."""
        return {reserved.group.job.key for reserved in self.by_pod.values()}

    def last_rank(self, project: ProjectName) -> JobRank:
        """That of the last job of a project for which room is kept; before all others: none."""
        active = self._of_project[project].values()
        return max((job_rank(reserved.group.job) for reserved in active), default=FIRST)

    def of_group(self, group: PodGroup) -> list[ActiveReservation]:
        """What is kept for a group."""
        found = (self.by_pod.get(pod.uid) for pod, _ in group.members)
        return [reserved for reserved in found if reserved is not None]

    def freed_for(self, group: PodGroup) -> bool:
        """Whether freed room is kept for a group."""
        return any(
            reserved.reservation.reason is ReservationReason.FREED
            for reserved in self.of_group(group)
        )

    def open_to(self, job: WaitingJob, *, nominal: bool) -> list[ActiveReservation]:
        """Those that pods of a job may use; ``nominal``: they are inside their quota."""
        if job.time_limit_seconds is None:
            likely = {**self._of_project[job.project], **(self._borrowed if nominal else {})}
        else:
            likely = self.by_pod
        found = [b for b in likely.values() if b.in_force and self.may_use(job, b, nominal)]
        return sorted(found, key=_number)

    def reserved_open_to(self, job: WaitingJob) -> list[ActiveReservation]:
        """Those of reservations alone: what comes was freed for somebody, and is waited for."""
        return [
            b
            for b in self.open_to(job, nominal=False)
            if b.reservation.reason is ReservationReason.RESERVED
        ]

    def may_use(self, job: WaitingJob, reserved: ActiveReservation, nominal: bool) -> bool:
        """Whether a pod ranks before the one for which room is kept, or ends before that starts."""
        if job.key == reserved.group.job.key or reserved.new:
            return False
        if job.project == reserved.group.job.project:
            if job_rank(job) < job_rank(reserved.group.job):
                return True
        elif nominal and reserved.borrowed:
            return True
        limit, start = job.time_limit_seconds, reserved.reservation.start
        return limit is not None and start is not None and self._now + limit <= start

    def backfill(
        self,
        group: PodGroup,
        start: Starter,
        *,
        nominal: bool,
    ) -> bool:
        """Start a group in room that is kept for others and that it may use, if it can.

        ``nominal``: it is inside its project's quota.
        """
        active = self.open_to(group.job, nominal=nominal)
        if not active:
            return False
        for reserved in active:
            self.release(reserved)
        started = start(group)
        self.restore(active)
        return started

    def _broken(self, reserved: ActiveReservation) -> bool:
        return reserved.reservation.reason is ReservationReason.FREED and not reserved.whole

    def _count(self, reserved: ActiveReservation, sign: int) -> None:
        """Others keep away from where room was freed for a pod; of a reservation: its charge."""
        if reserved.reservation.reason is ReservationReason.FREED:
            if self._affinity is not None:
                self._affinity.add(reserved.pod, reserved.node, sign, held=True)
            return
        charge, project = sign * reserved.charge_milli, reserved.group.job.project
        self.charged_milli[project] += charge
        if reserved.picks:  # all of one model
            model = self._snapshot.cluster.dev_model[reserved.picks[0][1]]
            self.charged_by_model[project][model] += charge
