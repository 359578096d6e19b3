"""When others may be evicted for a group: what it is owed, since when, and at what cost.

Inside its project's quota a group is owed GPUs from the moment at which it is there; a fair share
once its project is below it on average; a higher priority after a while. Until such a *due* is
overdue, only what costs little is done for it: others lose what is worth less than the wait. Under
strict promises everything is overdue at once. Asked by ``preemption``; reasons in ADR 0046.
"""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from gpu_scheduler.core.eviction.fair_share_state import FairShareState
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.promises import PlannerMemory, Promises
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.queue.pod_group import PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations

SHARE_BAND = 0.05  # of a fair share: less below it on average is no reason to evict
SHARE_OVERDUE = 0.75  # of the window
PRIORITY_OVERDUE = 10.0  # times the patience
WORTH = 0.3  # seconds of work that may be lost for each second of waiting
TRIFLE_SECONDS = 45.0  # of work, which may be lost at once for a guarantee


class Due(NamedTuple):
    """What a group is owed.

    ``since``: it waits for it; ``overdue``: from then on it gets it whatever others lose; before,
    it may cost ``trifle_seconds`` of work and ``WORTH`` times what was waited. All in seconds, of
    the epoch and of work for each GPU.
    """

    since: float
    overdue: float
    trifle_seconds: float = 0.0

    def most_lost_seconds(self, now: float) -> float:
        """How much work others may lose, for each GPU that the group gets."""
        if now >= self.overdue:
            return inf
        return self.trifle_seconds + WORTH * max(0.0, now - self.since)


AT_ONCE = Due(-inf, -inf)


