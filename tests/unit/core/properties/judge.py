"""Says of a plan who was evicted for nothing, and who waits beside room that it may use.

Shares nothing with the planner but its values: it counts on the pods and devices of a ``Play``.
Room is what is free now, or leaves, less what the plan starts and less what is kept for others:

* a hold for freed room keeps what its pod asks for, on its node, as far as that does not come;
* a reservation keeps its whole node, except from pods of its project that rank before its pod and
  from those whose time limit ends before it starts.

Whoever may take such room may not have anybody evicted, and inside its quota does not wait.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.workload import NO_LIMIT, most_milli

from gpu_scheduler.core.model.decision import (
    DeviceAllocation,
    Evict,
    Plan,
    Reservation,
    ReservationReason,
)

IndexedAllocations = list[tuple[int, int]]  # device, milli


@dataclass
class Room:
    """What is free, by device and by node."""

    devices: dict[str, list[int]]  # node -> free milli by device
    cpu: dict[str, int]
    held: Counter[str]  # by project, milli

    def copy(self) -> "Room":
        return Room({n: list(d) for n, d in self.devices.items()}, dict(self.cpu), self.held.copy())

    def give(self, play: Play, uids: Iterable[str], sign: int = 1) -> None:
        """The pods go (or, with -1, come back)."""
        for uid in uids:
            pod, on = play.running[uid]  # type: ignore[index]
            for allocated in on.devices:
                self.devices[on.node][number(allocated.device)] += sign * allocated.milli
            self.cpu[on.node] += sign * on.cpu_milli
            self.held[pod.project] -= sign * on.milli

    def choose(self, node: str, pod: Pod, apart: Iterable[int] = ()) -> IndexedAllocations | None:
        """Devices for a pod on a node, the fullest that hold it."""
        if self.cpu[node] < pod.pod_shape.cpu_milli:
            return None
        (ask,) = pod.pod_shape.devices
        free, without = self.devices[node], set(apart)
        order = sorted((m, d) for d, m in enumerate(free) if m >= ask.milli and d not in without)
        return [(d, ask.milli) for _, d in order[: ask.count]] if len(order) >= ask.count else None

    def take(self, node: str, pod: Pod, picks: IndexedAllocations) -> None:
        for device, milli in picks:
            self.devices[node][device] -= milli
        self.cpu[node] -= pod.pod_shape.cpu_milli
        self.held[pod.project] += sum(milli for _, milli in picks)

    def places(
        self, pods: Sequence[Pod], nodes: Sequence[str]
    ) -> list[tuple[str, IndexedAllocations]] | None:
        """Places for all of them, each on the fullest node; None when one finds none."""
        trial, found = self.copy(), []
        used: defaultdict[str, set[int]] = defaultdict(set)
        for pod in pods:
            open_nodes = sorted(nodes, key=lambda n: (sum(trial.devices[n]), n))
            for node in open_nodes:
                picks = trial.choose(node, pod, used[node])
                if picks is not None:
                    break
            else:
                return None
            trial.take(node, pod, picks)
            if pod.gang and pod.distinct:
                used[node].update(d for d, _ in picks)
            found.append((node, picks))
        return found


def number(device: str) -> int:
    return int(device.rsplit("/", 1)[1])


def rank(pod: Pod) -> tuple[bool, int, float, str]:
    """The order inside a project, as its documentation says."""
    return (not pod.interactive, -pod.priority, pod.created, pod.key)


def need(pods: Iterable[Pod]) -> int:
    return sum(pod.pod_shape.nominal_milli for pod in pods)


@dataclass
class Verdict:
    """What was wrong, and how much there was of it."""

    plans: int = 0
    evicted: Counter[str] = field(default_factory=Counter)  # by reason
    needless: list[str] = field(default_factory=list)
    hindsight: int = 0  # the same, but somebody was given that room later in the plan
    idle: list[str] = field(default_factory=list)
    again: int = 0  # an index evicted for the same job twice in a row
    waited: int = 0  # the same, for a pod that waited all the time
    at_once: list[str] = field(default_factory=list)  # the same, in the plan after its start
    lost_milli_seconds: float = 0.0


class Judge:
    """Looks at the plans of one history, one after the other, before they are carried out."""

    def __init__(self, play: Play) -> None:
        self.play, self.verdict = play, Verdict()
        self._beside_room: Counter[str] = Counter()  # plans in a row
        self._lost_to: dict[str, str] = {}  # index -> job
        self._just_started: set[str] = set()

    def look(self, result: Plan) -> None:
        """Judge one plan."""
        self.verdict.plans += 1
        self._evictions(result)
        self._idle(result)
        self._rounds(result)

    def _now(self) -> Room:
        """What is free at this moment."""
        nodes = self.play.cluster()
        room = Room(
            {info.name: [1000] * self.play.gpus[n] for n, info in enumerate(nodes.nodes)},
            {info.name: info.cpu_milli for info in nodes.nodes},
            Counter(),
        )
        room.give(self.play, self.play.running, -1)
        return room

    def _after_places(self, room: Room, result: Plan, waiting: dict[str, Pod]) -> None:
        for place in result.assignments:
            self._take(room, waiting[place.pod], place.node, place.devices)

    def _evictions(self, result: Plan) -> None:
        """Whether each was needed at the turn of the pod for which it was made.

        A plan names holds and evictions in the order in which it decides them.
        """
        if not result.evicts:
            return
        waiting = {pod.uid: pod for pod in self.play.waiting}
        room, new = self._now(), self._new(result)
        promised = {reservation.pod for reservation in self.play.reservations}
        room.give(self.play, self.play.going)
        for reservation in result.reservations:
            if reservation.reason is ReservationReason.FREED and reservation not in new:
                self._take(room, waiting[reservation.pod], reservation.node, reservation.devices)
        reserved = [
            reservation
            for reservation in result.reservations
            if reservation.reason is ReservationReason.RESERVED
        ]
        candidates = self._parties(result.evicts)
        together: dict[str, list[Reservation]] = {}
        for reservation in new:
            together.setdefault(waiting[reservation.pod].gang or reservation.pod, []).append(
                reservation
            )
        for reservations in together.values():
            pods = [waiting[reservation.pod] for reservation in reservations]
            before = room.copy()  # less what is started of those that had their turn before
            for place in result.assignments:
                if place.pod in promised or not self._later(waiting[place.pod], pods[0]):
                    self._take(before, waiting[place.pod], place.node, place.devices)
            mine: list[list[Evict]] = []
            last = next(h for h in reversed(new) if h.job == pods[0].key) in reservations
            while last or not self._is_there(room, result, waiting, reservations):  # type: ignore[arg-type]
                if not candidates or candidates[0][0].beneficiary != pods[0].key:
                    break
                mine.append(candidates.pop(0))
                uids = [evict.pod for evict in mine[-1]]
                room.give(self.play, uids)
                before.give(self.play, uids)
            if not self._is_there(room, result, waiting, reservations):  # type: ignore[arg-type]
                self.verdict.needless.append(f"{pods[0].uid}: kept what is not there")
            nodes = [n for n in room.devices if self._may_use(n, pods[0], reserved, waiting)]  # type: ignore[arg-type]
            for victim in mine:
                uids = [evict.pod for evict in victim]
                before.give(self.play, uids, -1)
                fits = self._allowed(before, pods) and before.places(pods, nodes) is not None
                before.give(self.play, uids)
                self.verdict.hindsight += fits
                if fits and self._fits_in_the_end(result, waiting, reservations, victim, nodes):  # type: ignore[arg-type]
                    self._say_needless(victim, f"{pods[0].uid} fits without it")
            for reservation, pod in zip(reservations, pods, strict=True):
                self._take(room, pod, reservation.node, reservation.devices)
        for victim in candidates:
            self._say_needless(victim, "it helps nobody")

    def _fits_in_the_end(
        self,
        result: Plan,
        waiting: dict[str, Pod],
        reservations: Sequence[Reservation],
        victim: Sequence[Evict],
        nodes: Sequence[str],
    ) -> bool:
        """Whether these fit beside all that the plan gives to others, and a victim that stays."""
        room, stay = self._now(), {evict.pod for evict in victim}
        room.give(self.play, self.play.going)
        room.give(self.play, [evict.pod for evict in result.evicts if evict.pod not in stay])
        pods = [waiting[reservation.pod] for reservation in reservations]
        for place in result.assignments:
            if not self._later(waiting[place.pod], pods[0]):
                self._take(room, waiting[place.pod], place.node, place.devices)
        for reservation in result.reservations:
            if reservation.reason is ReservationReason.FREED and reservation not in reservations:
                self._take(room, waiting[reservation.pod], reservation.node, reservation.devices)
        return self._allowed(room, pods) and room.places(pods, nodes) is not None

    def _is_there(
        self, room: Room, result: Plan, waiting: dict[str, Pod], reservations: Iterable[Reservation]
    ) -> bool:
        """Whether what is kept for these is there, and their project may have it."""
        trial, pods = room.copy(), [waiting[reservation.pod] for reservation in reservations]
        self._after_places(trial, result, waiting)
        if not self._allowed(trial, pods):
            return False
        for reservation, pod in zip(reservations, pods, strict=True):
            self._take(trial, pod, reservation.node, reservation.devices)
        return all(
            min(trial.devices[reservation.node]) >= 0 and trial.cpu[reservation.node] >= 0
            for reservation in reservations
        )

    def _new(self, result: Plan) -> list[Reservation]:
        """Freed room that was not kept before, on the same devices; of a gang all or none."""
        gangs = {pod.key for pod in self.play.waiting if pod.gang}
        freed = [
            reservation
            for reservation in result.reservations
            if reservation.reason is ReservationReason.FREED
        ]
        new = {h.job if h.job in gangs else h.pod for h in freed if h not in self.play.reservations}
        return [
            reservation
            for reservation in freed
            if reservation.pod in new or reservation.job in new & gangs
        ]

    def _later(self, other: Pod, pod: Pod) -> bool:
        return other.project == pod.project and rank(pod) < rank(other)

    def _take(self, room: Room, pod: Pod, node: str, devices: Iterable[DeviceAllocation]) -> None:
        room.take(node, pod, [(number(allocated.device), allocated.milli) for allocated in devices])

    def _parties(self, evicts: Iterable[Evict]) -> list[list[Evict]]:
        """The evictions in order; a gang is one of them."""
        found: list[list[Evict]] = []
        for evict in evicts:
            if evict.whole_job and found and found[-1][0].job == evict.job:
                found[-1].append(evict)
            else:
                found.append([evict])
        return found

    def _allowed(self, room: Room, pods: Sequence[Pod]) -> bool:
        """Whether their project may hold them as well."""
        team = self.play.projects[pods[0].project]  # type: ignore[index]
        return room.held[pods[0].project] + need(pods) <= most_milli(team)

    def _may_use(
        self, node: str, pod: Pod, reserved: Iterable[Reservation], waiting: dict[str, Pod]
    ) -> bool:
        """Whether room reserved on a node is not kept from a pod."""
        return all(
            self._outranks(pod, reservation, waiting[reservation.pod])
            for reservation in reserved
            if reservation.node == node and waiting[reservation.pod].key != pod.key
        )

    def _outranks(self, pod: Pod, reservation: Reservation, other: Pod) -> bool:
        if pod.project == other.project and rank(pod) < rank(other):
            return True
        ends = self.play.now + pod.seconds if pod.limit and pod.seconds else None
        return ends is not None and reservation.start is not None and ends <= reservation.start

    def _say_needless(self, victim: Sequence[Evict], why: str) -> None:
        first = victim[0]
        self.verdict.needless.append(f"{first.reason} {first.pod} for {first.beneficiary}: {why}")

    def _idle(self, result: Plan) -> None:
        """Who could start inside its quota on what is free, and was not started."""
        play = self.play
        waiting = {pod.uid: pod for pod in play.waiting}
        room = self._now()
        self._after_places(room, result, waiting)  # type: ignore[arg-type]
        started = {place.pod for place in result.assignments}
        still = [pod for pod in play.waiting if pod.uid not in started]
        beside: set[str] = set()
        for pods in self._waiting_together(still):
            team = play.projects[pods[0].project]  # type: ignore[index]
            most = min(team.quota_milli, team.limit_milli or NO_LIMIT)
            mine = {pod.uid for pod in pods}
            before = [
                reservation
                for reservation in result.reservations
                if reservation.pod not in mine
                and not self._gives_way(waiting[reservation.pod], pods[0])
            ]
            promised = need(
                waiting[h.pod] for h in before if waiting[h.pod].project == pods[0].project
            )
            if room.held[pods[0].project] + promised + need(pods) > most:
                continue
            if self._finds_room(room, pods, before, waiting):  # type: ignore[arg-type]
                beside.update(mine)
        for uid in list(self._beside_room):
            if uid not in beside:
                del self._beside_room[uid]
        for uid in beside:
            self._beside_room[uid] += 1
            if self._beside_room[uid] == 3:
                self.verdict.idle.append(f"{uid} waits beside room")

    def _waiting_together(self, still: Iterable[Pod]) -> list[list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in still:
            found.setdefault(pod.gang or pod.uid, []).append(pod)
        return [pods for pods in found.values() if not pods[0].gang or len(pods) == pods[0].size]

    def _gives_way(self, other: Pod, pod: Pod) -> bool:
        """Whether what is kept for another one is not kept from this one, inside its quota."""
        if other.project == pod.project:
            return rank(pod) < rank(other)
        team = self.play.projects[other.project]  # type: ignore[index]
        return self._held[other.project] + need([other]) > team.quota_milli

    @property
    def _held(self) -> Counter[str]:
        return Counter(
            {name: self.play.held(name) for name in self.play.projects}  # type: ignore[misc]
        )

    def _finds_room(
        self, room: Room, pods: Sequence[Pod], kept: Sequence[Reservation], waiting: dict[str, Pod]
    ) -> bool:
        reserved = [
            reservation for reservation in kept if reservation.reason is ReservationReason.RESERVED
        ]
        nodes = [n for n in room.devices if self._may_use(n, pods[0], reserved, waiting)]
        if room.places(pods, nodes) is None:
            return False
        coming = room.copy()
        coming.give(self.play, self.play.going)
        left = room.copy()
        for reservation in kept:
            if reservation.reason is not ReservationReason.FREED:
                continue
            for allocated in reservation.devices:
                device = number(allocated.device)
                comes = (
                    coming.devices[reservation.node][device]
                    - left.devices[reservation.node][device]
                )
                left.devices[reservation.node][device] -= max(0, allocated.milli - max(0, comes))
            self._take(coming, waiting[reservation.pod], reservation.node, reservation.devices)
        return left.places(pods, nodes) is not None

    def _rounds(self, result: Plan) -> None:
        """Indexes that lose their place to one job again and again."""
        play = self.play
        since = {}
        for pod in play.waiting:
            first = pod.created if pod.since is None else pod.since
            since[pod.key] = min(first, since.get(pod.key, first))
        for evict in result.evicts:
            pod, on = play.running[evict.pod]
            verdict = self.verdict
            verdict.evicted[evict.reason] += 1
            verdict.lost_milli_seconds += on.milli * (play.now - on.since)
            if self._lost_to.get(pod.name) == evict.beneficiary:
                verdict.again += 1
                helped = [
                    reservation.pod
                    for reservation in result.reservations
                    if reservation.job == evict.beneficiary and reservation not in play.reservations
                ]
                waits = [
                    p.created if p.since is None else p.since
                    for p in play.waiting
                    if p.uid in helped
                ]
                if waits and max(waits) < on.since:
                    verdict.waited += 1
                    if evict.pod in self._just_started:
                        verdict.at_once.append(f"{evict.pod} for {evict.beneficiary}")
            self._lost_to[pod.name] = evict.beneficiary
        self._just_started = {place.pod for place in result.assignments}
