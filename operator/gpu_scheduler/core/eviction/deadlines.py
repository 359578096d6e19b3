"""When others may be evicted for a group: what it is owed, since when, and at what cost.

Inside its project's quota a group is owed GPUs from the moment at which it is there; a fair share
once its project is below it on average; a higher priority after a while. Until such a *due* is
overdue, only what costs little is done for it: others lose what is worth less than the wait. Under
strict promises everything is overdue at once. Asked by ``preemption``; reasons in ADR 0046.
"""

from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import NamedTuple

from gpu_scheduler.core.eviction.fair_share_state import FairShareState
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.preemption_policy import PlannerMemory, PreemptionPolicy
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.queue.pod_group import PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue
from gpu_scheduler.core.reservation.active import ActiveReservations

SHARE_BAND = 0.05  # of a fair share: less below it on average is no reason to evict
SHARE_OVERDUE = 0.75  # of the window
PRIORITY_OVERDUE = 10.0  # times the patience
WORTH = 0.3  # seconds of work that may be lost for each second of waiting
NEGLIGIBLE_SECONDS = 45.0  # of work, which may be lost at once for a guarantee


class Entitlement(Enum):
    """What a group is owed."""

    GUARANTEE = "guarantee"
    SHARE = "fair share"
    PRIORITY = "priority"


class Deadline(NamedTuple):
    """What a group is owed.

    ``since``: it waits for it; ``overdue``: from then on it gets it whatever others lose; before,
    it may cost ``negligible_seconds`` of work and ``WORTH`` times what was waited. All in seconds,
    of the epoch and of work for each GPU.
    """

    since: float
    overdue: float
    negligible_seconds: float = 0.0

    def most_lost_seconds(self, now: float) -> float:
        """How much work others may lose, for each GPU that the group gets."""
        if now >= self.overdue:
            return inf
        return self.negligible_seconds + WORTH * max(0.0, now - self.since)


AT_ONCE = Deadline(-inf, -inf)