class Dues:
    """What is due in one cycle; ``again_at``: when more will be overdue, epoch seconds."""

    def __init__(self, promises: Promises, memory: PlannerMemory, now: float) -> None:
        self.promises = promises
        self._now = now
        self.again_at = inf
        self._was_owed = memory.owed
        self._behind = memory.behind(now, promises.window_seconds)
        self._owed: dict[PodUID, float] = {}
        self._groups: dict[ProjectName, list[PodGroup]] = {}  # of those that are owed, in order
        self._shares: dict[PodUID, float] = {}  # that were asked for, and when they are overdue
        self._priorities: dict[PodUID, float] = {}  # that were asked for, and since when they wait
        self._times: dict[float, str] = {}

    def note_owed(
        self, queues: Iterable[Queue], balance: FairShareState, active: ActiveReservations
    ) -> None:
        """Who waits inside its project's quota, with those before it in the queue.

        To be called where somebody borrows, or room comes: nothing else can be had for them.
        """
        if self.promises.strict:
            return
        kept, owed, was_owed, now = active.by_pod, self._owed, self._was_owed.get, self._now
        for queue in queues:
            reserved = active.charged_milli[queue.project.name]  # for some of those that wait
            room = balance.nominal_milli(queue.project) + reserved
            groups = self._groups[queue.project.name] = []
            passed: set[Signature] = set()
            for group in queue.groups(passed):
                milli = group.needs.least_milli
                if room <= 0:
                    break
                if not (0 < milli <= room and group.deserving):
                    passed.add(group.signature)
                elif not (kept and active.freed_for(group)):
                    room -= milli
                    uid = group.first_uid
                    owed[uid] = min(was_owed(uid, now), now)
                    groups.append(group)

    @property
    def any(self) -> bool:
        """Whether anybody is told of a due."""
        return bool(self._owed or self._shares or self._priorities)

    def owed(self, queue: Queue, passed: set[Signature], kept: set[JobKey]) -> Iterable[PodGroup]:
        """The groups of a queue to which ``guarantee`` may owe something; see ``Queue.groups``."""
        if self.promises.strict:
            return queue.groups(passed, kept)
        return (
            group
            for group in self._groups.get(queue.project.name, ())
            if group.signature not in passed or group.job.key in kept
        )

    def guarantee(self, group: PodGroup) -> Due | None:
        """For its project's quota."""
        if self.promises.strict:
            return AT_ONCE
        since = self._owed.get(group.first_uid)
        if since is None:
            return None
        overdue = since + self.promises.guarantee_seconds
        return self._due(Due(since, overdue, TRIFLE_SECONDS))

    def share(self, group: PodGroup, share_milli: int) -> Due | None:
        """For its project's fair share."""
        if self.promises.strict:
            return AT_ONCE
        if not self.is_behind(group.project.name, share_milli):
            return None
        overdue = group.since + SHARE_OVERDUE * self.promises.window_seconds
        self._shares[group.first_uid] = overdue
        return self._due(Due(group.since, overdue))

    def priority(self, group: PodGroup) -> Due | None:
        """For its priority."""
        if self.promises.strict:
            return AT_ONCE
        patience = self.promises.patience_seconds
        self._priorities[group.first_uid] = group.since
        begins = group.since + patience
        if self._now < begins:
            self.again_at = min(self.again_at, begins)
            return None
        return self._due(Due(group.since, group.since + PRIORITY_OVERDUE * patience))

    def is_behind(self, name: ProjectName, share_milli: int) -> bool:
        """Whether a project is owed its fair share: it was below it on average."""
        if self.promises.strict:
            return True
        return self._behind.get(name, 0.0) >= SHARE_BAND * share_milli > 0

    def is_ahead(self, name: ProjectName) -> bool:
        """Whether a project was not below its fair share, on average."""
        return self.promises.strict or self._behind.get(name, 0.0) <= 0.0

    def may_cost(self, due: Due, lost_seconds: float) -> bool:
        """Whether others may lose so much work, for each GPU that the group gets."""
        return lost_seconds <= due.most_lost_seconds(self._now)

    def words(self, group: PodGroup) -> str:
        """Until when a group waits for what it is owed, to be put behind its message."""
        uid, promises = group.first_uid, self.promises
        if uid in self._owed and promises.guarantee_seconds < inf:
            overdue = self._owed[uid] + promises.guarantee_seconds
            when = self._at(overdue)
            if overdue > self._now:
                return f"; its quota is a guarantee: who borrows gives way from {when} on"
            return f"; its guarantee was due at {when}: too little is borrowed where it fits"
        if uid in self._priorities and promises.patience_seconds < inf:
            since, patience = self._priorities[uid], promises.patience_seconds
            begins, overdue = self._at(since + patience), since + PRIORITY_OVERDUE * patience
            return (
                f"; pods of a lower priority give way from {begins} on if they lose little,"
                f" from {self._at(overdue)} on whatever they lose"
            )
        if self._shares.get(uid, inf) < inf:
            when = self._at(self._shares[uid])
            return f"; its project is below its fair share: others give way from {when} on"
        return ""

    def memory(self, balance: FairShareState) -> PlannerMemory:
        """For the next plan; ``again_at`` counts what follows from it."""
        if self.promises.strict:
            return PlannerMemory()
        held = balance.held_milli
        gaps = {name: share - held(name) for name, share in balance.shares_milli.items()}
        found = PlannerMemory(self._now, self._owed, gaps, self._behind)
        for name, share in balance.shares_milli.items():
            band = SHARE_BAND * share
            if self._behind.get(name, 0.0) < band:
                behind_at = found.behind_at(name, band, self.promises.window_seconds)
                self.again_at = min(self.again_at, behind_at)
        return found

    def _at(self, time: float) -> str:
        """A moment in words; many wait for the same one."""
        found = self._times.get(time)
        if found is None:
            found = self._times[time] = wording.at(time)
        return found

    def _due(self, due: Due) -> Due | None:
        """None where nothing is promised."""
        if due.overdue == inf:
            return None
        if due.overdue > self._now:
            self.again_at = min(self.again_at, due.overdue)
        return due


def longest_seconds(promises: Promises) -> float:
    """After how long everything is due that ever will be."""
    share = promises.window_seconds * (1 + SHARE_OVERDUE)  # the average first has to follow
    all_of = promises.guarantee_seconds, promises.patience_seconds * PRIORITY_OVERDUE, share
    return max((seconds for seconds in all_of if seconds < inf), default=0.0)
