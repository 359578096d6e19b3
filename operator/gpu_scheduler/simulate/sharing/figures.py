"""What a play cost, and whether promises were kept.

GPU time is milli-GPU times seconds; all of it is counted from ``Workload.counted_from`` on. *Lost*
is what evicted pods did since they started, or since their last checkpoint. *Owed* is a pod that
would be inside its project's quota with those before it in the queue. A project *asks* in a window
if it has waiting pods at any time in it; its error is what waits and would fit into its fair share
while others hold more than theirs, of the share. docs/sharing.md says what is wrong with these.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from gpu_scheduler.core.model.decision import Evict, Plan
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.order import job_rank
from gpu_scheduler.core.quota import inside_milli
from gpu_scheduler.simulate.sharing.player import Index, Player, key_of
from gpu_scheduler.simulate.sharing.workload import Workload

WINDOW_SECONDS = 900.0
_PARTS = (0.5, 0.95, 0.99)
HIGH = 70  # a priority from which on one counts as high


@dataclass(slots=True)
class Figures:
    """The figures of one play; percent, seconds and counts."""

    used_percent: float = 0.0  # of the capacity
    useful_percent: float = 0.0  # of the capacity: goodput
    lost_percent: float = 0.0  # of what was used
    ended: int = 0
    evictions: Counter[str] = field(default_factory=Counter)  # by reason
    repeats: int = 0  # an index evicted for the same job twice in a row
    most_evicted: int = 0  # times, of one index
    guarantee_delays: list[float] = field(default_factory=list)
    high_waits: dict[str, float] = field(default_factory=dict)  # by index
    waits: list[float] = field(default_factory=list)
    share_errors: list[float] = field(default_factory=list)  # percent, by project and window

    @property
    def evicted_per_ended(self) -> float:
        """Evictions for each pod that ended."""
        return sum(self.evictions.values()) / self.ended if self.ended else 0.0

    @property
    def share_error_percent(self) -> float:
        """The mean over projects and windows."""
        errors = self.share_errors
        return sum(errors) / len(errors) if errors else 0.0

    def to_rows(self) -> dict[str, str]:
        """The figures in words."""
        delays, waits = self.guarantee_delays, self.waits
        high = list(self.high_waits.values())
        at = percentile
        return {
            "GPU time used": f"{self.used_percent:.1f} %",
            "goodput": f"{self.useful_percent:.1f} %",
            "lost to evictions": f"{self.lost_percent:.2f} %",
            "pods that ended": f"{self.ended:,}",
            "evictions for each": f"{self.evicted_per_ended:.3f}",
            "for one job twice in a row": f"{self.repeats}",
            "most of one pod": f"{self.most_evicted}",
            "guarantees, p50 / p99": f"{at(delays, 0.5):.0f} / {at(delays, 0.99):.0f} s",
            "longest": f"{at(delays, 1.0):.0f} s",
            "waits, p50 / p95 / p99": " / ".join(f"{at(waits, p):.0f}" for p in _PARTS) + " s",
            "of high priority": " / ".join(f"{at(high, p):.0f}" for p in _PARTS) + " s",
            "below fair share": f"{self.share_error_percent:.1f} %",
        }

    def to_json(self) -> dict[str, object]:
        """The figures by the names that scripts use, rounded."""
        spread = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}

        def of(values: Sequence[float]) -> dict[str, float]:
            return {name: round(percentile(values, part), 1) for name, part in spread.items()}

        return {
            "usedPercent": round(self.used_percent, 3),
            "usefulPercent": round(self.useful_percent, 3),
            "lostPercent": round(self.lost_percent, 3),
            "endedPods": self.ended,
            "evictions": {str(reason): count for reason, count in sorted(self.evictions.items())},
            "evictionsPerEndedPod": round(self.evicted_per_ended, 4),
            "repeats": self.repeats,
            "mostEvicted": self.most_evicted,
            "guaranteeDelaySeconds": of(self.guarantee_delays),
            "waitSeconds": of(self.waits),
            "highPriorityWaitSeconds": of(list(self.high_waits.values())),
            "shareErrorPercent": round(self.share_error_percent, 3),
        }


def merged(all_of: Sequence[Figures]) -> Figures:
    """The figures of several plays of equal length together."""
    found, count = Figures(), len(all_of)
    for number, each in enumerate(all_of):
        found.used_percent += each.used_percent / count
        found.useful_percent += each.useful_percent / count
        found.ended += each.ended
        found.evictions += each.evictions
        found.repeats += each.repeats
        found.most_evicted = max(found.most_evicted, each.most_evicted)
        found.guarantee_delays += each.guarantee_delays
        found.high_waits |= {f"{number}/{name}": wait for name, wait in each.high_waits.items()}
        found.waits += each.waits
        found.share_errors += each.share_errors
    if found.used_percent:
        found.lost_percent = 100 * (1 - found.useful_percent / found.used_percent)
    return found


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that so large a part of them does not exceed; 0 where there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(0, ceil(part * len(values)) - 1)]


@dataclass(slots=True)
class _Window:
    """What a project should have held, and by how much it was short of it, in one window."""

    share: float = 0.0
    short: float = 0.0
    asked: bool = False


class Counting:
    """Watches a play."""

    def __init__(self, workload: Workload) -> None:
        self._workload, self._from = workload, workload.counted_from
        self.figures = Figures()
        self._used = self._lost = 0.0
        self._at = 0.0
        self._holds: Counter[ProjectName] = Counter()  # at this moment
        self._held: dict[ProjectName, int] = {}  # since the last plan
        self._shares: Mapping[ProjectName, int] = {}
        self._short: dict[ProjectName, int] = {}
        self._windows: dict[tuple[ProjectName, int], _Window] = {}
        self._owed: dict[tuple[JobKey, int], float] = {}
        self._times: Counter[tuple[str, int]] = Counter()
        self._lost_to: dict[tuple[str, int], JobKey] = {}

    def planned(self, player: Player, result: Plan) -> None:
        """See ``Watcher``."""
        self._pass(player.now)
        self._held = dict(player.cluster.allocated_milli)
        self._shares = result.shares_milli
        self._short = self._look_at_queues(player)

    def started(self, index: Index, now: float) -> None:
        """See ``Watcher``."""
        job = index.job
        self._holds[job.project] += job.pod_kind.nominal_milli
        since = self._owed.pop((key_of(job), index.number), None)
        project = self._workload.projects[job.project]
        if since is None and self._holds[job.project] <= inside_milli(project):
            since = now
        if now < self._from:
            return
        if since is not None:
            self.figures.guarantee_delays.append(now - since)
        self.figures.waits.append(now - index.since)
        if job.priority >= HIGH and index.tries == 0 and index.first_wait is not None:
            self.figures.high_waits[index.name] = index.first_wait

    def ended(self, index: Index, now: float) -> None:
        """See ``Watcher``."""
        self._holds[index.job.project] -= index.job.pod_kind.nominal_milli
        self.figures.ended += now >= self._from

    def evicted(self, index: Index, evict: Evict, now: float) -> None:
        """See ``Watcher``."""
        key = index.job.name, index.number
        self._times[key] += 1
        if now >= self._from:
            self.figures.evictions[evict.reason] += 1
            self.figures.repeats += self._lost_to.get(key) == evict.beneficiary
        self._lost_to[key] = evict.beneficiary

    def gone(self, index: Index, lost_seconds: float, now: float) -> None:
        """See ``Watcher``."""
        self._holds[index.job.project] -= index.job.pod_kind.nominal_milli
        if now >= self._from:
            self._lost += lost_seconds * index.job.pod_kind.nominal_milli

    def finish(self, player: Player) -> Figures:
        """The play is over."""
        self._pass(player.now)
        found = self.figures
        whole = self._workload.capacity_milli * (self._workload.seconds - self._from)
        found.used_percent = 100 * self._used / whole
        found.useful_percent = 100 * (self._used - self._lost) / whole
        found.lost_percent = 100 * self._lost / self._used if self._used else 0.0
        found.most_evicted = max(self._times.values(), default=0)
        found.guarantee_delays += [player.now - since for since in self._owed.values()]
        for window in self._windows.values():
            if window.asked and window.share:
                found.share_errors.append(100 * window.short / window.share)
        return found

    def _pass(self, now: float) -> None:
        """Time has passed, in which nothing changed."""
        begin, self._at = max(self._at, self._from), now
        while begin < now:
            number = int((begin - self._from) // WINDOW_SECONDS)
            end = min(now, self._from + (number + 1) * WINDOW_SECONDS)
            seconds, begin = end - begin, end
            self._used += sum(self._held.values()) * seconds
            for name, share in self._shares.items():
                window = self._windows.setdefault((name, number), _Window())
                window.share += share * seconds
                window.short += self._short.get(name, 0) * seconds
                window.asked |= name in self._short

    def _look_at_queues(self, player: Player) -> dict[ProjectName, int]:
        """Who is owed its place since when; and by how much each project that asks is short.

        Short is what would fit into its share of what waits, in the order of its queue.
        """
        held = Counter(player.cluster.allocated_milli)
        for run in player.running_pods.leaving():
            held[run.project] -= run.milli
        projects = self._workload.projects
        inside = {name: inside_milli(each) - held[name] for name, each in projects.items()}
        below = {name: share - held[name] for name, share in self._shares.items()}
        short: dict[ProjectName, int] = {}
        queue = sorted(player.waiting.items(), key=lambda item: job_rank(player.known[item[0]]))
        owed: dict[tuple[JobKey, int], float] = {}
        for key, indexes in queue:
            job = next(iter(indexes.values())).job
            name, milli = job.project, job.pod_kind.nominal_milli
            groups = [sorted(indexes)] if job.gang else [[number] for number in sorted(indexes)]
            short.setdefault(name, 0)
            for group in groups:
                if job.gang and len(group) < len(job.runs):
                    continue
                if len(group) * milli <= inside[name]:
                    inside[name] -= len(group) * milli
                    for number in group:
                        owed[key, number] = self._owed.get((key, number), player.now)
                if len(group) * milli <= below[name]:
                    below[name] -= len(group) * milli
                    short[name] += len(group) * milli
        self._owed = owed
        over = sum(max(0, held[name] - share) for name, share in self._shares.items())
        all_short = sum(short.values())
        if all_short > over:  # the rest is short because of where others are, not of what they hold
            short = {name: milli * over // all_short for name, milli in short.items()}
        return short