class Deadlines:
    """What is due in one cycle; ``again_at``: when more will be overdue, epoch seconds."""

    def __init__(
        self, preemption_policy: PreemptionPolicy, memory: PlannerMemory, now: float
    ) -> None:
        self.preemption_policy = preemption_policy
        self._now = now
        self.again_at = inf
        self._was_nominal_since = memory.nominal_since
        self._behind = memory.behind(now, preemption_policy.window_seconds)
        self._nominal_since: dict[PodUID, float] = {}
        self._groups: dict[ProjectName, list[PodGroup]] = {}  # of those that are owed, in order
        self._shares: dict[PodUID, float] = {}  # that were asked for, and when they are overdue
        self._priorities: dict[PodUID, float] = {}  # that were asked for, and since when they wait
        self._times: dict[float, str] = {}
        self._in_vain: set[tuple[Entitlement, Signature]] = set()

    def note_in_vain(self, owed: Entitlement, signature: Signature) -> None:
        """Whoever was evicted for what such groups are owed, they would find no place now."""
        self._in_vain.add((owed, signature))

    def note_nominal(
        self, queues: Iterable[Queue], balance: FairShareState, active: ActiveReservations
    ) -> None:
        """Who waits inside its project's quota, with those before it in the queue.

        To be called where somebody borrows, or room comes: nothing else can be had for them.
        """
        if self.preemption_policy.strict:
            return
        kept, nominal_since, was_nominal_since, now = (
            active.by_pod,
            self._nominal_since,
            self._was_nominal_since.get,
            self._now,
        )
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
                    nominal_since[uid] = min(was_nominal_since(uid, now), now)
                    groups.append(group)

    @property
    def any(self) -> bool:
        """Whether anybody is told of a deadline."""
        return bool(self._nominal_since or self._shares or self._priorities)

    def nominal_groups(
        self, queue: Queue, passed: set[Signature], kept: set[JobKey]
    ) -> Iterable[PodGroup]:
        """The groups of a queue to which ``guarantee`` may owe something; see ``Queue.groups``."""
        if self.preemption_policy.strict:
            return queue.groups(passed, kept)
        return (
            group
            for group in self._groups.get(queue.project.name, ())
            if group.signature not in passed or group.job.key in kept
        )

    def guarantee(self, group: PodGroup) -> Deadline | None:
        """For its project's quota."""
        if self.preemption_policy.strict:
            return AT_ONCE
        since = self._nominal_since.get(group.first_uid)
        if since is None:
            return None
        overdue = since + self.preemption_policy.guarantee_seconds
        return self._deadline(Deadline(since, overdue, NEGLIGIBLE_SECONDS))

    def share(self, group: PodGroup, share_milli: int) -> Deadline | None:
        """For its project's fair share."""
        if self.preemption_policy.strict:
            return AT_ONCE
        if not self.is_behind(group.project.name, share_milli):
            return None
        overdue = group.since + SHARE_OVERDUE * self.preemption_policy.window_seconds
        self._shares[group.first_uid] = overdue
        return self._deadline(Deadline(group.since, overdue))

    def priority(self, group: PodGroup) -> Deadline | None:
        """For its priority."""
        if self.preemption_policy.strict:
            return AT_ONCE
        patience = self.preemption_policy.patience_seconds
        self._priorities[group.first_uid] = group.since
        begins = group.since + patience
        if self._now < begins:
            self.again_at = min(self.again_at, begins)
            return None
        return self._deadline(Deadline(group.since, group.since + PRIORITY_OVERDUE * patience))

    def is_behind(self, name: ProjectName, share_milli: int) -> bool:
        """Whether a project is owed its fair share: it was below it on average."""
        if self.preemption_policy.strict:
            return True
        return self._behind.get(name, 0.0) >= SHARE_BAND * share_milli > 0

    def is_ahead(self, name: ProjectName) -> bool:
        """Whether a project was not below its fair share, on average."""
        return self.preemption_policy.strict or self._behind.get(name, 0.0) <= 0.0

    def may_cost(self, deadline: Deadline, lost_seconds: float) -> bool:
        """Whether others may lose so much work, for each GPU that the group gets."""
        return lost_seconds <= deadline.most_lost_seconds(self._now)

    def words(self, group: PodGroup) -> str:
        """Until when a group waits for what it is owed, to be put behind its message.

        A time that is to come is promised only where an eviction would help as things are.
        """
        told = (self._of_guarantee, self._of_priority, self._of_share)
        return next((words for said in told if (words := said(group))), "")

    def _of_guarantee(self, group: PodGroup) -> str:
        overdue = self._nominal_since.get(group.first_uid, inf)
        overdue += self.preemption_policy.guarantee_seconds
        if not self._is_told(overdue, Entitlement.GUARANTEE, group):
            return ""
        when = self._at(overdue)
        if overdue > self._now:
            return f"; its quota is a guarantee: who borrows gives way from {when} on"
        return f"; its guarantee was due at {when}: too little is borrowed where it fits"

    def _of_priority(self, group: PodGroup) -> str:
        since = self._priorities.get(group.first_uid, inf)
        patience = self.preemption_policy.patience_seconds
        overdue = since + PRIORITY_OVERDUE * patience
        if not self._is_told(overdue, Entitlement.PRIORITY, group):
            return ""
        begins, when = self._at(since + patience), self._at(overdue)
        if overdue > self._now:
            return (
                f"; pods of a lower priority give way from {begins} on if they lose little,"
                f" from {when} on whatever they lose"
            )
        return f"; its priority was due at {when}: too little of a lower one runs where it fits"

    def _of_share(self, group: PodGroup) -> str:
        overdue = self._shares.get(group.first_uid, inf)
        if not self._is_told(overdue, Entitlement.SHARE, group):
            return ""
        when = self._at(overdue)
        if overdue > self._now:
            return f"; its project is below its fair share: others give way from {when} on"
        return f"; its fair share was due at {when}: too little that may go is where it fits"

    def _is_told(self, overdue: float, owed: Entitlement, group: PodGroup) -> bool:
        if overdue > self._now and (owed, group.signature) in self._in_vain:
            return False
        return overdue < inf

    def memory(self, balance: FairShareState) -> PlannerMemory:
        """For the next plan; ``again_at`` counts what follows from it."""
        if self.preemption_policy.strict:
            return PlannerMemory()
        held = balance.held_milli
        gaps = {name: share - held(name) for name, share in balance.shares_milli.items()}
        found = PlannerMemory(self._now, self._nominal_since, gaps, self._behind)
        for name, share in balance.shares_milli.items():
            band = SHARE_BAND * share
            if self._behind.get(name, 0.0) < band:
                behind_at = found.behind_at(name, band, self.preemption_policy.window_seconds)
                self.again_at = min(self.again_at, behind_at)
        return found

    def _at(self, time: float) -> str:
        """A moment in words; many wait for the same one."""
        found = self._times.get(time)
        if found is None:
            found = self._times[time] = wording.at(time)
        return found

    def _deadline(self, deadline: Deadline) -> Deadline | None:
        """None where nothing is promised."""
        if deadline.overdue == inf:
            return None
        if deadline.overdue > self._now:
            self.again_at = min(self.again_at, deadline.overdue)
        return deadline


def longest_seconds(preemption_policy: PreemptionPolicy) -> float:
    """After how long everything is due that ever will be."""
    share = preemption_policy.window_seconds * (
        1 + SHARE_OVERDUE
    )  # the average first has to follow
    all_of = (
        preemption_policy.guarantee_seconds,
        preemption_policy.patience_seconds * PRIORITY_OVERDUE,
        share,
    )
    return max((seconds for seconds in all_of if seconds < inf), default=0.0)
